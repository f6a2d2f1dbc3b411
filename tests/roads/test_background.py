"""The road of commands in the background: every kind of guard holds for their start, for what is typed into them, for their output and for
their end, in plain runs and in those with --strict-hooks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec import Struct
from tests.kit import Call, Done, HomeDir, Received, Reply, cru, server
from tests.roads import command_hooks, roads

from cru.core.hooks.dialects import FOOTPRINTS

NO = {"cancel": True, "reason": "no entry"}
START = Call("bash", {"command": "cat >typed", "background": True, "stdin": True})
LUA = """
cru.on("tool:before_call", function(ctx, event)
  if event.name ~= "bash" or event.args.input_to then return { cancel = true, reason = "no entry" } end
end)
"""
PYTHON = """
from cru import on

def guard(ctx, event):
    if event["name"] != "bash" or event["args"].get("input_to"):
        return {"cancel": True, "reason": "no entry"}

on("tool:before_call", guard)
"""
NAMES = {
    "crush": ("^bash$", "^job_output$", "^job_kill$"), "claude": ("Bash", "TaskOutput", "TaskStop"),
    "codex": ("Bash", "task_output", "task_cancel"), "gemini": ("run_shell_command", "task_output", "task_cancel"),
    "cru": ("^bash$", "^task_output$", "^task_cancel$"),
}  # fmt: skip
"""What a dialect's matchers call the three tools."""


class Guard(Struct, frozen=True):
    """prepare: writes what guards into a home · config: what guards in config.toml · why: what the model reads of a refused call"""

    prepare: Callable[[HomeDir], object] = lambda here: None
    config: str = ""
    why: str = "no entry"


def rules(*texts: str) -> str:
    return f"[permissions]\ndeny = {json.dumps(texts)}\n"


def claude_rules(*texts: str) -> Callable[[HomeDir], object]:
    def prepare(here: HomeDir) -> None:
        path = here.path / command_hooks.PLACES["claude"]
        path.parent.mkdir()
        path.write_text(json.dumps({"permissions": {"deny": texts}}))

    return prepare


def hooks_after_start(dialect: str) -> Callable[[HomeDir], object]:
    """Hooks that let a command start, and refuse all that is done with it."""

    def prepare(here: HomeDir) -> None:
        hook = command_hooks.DENIALS[dialect]["tool:before_call"]
        path = here.path / command_hooks.PLACES[dialect]
        path.parent.mkdir(parents=True, exist_ok=True)
        typing = 'case "$(cat)" in *\'"input_to"\'*) %s ;; esac'
        commands = [typing % hook.command("no entry"), hook.command("no entry"), hook.command("no entry")]
        entries: list[dict[str, Any]] = []
        for name, command in zip(NAMES[dialect], commands, strict=True):
            entry = {"matcher": name, "command": command}
            nested = {"matcher": name, "hooks": [{"type": "command", "command": command}]}
            entries.append(entry if dialect in command_hooks.FLAT else nested)
        path.write_text(json.dumps({"hooks": {hook.event: entries}}))

    return prepare


def program_after_start(here: HomeDir) -> None:
    path = here.path / command_hooks.PLACES[command_hooks.PROGRAM]
    schema = json.dumps({"name": "rules", "description": "rules", "hooks": ["pre_tool"]})
    no = command_hooks.DENIALS[command_hooks.PROGRAM]["tool:before_call"].command("no entry")
    lets_in = '*\'"tool_name":"bash"\'*'
    path.write_text(
        f"#!/bin/sh\nif [ \"$1\" = --schema ]; then echo '{schema}'; exit; fi\n"
        f'case "$(cat)" in *input_to*) {no} ;; {lets_in}) ;; *) {no} ;; esac\n'
    )
    path.chmod(0o755)


def plugin(name: str, source: str) -> Callable[[HomeDir], object]:
    return lambda here: roads.add_plugin(here, name, source)


def writes(dialect: str) -> Callable[[HomeDir], object]:
    return lambda here: roads.write_rule(here, dialect, "tool:before_call", NO, "bash")


AT_START: dict[str, Guard] = {
    **{name: Guard(writes(name)) for name in (*command_hooks.PLACES, "lua", "python")},
    "deny rule": Guard(config=rules("bash:cat *"), why="the rule `bash:cat *`"),
    "rule of Claude": Guard(claude_rules("Bash(cat *)"), why="the rule `bash:cat *`"),
    "mode": Guard(config='mode = "plan"\n', why="plan mode"),
}
AFTER_START: dict[str, Guard] = {
    **{name: Guard(hooks_after_start(name)) for name in NAMES},
    command_hooks.PROGRAM: Guard(program_after_start),
    "lua": Guard(plugin("rules.lua", LUA)),
    "python": Guard(plugin("rules.py", PYTHON)),
    "deny rule": Guard(config=rules("bash:hello *", "task_output", "task_cancel"), why="the rule `"),
    "deny rule on the receiver": Guard(config=rules("input_to:cat *", "task_output", "task_cancel"), why="the rule `"),
    "rule of Claude": Guard(claude_rules("Bash(hello:*)", "BashOutput", "KillShell"), why="the rule `"),
}
FLAGS = {"plain": (), "strict": ("--strict-hooks",)}


