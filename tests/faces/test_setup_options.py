"""What a person without a model may choose from."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.models.wire import serve, status, stream, whole
from tests.kit.waiting import ends_soon

from cru.core.models import ModelSettings
from cru.core.models.providers import PROVIDERS, Provider
from cru.core.models.stored_keys import StoredKeys, key_environment
from cru.faces.cli.setup import options
from cru.faces.cli.setup.options import find_options

MODELS = {"data": [{"id": "qwen3:8b"}, {"id": "llama"}, {"id": "phi"}]}


def test_servers_of_this_machine_are_asked_at_once_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> list[str]:
        async with serve(whole(MODELS)) as here, serve(stream(b"{", pause=600)) as slow, serve(status(404)) as other:
            rows = [
                Provider(name, "openai", wire.url) for name, wire in (("slow", slow), ("other", other), ("vllm", here))
            ]
            monkeypatch.setattr(options, "ALL_SERVERS", rows)
            with ends_soon():
                options_found = await find_options(ModelSettings(), {}, tmp_path)
            lines = [f"{o.label}: {o.about}" for o in options_found if o.kind == "provider"]
            return [line.replace(here.url, "URL") for line in lines]

    assert asyncio.run(main()) == ["vllm: qwen3:8b, llama, … at URL"]


def test_keys_are_listed_with_their_source_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "ALL_SERVERS", ())
    StoredKeys(tmp_path).keep("openai", "sk-kept", in_file=True)
    env = key_environment({"ANTHROPIC_API_KEY": "sk-env"}, tmp_path)
    found_options = asyncio.run(find_options(ModelSettings(api_key="sk-own"), env, tmp_path / "models"))
    lines = [(option.label, option.about) for option in found_options if option.kind == "provider"]
    assert lines == [
        ("openrouter", "the key is in the setting api_key"),
        ("openai", f"the key is in {tmp_path}/keys.json"),
        ("anthropic", "the key is in ANTHROPIC_API_KEY"),
    ]
    assert "sk-" not in repr(found_options)
    assert [option.kind for option in found_options if option.kind != "embedded"][-3:] == ["paste", "address", "tour"]


def test_a_base_url_that_is_set_decides(tmp_path: Path) -> None:
    settings = ModelSettings(base_url="https://user:pass@models.example/v1")
    first = asyncio.run(find_options(settings, {"OPENAI_API_KEY": "x"}, tmp_path))[0]
    assert (first.label, first.provider) == ("https://***@models.example/v1", "openai_compatible")
    assert {"ollama", "lmstudio", "llamacpp", "vllm"} <= set(PROVIDERS)
