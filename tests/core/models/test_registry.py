from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.core.models.wire import Step, hello, serve, status, whole

from cru.core.base.net.transport import Transport
from cru.core.base.values.messages import Request
from cru.core.models import API_KEYS, ModelAlias, ModelSettings, check_api, merge_api
from cru.core.models.failures import RequestFacts
from cru.core.models.protocol import ModelRefused, NoModel
from cru.core.models.providers import KEY_VARIABLES, PROVIDERS, KeyEnvironment, Provider, key_for, own_keys
from cru.core.models.pull import weights_path
from cru.core.models.registry import ModelChoice, build_model, choose_model, find_address

OR, OA, AN = "OPENROUTER_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"
ALL = {OR: "k-or", OA: "k-oa", AN: "k-an"}
NOBODY: tuple[Provider, ...] = ()


def pick(env: dict[str, str] | None = None, folder: Path = Path("/nonexistent"), **settings: Any) -> ModelChoice:
    said: list[str] = []
    return asyncio.run(choose_model(ModelSettings(**settings), env or {}, folder, said.append, servers=NOBODY))


@pytest.mark.parametrize(
    ("settings", "env", "provider", "model"),
    [
        ({"model": "openai:gpt-5"}, ALL, "openai", "gpt-5"),
        ({"model": "anthropic:claude-x"}, ALL, "anthropic", "claude-x"),
        ({"model": "anthropic/claude-x"}, {OR: "k"}, "openrouter", "anthropic/claude-x"),
        ({"model": "anthropic/claude-x"}, ALL, "anthropic", "claude-x"),
        ({"model": "openrouter/anthropic/claude-x"}, ALL, "openrouter", "anthropic/claude-x"),
        ({"model": "openrouter/auto"}, ALL, "openrouter", "openrouter/auto"),
        ({"model": "qwen/qwen3:free"}, {OR: "k"}, "openrouter", "qwen/qwen3:free"),
        ({"model": "m"}, {OA: "k", AN: "k"}, "openai", "m"),
        ({"model": "m"}, {AN: "k"}, "anthropic", "m"),
        ({"model": "m", "api_key": "k"}, {OA: "k"}, "openrouter", "m"),
        ({"model": "ollama:qwen3:8b"}, ALL, "ollama", "qwen3:8b"),
        ({"model": "ollama/qwen3:8b"}, {}, "ollama", "qwen3:8b"),
        ({"model": "lmstudio:m"}, {}, "lmstudio", "m"),
        ({"model": "org/m", "base_url": "http://h/v1"}, ALL, "openai_compatible", "org/m"),
        ({"model": "anthropic/m", "base_url": "http://h/v1"}, ALL, "openai_compatible", "anthropic/m"),
        ({"model": "llama:7b", "base_url": "http://h/v1"}, {}, "openai_compatible", "llama:7b"),
        ({"model": "qwen3:8b"}, {OR: "k"}, "openrouter", "qwen3:8b"),
        ({"model": "m", "base_url": "https://api.openai.com/v1"}, ALL, "openai", "m"),
        ({"model": "anthropic:m", "base_url": "http://h/v1"}, ALL, "anthropic", "m"),
        ({"model": "anthropic_compatible:m", "base_url": "http://h/v1"}, {}, "anthropic_compatible", "m"),
        ({"model": "mistral:7b", "base_url": "http://h/v1"}, {}, "openai_compatible", "mistral:7b"),
        ({}, {"CRU_MODEL": "m", OR: "k"}, "openrouter", "m"),
    ],
)
def test_names_settings_and_keys_decide_the_provider(
    settings: dict[str, Any], env: dict[str, str], provider: str, model: str
) -> None:
    choice = pick(env, **settings)
    assert (choice.provider, choice.model) == (provider, model)
    assert choice.why
    assert not any(key in repr(choice) for key in ("k-or", "k-oa", "k-an"))


