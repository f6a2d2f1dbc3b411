"""The road of sub-agents: every kind of guard holds for a call made inside of one, whether somebody waits for it, at every depth, and where
a script has opened the conversation (`cru.sessions`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.core.agents.support import ClosedWorld, call, records, script, task_results
from tests.kit import HomeDir
from tests.roads import command_hooks, roads

DONE = "---\ntext: all is done\n"
NO = {"cancel": True, "reason": "no entry"}


def _touch(name: str) -> str:
    """A line of a script that makes a file."""
    return "call: bash " + json.dumps({"command": f"touch {name}"})


def _write_hook(name: str) -> str:
    return "call: write " + json.dumps({"file_path": f".git/hooks/{name}", "content": "x"})


class Guard(Struct, frozen=True):
    """prepare: writes what guards into a home; settings: of the session; why: what the model reads of a refused call"""

    prepare: Callable[[HomeDir], object] = lambda here: None
    settings: dict[str, Any] = {}
    why: str = "no entry"


def _hook(dialect: str) -> Guard:
    def prepare(here: HomeDir) -> None:
        command_hooks.write(here, dialect, "tool:before_call", NO)
        if dialect == "crush":
            path = here.path / command_hooks.PLACES[dialect]
            value = json.loads(path.read_text())
            value["hooks"]["PreToolUse"][0]["include_sub_agents"] = True
            path.write_text(json.dumps(value))

    return Guard(prepare, {"hooks": {"dialects": ["crush", "claude", "codex", "gemini"]}})


def _plugin(language: str) -> Guard:
    return Guard(lambda here: roads.write_rule(here, language, "tool:before_call", NO, "bash"))


def _claude_rule(here: HomeDir) -> None:
    path = here.path / command_hooks.PLACES["claude"]
    path.parent.mkdir()
    path.write_text(json.dumps({"permissions": {"deny": ["Bash(touch *)"]}}))


GUARDS: dict[str, Guard] = {
    **{name: _hook(name) for name in command_hooks.PLACES},
    "lua": _plugin("lua"),
    "python": _plugin("python"),
    "tools:select": Guard(
        lambda here: roads.add_plugin(
            here,
            "rules.lua",
            'cru.on("tools:select", function(ctx, event) return { tools = { "task", "read" } } end)\n'
            'cru.on("tool:before_call", function(ctx, event) if event.name == "bash" then return { cancel = true, '
            'reason = ctx.is_sub_agent and "no entry" or "main" } end end)\n',
        )
    ),
    "deny rule": Guard(settings={"permissions": {"deny": ["bash:touch *"]}}, why="the rule `bash:touch *`"),
    "rule of Claude": Guard(_claude_rule, {"hooks": {"dialects": ["claude"]}}, "the rule `bash:touch *`"),
    "mode": Guard(settings={"mode": "plan"}, why="plan"),
}


FILES = ("waited", "nested", "behind", "session")
SESSION = """
cru.on("session:started", function()
  local session = assert(cru.sessions.create({ agent_card = "general", model = "%s" }))
  for _ in assert(cru.sessions.send_and_collect(session.id, "go")) do end
end)
"""


def play(tmp_path: Path, guard: Guard, line: Callable[[str], str] = _touch) -> ClosedWorld:
    """A main agent whose agents below run a command each: one that it waits for, one below it, one in the background, one of a script."""
    here = HomeDir(tmp_path, tmp_path / "project")
    (tmp_path / "home" / "plugins").mkdir(parents=True)
    here.cru.symlink_to("home")
    guard.prepare(here)
    run = {name: script(tmp_path, name, f"{line(name)}\n---\ntext: no\n") for name in FILES}
    roads.add_plugin(here, "scout.lua", SESSION % run["session"])
    above = script(tmp_path, "above", f"{call('general', run['nested'])}\n---\ntext: no\n")
    calls = [call("general", run["waited"]), call("general", above), call("general", run["behind"], background=True)]
    world = ClosedWorld(tmp_path, "\n".join(calls) + f"\n{DONE}{DONE}", settings={"mode": "trust", **guard.settings})
    world.run("go")
    return world


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_holds_in_sub_agents(tmp_path: Path, name: str) -> None:
    guard = GUARDS[name]
    world = play(tmp_path, guard)
    runs = [record for record in records(world) if record.depth == 2 or record.agent == "general"]
    refused = [text for record in runs for text in task_results(world, record) if guard.why in text]
    assert len(refused) >= 4, [(record.depth, task_results(world, record)) for record in runs]
    assert not [file for file in FILES if (tmp_path / "project" / file).exists()]


def test_without_a_guard_the_calls_are_made(tmp_path: Path) -> None:
    world = play(tmp_path, Guard())
    assert {record.depth for record in records(world)} == {1, 2}
    assert all((tmp_path / "project" / file).exists() for file in FILES)


def test_a_protected_path_is_protected_from_sub_agents(tmp_path: Path) -> None:
    world = play(tmp_path, Guard(settings={"mode": "auto"}), _write_hook)
    refused = [
        text for record in records(world) for text in task_results(world, record) if "nobody can be asked" in text
    ]
    assert len(refused) == 4 and not (tmp_path / "project" / ".git").exists()


def test_hooks_of_crush_hear_the_call_of_the_agent_only_unless_they_say_otherwise(tmp_path: Path) -> None:
    def prepare(here: HomeDir) -> None:
        path = here.path / command_hooks.PLACES["crush"]
        path.parent.mkdir(parents=True)
        command = f'printf "%s %s\\n" "$CRUSH_TOOL_NAME" "$CRUSH_IS_SUB_AGENT" >> {tmp_path}/heard'
        path.write_text(json.dumps({"hooks": {"PreToolUse": [{"command": command}]}}))

    play(tmp_path, Guard(prepare, {"hooks": {"dialects": ["crush"]}}))
    assert (tmp_path / "heard").read_text().splitlines() == ["agent false"] * 4
    assert (tmp_path / "project" / "nested").exists()
