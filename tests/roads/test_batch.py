"""The road of batches: every kind of guard holds for the calls and prompts of an item, its sub-agents included, here and in a worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import HomeDir, cru, home
from tests.roads import command_hooks, roads
from tests.roads.test_sub_agents import GUARDS, Guard

NO = {"cancel": True, "reason": "no entry"}
HERE, WORKER = "cru batch", "cru worker"
DIALECTS = ("lua", "python", *command_hooks.PLACES)
PROMPT_GATES = [
    (dialect, gate)
    for dialect in DIALECTS
    for gate in ("message:received", "message:before_send")
    if dialect not in command_hooks.PLACES or gate in command_hooks.DENIALS[dialect]
]


def _script(here: HomeDir, name: str, text: str) -> str:
    path = here.project / f"{name}.txt"
    path.write_text(text)
    return f"scripted:{path}"


def _toml(settings: dict[str, Any]) -> str:
    """Tables of one level."""
    plain = [f"{key} = {json.dumps(value)}" for key, value in settings.items() if not isinstance(value, dict)]
    tables = [
        f"[{key}]\n" + "\n".join(f"{name} = {json.dumps(inner)}" for name, inner in value.items())
        for key, value in settings.items()
        if isinstance(value, dict)
    ]
    return "\n".join([*plain, *tables]) + "\n"


def play(
    tmp_path: Path, guard: Guard, road: str, env: dict[str, str] | None = None
) -> tuple[HomeDir, dict[str, dict[str, Any]]]:
    """Two items that touch a file, one of them through a sub-agent; what came of them."""
    here = home(tmp_path)
    here.cru.mkdir()
    guard.prepare(here)
    here.configure(_toml({"mode": "trust", **guard.settings}))
    touch = {
        name: f"call: bash {json.dumps({'command': f'touch {name}'})}\n---\ntext: done\n" for name in ("own", "below")
    }
    below = _script(here, "below", touch["below"])
    task = json.dumps({"agent": "general", "prompt": "work", "description": "work", "model": below})
    items = [
        {"prompt": "go", "id": "own", "model": _script(here, "own", touch["own"])},
        {"prompt": "go", "id": "task", "model": _script(here, "task", f"call: task {task}\n---\ntext: done\n")},
    ]
    (here.project / "p.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, items)))
    batch = ("batch", "p.jsonl", "--name", "n", "--out", "r.jsonl")
    if road == WORKER:
        assert cru(*batch, "--queue", home=here, env=env).code == 0
        assert cru("worker", "--once", "--concurrency", "2", home=here, env=env).code == 0
    run = cru(*batch, home=here, env=env)
    lines = [msgspec.json.decode(line) for line in (here.project / "r.jsonl").read_bytes().splitlines()]
    assert len(lines) == 2, run
    return here, {line["id"]: line for line in lines}


def _results(here: HomeDir) -> list[str]:
    """What the model read of calls, in both items and the sub-agent."""
    logs = [path for name in ("n-own", "n-task") for path in here.context(name).rglob("context.jsonl")]
    entries = [msgspec.json.decode(line) for path in logs for line in path.read_bytes().splitlines()]
    return [entry["content"] for entry in entries if entry["entry_type"] == "tool_result"]


@pytest.mark.slow
@pytest.mark.pairwise("road", "name")
@pytest.mark.parametrize("road", [HERE, WORKER])
@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_of_calls_holds_in_items_and_below_them(
    tmp_path: Path, name: str, road: str, request: pytest.FixtureRequest
) -> None:
    env = request.getfixturevalue("fleet") if road == WORKER else None
    here, _ = play(tmp_path, GUARDS[name], road, env)
    # a list of tools that a plugin chose is told in its own words by the main agent
    why = [GUARDS[name].why, *(["main"] if name == "tools:select" else [])]
    refused = [text for text in _results(here) if any(word in text for word in why)]
    assert len(refused) >= 2, _results(here)
    assert not (here.project / "own").exists() and not (here.project / "below").exists()


@pytest.mark.slow
def test_without_a_guard_the_calls_are_made(tmp_path: Path) -> None:
    here, results = play(tmp_path, Guard(), HERE)
    assert {result["status"] for result in results.values()} == {"done"}
    assert (here.project / "own").exists() and (here.project / "below").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "gate"), PROMPT_GATES)
def test_a_guard_of_prompts_denies_an_item(tmp_path: Path, dialect: str, gate: str) -> None:
    hooks = {"hooks": {"dialects": ["crush", "claude", "codex", "gemini"]}}
    guard = Guard(lambda here: roads.write_rule(here, dialect, gate, NO), hooks)
    here, results = play(tmp_path, guard, HERE)
    assert {result["status"] for result in results.values()} == {"denied"}, results
    assert all("no entry" in result["error"] for result in results.values())
    assert not (here.project / "own").exists() and not (here.project / "below").exists()


def test_a_required_plugin_that_is_not_there_stops_every_item(tmp_path: Path) -> None:
    here, results = play(tmp_path, Guard(settings={"plugins.guard": {"required": True}}), HERE)
    assert {result["status"] for result in results.values()} == {"failed"}, results
    assert all("guard" in result["error"] for result in results.values()) and not (here.project / "own").exists()


def test_a_batch_cannot_be_started_by_a_model_without_being_judged(tmp_path: Path) -> None:
    """What an item may set, its mode included, is the word of who writes the file: starting `cru batch` is a command like others."""
    here = home(tmp_path)
    here.configure('mode = "ask"\n')
    (here.project / "p.jsonl").write_text('{"prompt": "x", "mode": "trust"}\n')
    model = _script(here, "m", 'call: bash {"command": "cru batch p.jsonl"}\n---\ntext: done\n')
    assert cru("--model", model, "go", home=here).code == 0
    assert not (here.cru / "fleet").exists()