@pytest.mark.parametrize(
    ("model", "base_url", "address"),
    [
        ("m", "http://h/v1", "http://h/v1"),
        ("openai_compatible:m", "http://h/v1", "http://h/v1"),
        ("anthropic_compatible:m", "http://h/v1", "http://h/v1"),
        ("openai:m", "http://h/v1", PROVIDERS["openai"].base_url),
        ("anthropic:m", "http://h/v1", PROVIDERS["anthropic"].base_url),
        ("openrouter:o/m", "http://h/v1", PROVIDERS["openrouter"].base_url),
        ("ollama:m", "http://h/v1", PROVIDERS["ollama"].base_url),
        ("openai:m", "https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
        ("fast", "http://h/v1", PROVIDERS["openai"].base_url),
        ("openai:m", "", PROVIDERS["openai"].base_url),
    ],
)
def test_a_named_provider_is_asked_at_its_own_address(model: str, base_url: str, address: str) -> None:
    choice = pick(ALL, model=model, base_url=base_url, models={"fast": ModelAlias("openai:gpt-5")})
    assert choice.base_url == address


@pytest.mark.parametrize(
    ("provider", "base_url", "settings", "key"),
    [
        ("openrouter", "https://openrouter.ai/api/v1", {}, "k-or"),
        ("openai", "https://api.openai.com/v1", {}, "k-oa"),
        ("openai", "https://API.openai.com:443/v1/chat/completions", {}, "k-oa"),
        ("anthropic", "https://api.anthropic.com/v1", {}, "k-an"),
        ("openai_compatible", "https://evil.example/v1", {}, ""),
        ("openai", "https://evil.example/v1", {}, ""),
        ("openai", "http://api.openai.com/v1", {}, ""),
        ("openai", "https://api.openai.com.evil.example/v1", {}, ""),
        ("openai", "https://api.openai.com@evil.example/v1", {}, ""),
        ("openai", "https://api.openai.com:8443/v1", {}, ""),
        ("anthropic", "https://proxy.example/v1", {}, ""),
        ("ollama", "http://127.0.0.1:11434/v1", {}, ""),
        ("openai_compatible", "https://h/v1", {"api_key": "own", "base_url": "https://h/v1"}, "own"),
        ("openai", "https://h/v1", {"api_key": "own", "base_url": "https://h/v1"}, "own"),
        ("openai_compatible", "https://other/v1", {"api_key": "own", "base_url": "https://h/v1"}, ""),
        ("openai", "https://api.openai.com/v1", {"api_key": "own", "base_url": "https://h/v1"}, "k-oa"),
        ("ollama", "http://127.0.0.1:11434/v1", {"api_key": "own"}, ""),
    ],
)
def test_a_key_goes_to_the_host_it_belongs_to_and_nowhere_else(
    provider: str, base_url: str, settings: dict[str, Any], key: str
) -> None:
    assert key_for(provider, base_url, ModelSettings(**settings), ALL).value == key


def test_the_keys_in_the_setting_and_in_cru_api_key_are_for_openrouter_unless_a_base_url_is_set() -> None:
    openrouter = PROVIDERS["openrouter"].base_url
    assert key_for("openrouter", openrouter, ModelSettings(api_key="own"), {}).value == "own"
    assert key_for("openrouter", openrouter, ModelSettings(), {"CRU_API_KEY": "own"}).name == "CRU_API_KEY"
    assert key_for("c", "http://h/v1", ModelSettings(base_url="http://h/v1"), {"CRU_API_KEY": "own"}).value == "own"


def test_what_a_server_gets_to_see_is_its_own_key() -> None:
    async def main(settings: dict[str, Any], env: dict[str, str]) -> dict[str, str]:
        async with serve(hello()) as wire:
            given = ModelSettings(base_url=wire.url, **settings)
            transport = Transport()
            choice = await choose_model(given, env, Path("/nonexistent"), print, servers=NOBODY)
            model = build_model(choice, given, env, transport)
            assert model.tools_by_default
            try:
                async for _ in model.stream(model.encode(Request(choice.model))):
                    pass
            finally:
                await transport.close()
            return wire.requests[0].headers

    without = asyncio.run(main({"model": "m"}, ALL))
    assert not any(key in json.dumps(without) for key in ALL.values())
    assert "authorization" not in without
    assert asyncio.run(main({"model": "m", "api_key": "own"}, ALL))["authorization"] == "Bearer own"


def test_anthropic_servers_get_their_own_path_and_headers() -> None:
    async def main() -> Any:
        async with serve(status(400, "no")) as wire:
            given = ModelSettings(model="anthropic_compatible:m", base_url=wire.url, api_key="own")
            transport = Transport()
            choice = await choose_model(given, {}, Path("/nonexistent"), print, servers=NOBODY)
            model = build_model(choice, given, {}, transport)
            with pytest.raises(ModelRefused):
                await anext(aiter(model.stream(model.encode(Request(choice.model)))))
            await transport.close()
            return wire.requests[0]

    seen = asyncio.run(main())
    assert seen.line == "POST /v1/messages HTTP/1.1"
    assert (seen.headers["x-api-key"], seen.headers["anthropic-version"]) == ("own", "2023-06-01")
    assert "authorization" not in seen.headers


@pytest.mark.parametrize(
    ("settings", "env", "says"),
    [
        ({}, {OR: "k"}, "no model is named for openrouter"),
        ({"base_url": "http://h/v1"}, {}, "no model is named for openai_compatible"),
        ({"model": "openai:gpt-5"}, {OR: "k"}, "set OPENAI_API_KEY"),
        ({"model": "gpt-5"}, {}, "no provider is configured for the model 'gpt-5'"),
        ({"model": "gemini:x"}, ALL, "not available yet"),
        ({"model": "scriptd:x"}, {}, "did you mean scripted:?"),
        ({"model": "scriptd:/x/y"}, ALL, "there is no provider `scriptd`"),
        ({"model": "Antropic:claude"}, {OR: "k"}, "did you mean anthropic:?"),
        ({"model": "scripted:"}, {}, "no model is named after the colon of `scripted:`"),
        ({"model": "openai: "}, ALL, "no model is named after the colon"),
        ({"model": ":m"}, ALL, "no provider is named before the colon of `:m`"),
        ({"model": "  "}, {OR: "k"}, "no model is named for openrouter"),
        ({"model": "local:smollm2"}, {}, "cru models pull smollm2"),
        ({"model": "local:/no/such.gguf"}, {}, "no such file"),
        ({"model": "scripted:/no/such"}, {}, "no such file"),
        ({"model": "openai_compatible:m"}, {}, "needs the setting base_url"),
        ({"model": "anthropic_compatible:m"}, {}, "needs the setting base_url"),
        ({"model": "openai:m", "base_url": "http://h/v1", "api_key": "own"}, {}, "set OPENAI_API_KEY"),
        ({}, {}, "pip install xllamacpp"),
    ],
)
def test_without_a_model_the_next_step_is_named(settings: dict[str, Any], env: dict[str, str], says: str) -> None:
    with pytest.raises(NoModel) as caught:
        pick(env, **settings)
    assert says in str(caught.value)
    assert caught.value.code == 5


def test_nothing_configured_names_the_three_ways() -> None:
    with pytest.raises(NoModel) as caught:
        pick()
    assert all(word in caught.value.hint for word in (OR, "base_url", "Ollama", "cru models pull smollm2"))


def test_an_alias_has_an_id_a_window_and_parameters_that_win() -> None:
    api = {"temperature": 0.1, "reasoning": {"effort": "high", "exclude": True}}
    alias = ModelAlias("openai:gpt-5", 1000, {"temperature": 0.9, "reasoning": {"max_tokens": 5}})
    choice = pick(ALL, model="fast", api=api, models={"fast": alias})
    assert (choice.provider, choice.model, choice.context_window) == ("openai", "gpt-5", 1000)
    assert choice.parameters == {"temperature": 0.9, "reasoning": {"exclude": True, "max_tokens": 5}}


def test_facts_about_an_id_hold_with_and_without_its_prefix() -> None:
    models = {"gpt-5": ModelAlias(context_window=7)}
    assert pick(ALL, model="gpt-5", models=models).context_window == 7
    assert pick(ALL, model="openai:gpt-5", models=models).context_window == 7


def probe(*steps: Step, **settings: Any) -> tuple[ModelChoice, list[str], list[str]]:
    async def main() -> tuple[ModelChoice, list[str], list[str]]:
        said: list[str] = []
        async with serve(*steps) as wire:
            server = Provider("ollama", "openai", wire.url)
            choice = await choose_model(
                ModelSettings(**settings), {}, Path("/nonexistent"), said.append, servers=[server]
            )
            return choice, said, [seen.line for seen in wire.requests]

    return asyncio.run(main())


MODELS = {"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:8b"}, {"id": "llama"}]}


