"""Item 6 of the acceptance list: every setting that reaches the model does so from every layer, and the stronger layer wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.kit import Call, HomeDir, Received, Reply, cru, server

Seen = Callable[[list[Received]], Any]


def body(key: str) -> Seen:
    return lambda requests: requests[0].body.get(key)


def header(requests: list[Received]) -> str:
    return requests[0].headers["authorization"].removeprefix("Bearer ")


def path(requests: list[Received]) -> str:
    return requests[0].path.split("/")[1]


def system(*texts: str) -> Seen:
    """Which of these texts the system prompt has."""
    return lambda requests: [text for text in texts if text in requests[0].body["messages"][0]["content"]]


def offers(requests: list[Received]) -> bool:
    return bool(requests[0].body.get("tools"))


# Setting → its value in the four layers (weakest first), and what of the requests shows it.
TABLE: dict[str, tuple[tuple[Any, Any, Any, Any], Seen]] = {
    "model": (("one", "two", "three", "four"), body("model")),
    "api_key": (("one", "two", "three", "four"), header),
    "base_url": (("URL/one", "URL/two", "URL/three", "URL/four"), path),
    "username": (("ann", "bob", "cyd", "dan"), lambda requests: system("ann", "bob", "cyd", "dan")(requests)[0]),
    "no_tool_calls": ((True, False, True, False), lambda requests: not offers(requests)),
    "fuel": ((5, 4, 3, 2), len),
}
NESTED: dict[str, tuple[tuple[Any, Any, Any], Seen]] = {
    "api.temperature": ((0.1, 0.2, 0.3), body("temperature")),
    "api.max_tokens": ((11, 12, 13), body("max_tokens")),
    "api.top_p": ((0.5, 0.6, 0.7), body("top_p")),
    "api.seed": ((1, 2, 3), body("seed")),
}
"""Tables have no environment variable."""


def toml(settings: Mapping[str, Any]) -> str:
    said = {True: "true", False: "false"}
    return "".join(
        f"{k} = {said[v] if isinstance(v, bool) else repr(v) if not isinstance(v, str) else chr(34) + v + chr(34)}\n"
        for k, v in settings.items()
    )


def ask(home: HomeDir, key: str, values: tuple[Any, ...], layers: tuple[str, ...]) -> list[Received]:
    """One run with a value in each of these layers; what the provider was sent."""
    numbers = iter(range(99))

    def reply(request: Received) -> Reply:
        return Reply(calls=[Call("bash", {"command": f"echo {next(numbers)}"})]) if key == "fuel" else Reply("yes")

    with server(reply) as model:
        root = model.url.removesuffix("/v1")
        given = {
            layer: v.replace("URL", root) if isinstance(v, str) else v for layer, v in zip(layers, values, strict=False)
        }
        home.configure('mode = "trust"\n' + (toml({key: given["user"]}) if "user" in given else ""), url=model.url)
        folder = home.context()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "local.toml").write_text(toml({key: given["context"]}) if "context" in given else "")
        env = {f"CRU_{key.upper()}": str(given["environment"]).lower()} if "environment" in given else {}
        words = ("-s", f"{key}={str(given['line']).lower()}") if "line" in given else ()
        cru(*words, "go", home=home, env=env)
        return model.requests


@pytest.mark.sample(6)
@pytest.mark.parametrize("upto", range(4))
@pytest.mark.parametrize("key", TABLE)
def test_6_each_layer_reaches_the_request_and_wins_over_those_before(home: HomeDir, key: str, upto: int) -> None:
    """config.toml, the environment, the context's local.toml, the command line."""
    values, seen = TABLE[key]
    layers = ("user", "environment", "context", "line")[: upto + 1]
    expected = values[upto].removeprefix("URL/") if isinstance(values[upto], str) else values[upto]
    assert seen(ask(home, key, values, layers)) == expected


@pytest.mark.sample(6)
@pytest.mark.parametrize("upto", range(3))
@pytest.mark.parametrize("key", NESTED)
def test_6_parameters_do_too(home: HomeDir, key: str, upto: int) -> None:
    values, seen = NESTED[key]
    assert seen(ask(home, key, values, ("user", "context", "line")[: upto + 1])) == values[upto]


def test_6_the_window_of_a_model_is_that_of_the_strongest_layer(home: HomeDir) -> None:
    """It shows in what `cru -n` says, and in the compaction that it sets off."""
    home.configure("context_window_limit = 900\n")
    home.context().mkdir(parents=True)
    assert cru("-n", "context_window_limit", home=home).out == "900\n"
    (Path(home.context()) / "local.toml").write_text("context_window_limit = 800\n")
    assert cru("-n", "context_window_limit", home=home).out == "800\n"
    assert cru("-s", "context_window_limit=700", "-n", "context_window_limit", home=home).out == "700\n"


@pytest.mark.parametrize(("value", "shown"), [("true", True), ("false", False)])
def test_6_the_reflection_reaches_the_system_prompt_if_it_is_on(home: HomeDir, value: str, shown: bool) -> None:
    with server([Reply("yes")]) as model:
        home.configure(f"reflection_enabled = {'false' if shown else 'true'}\n", url=model.url)
        (home.cru / "prompts").mkdir()
        (home.cru / "prompts" / "reflection.md").write_text("patience is a virtue")
        home.context().mkdir(parents=True)
        (home.context() / "local.toml").write_text(f"reflection_enabled = {value}\n")
        cru("go", home=home)
        assert ("patience is a virtue" in model.requests[0].body["messages"][0]["content"]) is shown
