"""Servers of this machine: whether they have a model that is to be kept."""

from __future__ import annotations

import asyncio

import pytest
from tests.core.models.wire import serve, whole

from cru.core.models import probe
from cru.core.models.protocol import NoModel
from cru.core.models.providers import Provider

MODELS = {"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:8b"}, {"id": "llama:latest"}]}


def asked(monkeypatch: pytest.MonkeyPatch, model: str, provider: str = "ollama", elsewhere: str = "") -> int:
    """How many requests the question cost. Raises NoModel."""

    async def main() -> int:
        async with serve(whole(MODELS)) as wire:
            monkeypatch.setattr(probe, "SERVERS", (Provider("ollama", "openai", wire.url),))
            await probe.require_listed(provider, model, elsewhere or wire.url)
            return len(wire.requests)

    return asyncio.run(main())


@pytest.mark.parametrize("model", ["qwen3:8b", "llama", "llama:latest"])
def test_a_model_that_the_server_lists_may_be_kept(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    assert asked(monkeypatch, model) == 1


def test_one_that_it_does_not_list_is_refused_with_the_closest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoModel, match="has no model qwen3:7b") as raised:
        asked(monkeypatch, "qwen3:7b")
    assert raised.value.hint == "did you mean ollama:qwen3:8b?"


def test_other_servers_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, "gpt-5", "openai") == 0
    assert asked(monkeypatch, "x", elsewhere="http://far.example/v1") == 0