def play(here: HomeDir, guard: Guard, flags: tuple[str, ...]) -> tuple[Done, list[str]]:
    """A model that starts a command and does everything with it; what it reads of each call."""

    def model(request: Received) -> Reply:
        results = [m["content"] for m in request.body["messages"] if m["role"] == "tool"]
        if not results:
            return Reply(calls=[START])
        task = re.search(r"as task (\w+)", results[0])
        if len(results) > 3 or task is None:
            return Reply("done")
        calls = [
            Call("bash", {"command": "hello there", "input_to": task[1]}),
            Call("task_output", {"id": task[1]}),
            Call("task_cancel", {"id": task[1]}),
        ]
        return Reply(calls=[calls[len(results) - 1]])

    (here.cru / "plugins").mkdir(parents=True, exist_ok=True)
    guard.prepare(here)
    mode = () if "mode" in guard.config else ("-t",)
    with server(model) as serving:
        here.configure(guard.config + command_hooks.HOOKS, serving.url)
        done = cru(*mode, *flags, "go", home=here)
        messages = serving.requests[-1].body["messages"]
    return done, [message["content"] for message in messages if message["role"] == "tool"]


@pytest.mark.sample(8)
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("guard", AT_START.values(), ids=AT_START)
def test_a_guard_keeps_a_command_from_starting(home: HomeDir, guard: Guard, flags: tuple[str, ...]) -> None:
    done, results = play(home, guard, flags)
    assert done.code == 0, done.err
    assert len(results) == 1 and guard.why in results[0]
    assert not (home.project / "typed").exists() and not list(home.context().glob("tasks/*"))


@pytest.mark.sample(2)
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("guard", AFTER_START.values(), ids=AFTER_START)
def test_a_guard_keeps_everything_from_a_command_that_runs(home: HomeDir, guard: Guard, flags: tuple[str, ...]) -> None:
    done, (started, *others) = play(home, guard, flags)
    assert done.code == 0 and "ended with the session: cat >typed" in done.err, done.err
    assert "runs in the background as task" in started
    assert [guard.why in text for text in others] == [True, True, True], others
    typed = home.project / "typed"  # the shell may have been ended before it made it
    assert not typed.exists() or typed.read_text() == ""


def test_without_a_guard_all_of_it_is_done(home: HomeDir) -> None:
    done, (started, typed, output, ended) = play(home, Guard(), ())
    assert (done.code, done.err) == (0, "")
    assert typed.startswith("[typed") and "it runs, for" in output and "is ended, with everything" in ended
    assert "runs in the background" in started


PIECES = ("echo r\\", "m kept \\", "--force")


@pytest.mark.sample(2)
@pytest.mark.parametrize("dialect", NAMES)
def test_hooks_see_what_is_typed_in_pieces_as_a_whole(home: HomeDir, dialect: str) -> None:
    hook = command_hooks.DENIALS[dialect]["tool:before_call"]
    command = f"case \"$(cat)\" in *'kept'*'--force'*) {hook.command('no entry')} ;; esac"
    path = home.path / command_hooks.PLACES[dialect]
    path.parent.mkdir(parents=True, exist_ok=True)
    entry: dict[str, Any] = {"matcher": NAMES[dialect][0], "command": command}
    nested = {"matcher": NAMES[dialect][0], "hooks": [{"type": "command", "command": command}]}
    path.write_text(json.dumps({"hooks": {hook.event: [entry if dialect in command_hooks.FLAT else nested]}}))

    def model(request: Received) -> Reply:
        results = [m["content"] for m in request.body["messages"] if m["role"] == "tool"]
        if not results:
            return Reply(calls=[START])
        task = re.search(r"as task (\w+)", results[0])
        assert task is not None
        if len(results) > len(PIECES):
            return Reply("done")
        return Reply(calls=[Call("bash", {"command": PIECES[len(results) - 1], "input_to": task[1]})])

    with server(model) as serving:
        home.configure(command_hooks.HOOKS, serving.url)
        done = cru("-t", "go", home=home)
        texts = [m["content"] for m in serving.requests[-1].body["messages"] if m["role"] == "tool"]
    assert done.code == 0, done.err
    assert ["no entry" in text for text in texts] == [False, False, False, True], texts


TABLES: dict[str, Mapping[str, object]] = {
    "NAMES of tests/roads/test_background.py": NAMES,
    "BASH of tests/roads/command_hooks.py": command_hooks.BASH,
    "PLACES of tests/roads/command_hooks.py": command_hooks.PLACES,
    "DENIALS of tests/roads/command_hooks.py": command_hooks.DENIALS,
    "REWRITES of tests/roads/command_hooks.py": command_hooks.REWRITES,
}


@pytest.mark.parametrize("table", TABLES)
def test_no_dialect_is_left_out(table: str) -> None:
    missing = sorted(FOOTPRINTS.keys() - TABLES[table].keys())
    also = "also to FLAT there if its entries are flat, and to TYPED if an event of it hears only what a person typed"
    assert missing == [], f"add {', '.join(missing)} to {table}; {also}"
    assert TABLES[table].keys() <= {*FOOTPRINTS, command_hooks.PROGRAM}


def test_every_dialect_and_programs_guard_both_ways() -> None:
    assert {*FOOTPRINTS, command_hooks.PROGRAM} <= AT_START.keys() & AFTER_START.keys()