def test_a_local_server_is_found_named_and_used() -> None:
    choice, said, asked = probe(whole(MODELS))
    assert (choice.provider, choice.model) == ("ollama", "qwen3:8b")
    assert "using qwen3:8b of ollama at http://127.0.0.1:" in said[0]
    assert asked == ["GET /v1/models HTTP/1.1"]
    assert probe(whole(MODELS), model="llama")[0].model == "llama"


@pytest.mark.parametrize("step", [status(404), whole("not json"), whole({"data": []}), whole({"data": None})])
def test_somebody_else_on_that_port_is_no_model(step: Step) -> None:
    with pytest.raises(NoModel, match="no model is configured"):
        probe(step)


def test_a_named_model_that_the_local_server_does_not_have_is_an_error_that_lists_what_it_has() -> None:
    with pytest.raises(NoModel, match=r"'gpt-5'; ollama here offers qwen3:8b, llama"):
        probe(whole(MODELS), model="gpt-5")


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed (extra `local`)")
def test_the_small_model_is_used_if_it_is_there_and_nothing_else_is(tmp_path: Path) -> None:
    weights_path("smollm2", tmp_path).write_bytes(b"GGUF")
    choice = pick(folder=tmp_path)
    assert (choice.provider, choice.model, choice.base_url) == (
        "local",
        "smollm2",
        str(weights_path("smollm2", tmp_path)),
    )


def test_no_key_shows_in_what_may_be_printed() -> None:
    key = key_for("openai", "https://api.openai.com/v1", ModelSettings(), {OA: " k-oa\n"})
    assert key.value == "k-oa"
    assert "k-oa" not in repr(key) + repr(RequestFacts("p", "m", OA, "k-oa"))


def test_secrets_are_all_keys_and_children_lose_their_variables() -> None:
    assert own_keys(ModelSettings(api_key="own"), {**ALL, "CRU_API_KEY": "k-or"}) == ["own", "k-or", "k-oa", "k-an"]
    assert {*ALL, "CRU_API_KEY"} <= set(KEY_VARIABLES)


@pytest.mark.parametrize(
    ("api", "says"),
    [
        ({"temprature": 1}, "api: unknown key `temprature`, did you mean `temperature`?"),
        ({"temperature": "hot"}, "api.temperature: Expected `float`"),
        ({"reasoning": {"efort": "low"}}, "did you mean `reasoning.effort`?"),
        ({"reasoning": {"effort": "huge"}}, "api.reasoning.effort: Invalid enum value 'huge'"),
        ({"reasoning": {"effort": "low", "max_tokens": 1}}, "exclude each other"),
        ({"reasoning": True}, "expected a table"),
    ],
)
def test_mistakes_in_api_are_named(api: dict[str, Any], says: str) -> None:
    assert says in "\n".join(check_api(api))


def test_good_api_tables_have_nothing_to_say() -> None:
    assert check_api({"temperature": 1, "stop": ["x"], "tool_choice": "auto", "reasoning": {"effort": "low"}}) == []
    assert check_api({}) == []
    assert merge_api({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
    assert "reasoning.effort" in API_KEYS


def test_a_scripted_model_is_built_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_text("text: hi\n")
    choice = pick(model=f"scripted:{path}")
    model = build_model(choice, ModelSettings(), {}, Transport())
    assert (model.provider, model.name) == ("scripted", str(path))


class KeptServers(KeyEnvironment):
    """An environment whose kept keys are for servers at these addresses."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses

    def __getitem__(self, name: str) -> str:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def servers(self) -> dict[str, str]:
        return {address: address for address in self._addresses}


@pytest.mark.parametrize(
    ("kept", "settings", "address"),
    [
        (["http://h/v1"], {}, "http://h/v1"),
        (["http://h/v1", "http://i/v1"], {}, ""),
        ([], {}, ""),
        (["http://h/v1"], {"base_url": "http://other/v1"}, "http://other/v1"),
        (["http://h/v1"], {"model": "openai:gpt-5"}, PROVIDERS["openai"].base_url),
        (["http://h/v1"], {"model": "openai_compatible:m"}, "http://h/v1"),
        (["http://h/v1"], {"model": "openai_compatible:m", "base_url": "http://other/v1"}, "http://other/v1"),
    ],
)
def test_the_one_server_whose_key_is_kept_is_asked(kept: list[str], settings: dict[str, Any], address: str) -> None:
    given = ModelSettings(**{"model": "m", **settings})
    assert find_address("", given, KeptServers(*kept)) == address


def test_of_several_servers_whose_keys_are_kept_none_is_guessed() -> None:
    with pytest.raises(NoModel, match="needs the setting base_url"):
        find_address("", ModelSettings(model="openai_compatible:m"), KeptServers("http://h/v1", "http://i/v1"))


def test_what_is_missing_after_a_login_is_the_name_of_a_model() -> None:
    with pytest.raises(NoModel, match=r"no model is named for \S+ \(`cru login` has kept a key for it\)") as caught:
        asyncio.run(
            choose_model(ModelSettings(), KeptServers("http://h/v1"), Path("/nonexistent"), print, servers=NOBODY)
        )
    assert "`cru models list openai_compatible` shows its models" in caught.value.hint
