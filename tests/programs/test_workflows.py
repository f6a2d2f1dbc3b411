"""Workflows through the real command: one machine written in Lua and in Python, and the one that comes with cru.

`work` may read and run commands, `check` only reads and is left while a real command succeeds, `done` ends it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.kit import Done, HomeDir, cru, home, kill_at, start
from tests.kit.sandbox import needs_sandbox

from cru.features.workflows.protected import digest_protected

LUA = """
cru.fsm.define {
  name = "ship", initial = "work", about = "work, then check", %(more)s
  states = {
    work = { instruction = "Do the work.", tools = { "read", "ba*" }, to = { "check" }, %(work)s },
    check = { instruction = "Check it.", tools = { "read" }, to = { "done" }, back = { "work" }, exit = %(exit)s },
    done = { final = true, instruction = "Say goodbye." },
  },
}
"""
PYTHON = """
from cru import fsm

fsm.define({
    "name": "ship", "initial": "work", "about": "work, then check", %(more)s
    "states": {
        "work": {"instruction": "Do the work.", "tools": ["read", "ba*"], "to": ["check"], %(work)s},
        "check": {"instruction": "Check it.", "tools": ["read"], "to": ["done"], "back": ["work"], "exit": %(exit)s},
        "done": {"final": True, "instruction": "Say goodbye."},
    },
})
"""
SHELL = {"lua": '{ shell = "./check", timeout = 20 }', "py": '{"shell": "./check", "timeout": 20}'}
SOURCES = {"lua": LUA, "py": PYTHON}
# Succeeds from the third time on.
CHECK = '#!/bin/sh\necho x >> tries\nn=$(wc -l < tries)\necho "try $n"\ntest $n -ge 3\n'


def move(to: str, **more: str) -> str:
    return f"call: workflow {json.dumps({'to': to, **more})}"


class Ship:
    """A home with the machine in one language, a check in the project, and a scripted model."""

    def __init__(self, tmp_path: Path, language: str, **parts: str) -> None:
        self.home = home(tmp_path)
        self.language = language
        plugins = self.home.cru / "plugins"
        plugins.mkdir(parents=True)
        self.plugin = plugins / f"ships.{language}"
        self.define(**parts)
        self.check(CHECK)

    def define(self, **parts: str) -> None:
        given = {"more": "", "work": "", "exit": SHELL[self.language], **parts}
        self.plugin.write_text(SOURCES[self.language] % given)

    def check(self, source: str) -> None:
        path = self.home.project / "check"
        path.write_text(source)
        path.chmod(0o755)

    def model(self, *replies: str) -> None:
        """The next replies; `repeat` and calls as the scripted model reads them."""
        script = self.home.path / "model.txt"
        script.write_text("by: order\n" + "\n---\n".join(replies) + "\n")
        self.home.configure(f'model = "scripted:{script}"\nmode = "trust"\n')

    def run(self, *words: str, replies: tuple[str, ...] = (), code: int = 0) -> Done:
        if replies and "call_user" in replies[-1]:  # nobody answers: the agent asks once more, and the turn ends
            replies, code = (*replies, replies[-1]), 3
        self.model(*(replies or ("text: nothing to say",)))
        done = cru(*words, home=self.home)
        assert done.code == code, done
        assert "Traceback" not in done.err
        return done

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(cru("fsm", "status", "--json", home=self.home).out)["ship"]
        return found

    def results(self) -> list[str]:
        return [e["content"] for e in self.home.log() if e["entry_type"] == "tool_result"]

    def said(self, source: str) -> list[str]:
        return [e["content"] for e in self.home.log() if e.get("metadata", {}).get("source") == source]

    def sent(self) -> list[str]:
        """What prompts became, with what was put beside them."""
        return [json.dumps(e) for e in self.home.log() if e["entry_type"] == "message_resolved"]


@pytest.fixture(params=SOURCES)
def ship(tmp_path: Path, request: pytest.FixtureRequest) -> Ship:
    return Ship(tmp_path, request.param)


NOBODY = "[Nobody can answer. Decide for yourself and continue, and say what you assumed.]"
THROUGH = (move("check", note="worked"), move("done"), move("done"), move("done", note="third time"), "text: Goodbye.")


@pytest.mark.sample(1)
def test_a_check_fails_twice_then_lets_it_through(ship: Ship) -> None:
    done = ship.run("/ship build a boat", replies=THROUGH)
    assert done.out == "Goodbye.\n"
    entered, first, second, third = ship.results()
    assert entered.startswith(
        "[workflow ship: you are in the state check]\nCheck it.\nTools in this state: read, workflow, call_user."
    )
    assert "Before that `./check` must succeed" in entered
    assert first == "not moved, still in the state check of workflow ship: `./check` failed (exit status 1):\ntry 1"
    assert second.endswith("try 2")
    assert third == "[workflow ship: done, in the state done]\nSay goodbye."
    found = ship.status()
    assert (found["status"], found["state"], found["task"]) == ("done", "done", "build a boat")
    assert [(m["from"], m["to"], m["note"], m["by"]) for m in found["history"]] == [
        ("", "work", "build a boat", "user"),
        ("work", "check", "worked", "agent"),
        ("check", "done", "third time", "agent"),
    ]


@pytest.mark.sample(1)
def test_the_state_stands_beside_the_prompt_and_a_finished_workflow_binds_nobody(ship: Ship) -> None:
    ship.run("/ship build a boat", replies=THROUGH)
    assert "you are in the state work" in ship.sent()[0]
    assert "Task:" not in ship.sent()[0]
    ship.run("and now?", replies=("call: ls {}", "text: a boat"))
    assert "check" in ship.results()[-1]
    assert "[workflow" not in ship.sent()[-1]


def test_a_tool_that_the_state_does_not_allow_is_denied(ship: Ship) -> None:
    ship.run("/ship x", replies=(
        'call: write {"file_path": "a", "content": "b"}\ncall: bash {"command": "echo in work"}',
        move("check"), 'call: bash {"command": "touch cheated"}', move("work"), "text: tired\nrepeat: 4",
    ), code=3)  # fmt: skip
    written, ran, _, cheated, back = ship.results()
    assert "state work of workflow ship allows read, ba*, workflow, call_user" in written
    assert ran == "in work"
    assert "state check of workflow ship allows read" in cheated
    assert "you are in the state work" in back
    assert not (ship.home.project / "a").exists() and not (ship.home.project / "cheated").exists()
    assert not (ship.home.project / "tries").exists(), "the way back asks nobody"


def test_what_stands_behind_a_move_in_the_same_reply_is_not_run(ship: Ship) -> None:
    ship.run(
        "/ship x",
        replies=(f'{move("check")}\ncall: bash {{"command": "touch late"}}', "text: tired\nrepeat: 4"),
        code=3,
    )
    moved, late = ship.results()
    assert "you are in the state check" in moved
    assert "may change the state" in late
    assert not (ship.home.project / "late").exists()


def test_there_is_no_way_where_none_is_defined(ship: Ship) -> None:
    ship.run("/ship x", replies=(move("done"), move("chek"), "call: workflow {}", "text: tired\nrepeat: 4"), code=3)
    skipped, typo, nothing = ship.results()
    assert "no way from work to done; from work it goes to check" in skipped
    assert "did you mean `check`" in typo
    assert "`to`" in nothing or "to" in nothing.split()
    assert ship.status()["state"] == "work"


@pytest.mark.sample(1)
def test_an_agent_that_stops_is_told_what_is_missing_until_nothing_moves(ship: Ship) -> None:
    done = ship.run(
        "/ship x", replies=(move("check"), move("done"), "text: I am done.", "text: really\nrepeat: 9"), code=3
    )
    first = ship.said("continuation")[0]
    assert "the state check is not left yet" in first
    assert "Last time it was refused: `./check` failed (exit status 1):" in first
    assert '`to` = "done"' in first and "call_user" in first
    assert "3 legs without progress" in done.err
    assert len(ship.said("continuation")) == 4
    ship.run("go on then", replies=("text: no",) * 9, code=3)
    assert "you are in the state check" in ship.sent()[5], "a prompt of the user resumes it"
    assert "Task: x" in ship.sent()[5]


@pytest.mark.sample(1)
def test_a_question_to_the_user_is_not_talked_over(ship: Ship) -> None:
    replies = (
        'call: call_user {"message": "Which colour?"}',
        'call: call_user {"message": "Red?"}',
        "text: never asked",
    )
    done = ship.run("/ship x", replies=replies, code=3)
    assert done.out == "Which colour?\nRed?\n"
    assert ship.said("continuation") == [NOBODY]
    assert done.err.splitlines()[-1] == "cru: needs a person: Red?; open: workflow ship in the state work"
    ship.run("red", replies=THROUGH)
    assert ship.status()["state"] == "done"


def test_without_a_run_the_tool_says_so_and_everything_is_allowed(ship: Ship) -> None:
    ship.run("hello", replies=(f"{move('done')}\ncall: ls {{}}", "text: well"))
    refused, listed = ship.results()
    assert refused.startswith("no workflow is running")
    assert "check" in listed


LIMITS: dict[str, dict[str, str]] = {
    "lua": {"legs": 'limits = { legs = 2, on_limit = "check" }', "rounds": "limits = { rounds = 3 }", "all": "limits = { legs = 2 },"},
    "py": {"legs": '"limits": {"legs": 2, "on_limit": "check"}', "rounds": '"limits": {"rounds": 3}', "all": '"limits": {"legs": 2},'},
}  # fmt: skip


@pytest.mark.sample(1)
def test_a_limit_leads_on(ship: Ship) -> None:
    ship.define(work=LIMITS[ship.language]["legs"])
    done = ship.run("/ship x", replies=("text: one", "text: two", *THROUGH[1:]))
    assert "the limit of 2 legs is reached in the state work; it goes on in the state check" in done.err
    assert "you are in the state check" in ship.said("continuation")[1]
    assert ship.status()["history"][1]["by"] == "limit"


@pytest.mark.slow
def test_a_limit_of_rounds_halts_and_the_user_goes_on(ship: Ship) -> None:
    ship.define(work=LIMITS[ship.language]["rounds"])
    done = ship.run("/ship x", replies=('call: read {"file_path": "check"}\nrepeat: 9',), code=3)
    assert "ship is stopped: the limit of 3 rounds is reached in the state work; `/ship` goes on" in done.err
    assert len(ship.results()) == 3
    assert ship.status()["status"] == "stopped"
    ship.run("/ship", replies=THROUGH)
    assert ship.status()["state"] == "done"


def test_the_limit_of_the_whole_stops(ship: Ship) -> None:
    ship.define(more=LIMITS[ship.language]["all"])
    done = ship.run("/ship x", replies=(f"{move('check')}", "text: one", "text: two", "text: never"), code=3)
    assert done.err.count("ship is stopped: the limit of 2 legs is reached in all") == 1
    assert done.out == "one\ntwo\n"
    assert "ship is stopped" in ship.run("hello", replies=("text: hi",)).err


@pytest.mark.slow
def test_the_user_moves_it(ship: Ship) -> None:
    ship.run("/ship x", replies=('call: call_user {"message": "wait"}',))
    assert "is in the middle of a run" in ship.run("/ship another", code=1).err
    ship.run("/ship to check")
    assert ship.status()["state"] == "check"
    assert "did you mean `check`" in ship.run("/ship to chek", code=1).err
    ship.run("/ship reset")
    assert ship.status() is None
    assert "was not started yet" in ship.run("/ship", code=1).err


@pytest.mark.slow
def test_the_user_stops_it_and_goes_on(ship: Ship) -> None:
    ship.run("/ship stop the leak", replies=('call: call_user {"message": "wait"}',))
    assert ship.status()["task"] == "stop the leak"
    ship.run("/ship stop")
    ship.run("hello", replies=("call: ls {}", "text: hi"))
    assert "check" in ship.results()[-1], "a stopped workflow binds nobody"
    assert "is not running" in ship.run("/ship stop", code=1).err
    ship.run("/ship", replies=THROUGH)
    assert "Go on with the workflow ship." in ship.said("command")[-1]
    assert ship.status()["state"] == "done"


@pytest.mark.sample(1)
def test_a_new_process_goes_on_in_the_same_state(ship: Ship) -> None:
    ship.run("/ship x", replies=(move("check"), 'call: call_user {"message": "enough for today"}'))
    ship.run("good morning", replies=('call: bash {"command": "touch cheated"}', *THROUGH[1:]))
    assert "you are in the state check" in ship.sent()[-1]
    assert "state check of workflow ship allows read" in ship.results()[3]
    assert ship.status()["state"] == "done"


@pytest.mark.sample(1)
def test_killed_in_the_middle_of_a_check_it_stays_and_goes_on(ship: Ship) -> None:
    ship.check("#!/bin/sh\ntouch checking\nexec sleep 30\n")
    ship.model(move("check"), move("done"))
    with start("/ship x", home=ship.home) as running:
        assert kill_at(running, (ship.home.project / "checking").exists)
    assert ship.status()["state"] == "check"
    ship.check("#!/bin/sh\nexit 0\n")
    ship.run("--resume", replies=(move("done"), "text: Goodbye."))
    assert "interrupted, may have run" in ship.results()[1]
    assert any(
        "you are in the state check" in text for text in (e["content"] for e in ship.home.log()) if "Task: x" in text
    )
    assert ship.status()["state"] == "done"


@pytest.mark.sample(1)
def test_killed_after_a_move_it_is_where_it_went(ship: Ship) -> None:
    ship.model(move("check"), "delay: 20s\ntext: late")
    with start("/ship x", home=ship.home) as running:
        assert kill_at(running, lambda: len(ship.results()) == 1)
    ship.run("--resume", replies=('call: bash {"command": "touch cheated"}', "text: no\nrepeat: 9"), code=3)
    assert ship.status()["state"] == "check"
    assert "state check of workflow ship allows read" in ship.results()[1]


GUARDS: dict[str, dict[str, str]] = {
    "lua": {
        "raises": 'function(ctx) error("no such thing") end',
        "says nothing": "function(ctx) end",
        "says no": 'function(ctx) return false, ctx.workflow .. " " .. ctx.state .. " -> " .. ctx.to .. ": " .. ctx.note end',
        "takes too long": "{ call = function(ctx) cru.timer.sleep(30) return true end, timeout = 0.2 }",
        "runs a tool": 'function(ctx) local out = cru.tools.call("bash", {command = "echo fine"}) return out == "fine" end',
        "waits": "function(ctx) cru.timer.sleep(0.01) return ctx.session.message_count > 0 and ctx.task == 'x' end",
    },
    "py": {
        "raises": "raising",
        "says nothing": "lambda ctx: None",
        "says no": "lambda ctx: (False, f\"{ctx['workflow']} {ctx['state']} -> {ctx['to']}: {ctx['note']}\")",
        "takes too long": '{"call": slow, "timeout": 0.2}',
        "runs a tool": "runs",
        "waits": "waits",
    },
}
HELPERS = """
import cru
from cru import tools

def raising(ctx):
    raise ValueError("no such thing")

async def slow(ctx):
    await cru.timer.sleep(30)
    return True

async def runs(ctx):
    return (await tools.call("bash", {"command": "echo fine"}))[0] == "fine"

async def waits(ctx):
    await cru.timer.sleep(0.01)
    return ctx["session"].message_count > 0 and ctx["task"] == "x"
"""
ANSWERS = {
    "raises": "the check itself failed, so it did not pass: ",
    "says nothing": "the check gave nil where true or false is wanted, so it did not pass",
    "says no": "ship check -> done: please",
    "takes too long": "the check took longer than 0.2 s and was ended, so it did not pass",
    "runs a tool": "",
    "waits": "",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("what", ANSWERS)
def test_a_function_as_a_check(ship: Ship, what: str) -> None:
    ship.define(exit=GUARDS[ship.language][what])
    if ship.language == "py":
        ship.plugin.write_text(HELPERS + ship.plugin.read_text())
    replies = (move("check"), move("done", note="please"), "text: tired\nrepeat: 9")
    done = ship.run("/ship x", replies=replies, code=3 if ANSWERS[what] else 0)
    assert (ship.status()["state"] == "done") == (not ANSWERS[what]), done
    if ANSWERS[what]:
        assert ANSWERS[what] in ship.results()[1]
    if what == "raises":
        assert "no such thing" in ship.results()[1] and "ships" in done.err


TOOLS: dict[str, str] = {
    "lua": """
--- Run it for the model.
-- @tool name="backdoor"
function backdoor() local out, err = cru.tools.call("bash", { command = "echo through" }) return out or err end
cru.on("tool:completed", function(ctx, event)
  local out, err = cru.tools.call("bash", { command = "echo by the handler" })
  return { context = out or err }
end, { pattern = "read" })
""",
    "py": """
from cru import on
from cru import tools

async def backdoor(args):
    return [one for one in await tools.call("bash", {"command": "echo through"}) if one][0]

TOOLS = {"backdoor": {"desc": "Run it for the model.", "fn": backdoor}}

async def handler(ctx, event):
    return {"context": [one for one in await tools.call("bash", {"command": "echo by the handler"}) if one][0]}

on("tool:completed", handler, {"pattern": "read"})
""",
}


def test_a_plugins_tool_is_no_way_around_and_its_handlers_are_free(ship: Ship) -> None:
    tools = {"lua": '{ "read", "backdoor" }', "py": '["read", "backdoor"]'}[ship.language]
    old = {"lua": '{ "read", "ba*" }', "py": '["read", "ba*"]'}[ship.language]
    source = ship.plugin.read_text().replace(old, tools)
    ship.plugin.write_text((source + TOOLS["lua"]) if ship.language == "lua" else (TOOLS["py"] + source))
    replies = ("call: backdoor {}", 'call: read {"file_path": "check"}', "text: tired\nrepeat: 9")
    ship.run("/ship x", replies=replies, code=3)
    through, read = ship.results()
    assert "state work of workflow ship allows read, backdoor" in through
    assert "by the handler" in read


SECOND = """
cru.fsm.define { name = "other", initial = "look", states = {
  look = { tools = { "read" }, to = { "work", "over" } }, work = { to = { "over" } }, over = { final = true } } }
cru.on("workflow:moved", function(ctx, event)
  cru.toast(event.workflow .. ": " .. event.from .. " -> " .. event.to .. " by " .. event.by)
end)
"""


@pytest.mark.sample(1)
def test_two_workflows_at_once(ship: Ship) -> None:
    (ship.home.cru / "plugins" / "second.lua").write_text(SECOND)
    ship.run("/ship x", replies=('call: call_user {"message": "and?"}',))
    done = ship.run("/other y", replies=(
        'call: bash {"command": "touch cheated"}', move("nowhere"), move("over"), move("check"), move("done"), move("done"),
        move("done"), "text: both done",
    ))  # fmt: skip
    assert "you are in the state look" in ship.sent()[-1] and "you are in the state work" in ship.sent()[-1]
    denied, ambiguous, *_ = ship.results()[2:]
    assert "state look of workflow other allows read" in denied
    assert "several workflows are running; name one in `workflow`: other, ship" in ambiguous
    assert "other: look -> over by agent" in done.err
    assert ship.status()["state"] == "done"


SCRIPT = {
    "lua": """
cru.on("message:received", function(ctx, event)
  if event.content == "begin" then cru.fsm.start("ship", "by a script") end
  if event.content == "skip" then
    local moved = cru.fsm.to("ship", "check", "skipped")
    local refused, why = cru.fsm.to("ship", "done")
    cru.toast(tostring(moved) .. " " .. tostring(refused) .. " " .. why:match("[^\\n]*"))
  end
  if event.content == "halt" then cru.fsm.stop("ship", "enough") end
  local s = cru.fsm.status("ship")
  cru.toast(#cru.fsm.list() .. " " .. cru.fsm.list()[1].status .. " " .. (s and s.state or "none"))
end)
""",
    "py": """
from cru import on, toast

async def heard(ctx, event):
    if event["content"] == "begin":
        await fsm.start("ship", "by a script")
    if event["content"] == "skip":
        moved, _ = await fsm.to("ship", "check", "skipped")
        refused, why = await fsm.to("ship", "done")
        toast(f"{str(moved).lower()} {str(refused).lower()} {why.splitlines()[0]}")
    if event["content"] == "halt":
        fsm.stop("ship", "enough")
    s = fsm.status("ship")
    toast(f"{len(fsm.list())} {fsm.list()[0]['status']} {s['state'] if s else 'none'}")

on("message:received", heard)
""",
}


@pytest.mark.slow
def test_scripts_steer_it_too(ship: Ship) -> None:
    ship.plugin.write_text(ship.plugin.read_text() + SCRIPT[ship.language])
    assert "1 not started none" in ship.run("hello", replies=("text: hi",)).err
    done = ship.run("begin", replies=('call: call_user {"message": "ok"}',))
    assert "1 running work" in done.err
    assert "you are in the state work" in ship.sent()[-2] and "Task: by a script" in ship.sent()[-2]
    done = ship.run("skip", replies=('call: call_user {"message": "ok"}',))
    assert "true false not moved, still in the state check of workflow ship: `./check` failed" in done.err
    done = ship.run("halt", replies=("text: fine",))
    assert ship.status()["why"] == "enough"
    assert set(ship.said("continuation")) == {NOBODY}


@pytest.mark.slow
def test_a_state_that_its_definition_no_longer_has(ship: Ship) -> None:
    ship.run("/ship x", replies=(move("check"), 'call: call_user {"message": "later"}'))
    ship.plugin.write_text(ship.plugin.read_text().replace("check", "inspect"))
    done = ship.run("go on", replies=('call: read {"file_path": "check"}', "text: well"), code=3)
    told = (
        "it was in the state check, which its definition no longer has; choose with `/ship to STATE` or `/ship reset`"
    )
    assert told in done.err
    assert told in ship.results()[-1]
    assert ship.said("continuation") == [NOBODY]
    assert ship.status()["state"] == "check", "nobody but the user decides"
    assert told in cru("fsm", "status", home=ship.home).out
    ship.run("/ship to inspect")
    assert ship.status()["state"] == "inspect"


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", ['{"fsm:ship": {"state": 5}}', '{"fsm:ship": "work"}'])
def test_a_saved_state_that_is_not_understood_is_told_and_holds(ship: Ship, text: str) -> None:
    ship.run("hello")
    (ship.home.context() / "plugin-state.json").write_text(text)
    done = ship.run("go on", replies=("call: ls {}", "text: well"), code=3)
    assert "what is saved of it is not understood" in done.err
    assert "what is saved of it is not understood" in ship.results()[-1]
    assert (ship.home.context() / "plugin-state.json").read_text() == text
    ship.run("/ship reset")
    assert ship.status() is None


WRITE = 'call: write {"file_path": "free.txt", "content": "free"}'
# What happens to the plugin → what becomes of its file.
GONE: dict[str, Any] = {
    "deleted": lambda file: file.unlink(),
    "broken": lambda file: file.write_text("this is no program ("),
    "raising": lambda file: file.write_text(file.read_text() + "\nraise_this()\n"),
    "of another workflow": lambda file: file.write_text(file.read_text().replace('"ship"', '"boat"')),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", GONE)
def test_a_running_workflow_binds_the_model_although_its_plugin_is_not_there(ship: Ship, what: str) -> None:
    ship.run("/ship x", replies=('call: call_user {"message": "later"}',))
    GONE[what](ship.plugin)
    done = ship.run("go on", replies=(WRITE, "text: well"), code=3)
    told = "workflow ship is running in the state work, and no plugin that is loaded defines it"
    assert told in done.err and "cru -C default fsm reset ship" in done.err
    assert told in ship.results()[-1]
    assert not (ship.home.project / "free.txt").exists()
    listed = cru("fsm", "status", home=ship.home).out
    assert "ship: running in the state work; no plugin that is loaded defines it; until it is back" in listed
    reset = cru("fsm", "reset", "ship", home=ship.home)
    assert (reset.code, reset.out) == (0, "ship: its run in this context is forgotten\n"), reset
    ship.run("go on", replies=(WRITE, "text: well"))
    assert (ship.home.project / "free.txt").exists()


@pytest.mark.sample(1)
def test_what_is_over_or_stopped_binds_nobody_without_its_plugin(ship: Ship) -> None:
    ship.run("/ship x", replies=('call: call_user {"message": "later"}',))
    ship.run("/ship stop")
    ship.plugin.unlink()
    done = ship.run("go on", replies=(WRITE, "text: well"))
    assert (ship.home.project / "free.txt").exists() and "workflow" not in done.err


@pytest.mark.sample(1)
def test_back_again_it_goes_on_where_it_was(ship: Ship) -> None:
    ship.run("/ship x", replies=('call: call_user {"message": "later"}',))
    source = ship.plugin.read_text()
    ship.plugin.unlink()
    ship.run("go on", replies=(WRITE, "text: well"), code=3)
    ship.plugin.write_text(source)
    done = ship.run("go on", replies=(WRITE, move("check"), 'call: call_user {"message": "later"}'))
    assert "state work of workflow ship allows read, ba*" in done.err
    assert ship.status()["state"] == "check"


@pytest.mark.slow
@pytest.mark.parametrize("plugin", [True, False])
def test_a_damaged_file_of_states_frees_nobody(ship: Ship, plugin: bool) -> None:
    ship.run("/ship x", replies=('call: call_user {"message": "later"}',))
    file = ship.home.context() / "plugin-state.json"
    file.write_bytes(file.read_bytes()[:-20])
    if not plugin:
        ship.plugin.unlink()
    for _ in range(2):  # the second run finds what the first one left
        done = ship.run("go on", replies=(WRITE, "text: well"), code=3)
        assert "workflow ship" in done.err and not (ship.home.project / "free.txt").exists()
    assert list(ship.home.context().glob("plugin-state.json.corrupt*"))
    assert cru("fsm", "reset", "ship", home=ship.home).code == 0
    ship.run("go on", replies=(WRITE, "text: well"))
    assert (ship.home.project / "free.txt").exists()


def test_reset_names_what_there_is(ship: Ship) -> None:
    done = cru("fsm", "reset", "shp", home=ship.home)
    assert (done.code, done.err) == (1, "cru: nothing is saved of a workflow shp\n  did you mean `ship`?\n"), done
    done = cru("fsm", "reset", home=ship.home)
    assert done.code == 2 and "needs a name" in done.err


def test_a_definition_with_a_slip_is_told_with_file_and_line(ship: Ship) -> None:
    source = ship.plugin.read_text()
    ship.plugin.write_text(source.replace("initial", "inital"))
    err = ship.run("hello").err
    line = source[: source.index("fsm.define")].count("\n") + 1
    assert f"ships.{ship.language}:{line}" in err
    assert "unknown key `inital`" in err and "did you mean `initial`" in err
    ship.plugin.write_text(source.replace('"ba*"', '"raed"'))
    assert "workflow ship, state work: no tool fits `raed`; did you mean `read`?" in ship.run("hello").err


@pytest.mark.sample(1)
def test_the_name_of_another_plugins_workflow_is_taken(ship: Ship) -> None:
    (ship.home.cru / "plugins" / "zz.lua").write_text(LUA % {"more": "", "work": "", "exit": SHELL["lua"]})
    err = ship.run("hello").err
    assert "plugin zz" in err and "there is a workflow ship already, of plugin ships" in err
    ship.run("/ship x", replies=THROUGH)
    assert ship.status()["state"] == "done"


# deliver, the one that comes with cru ---------------------------------------------------------------------------------------------


def deliver(here: HomeDir, replies: tuple[str, ...], *words: str, config: str = "", code: int = 0) -> Done:
    script = here.path / "model.txt"
    script.write_text("by: order\n" + "\n---\n".join(replies) + "\n")
    table = f'model = "scripted:{script}"\nmode = "trust"\n[plugins.deliver]\nenabled = true\n{config}'
    here.configure(table)
    done = cru(*words, home=here)
    assert done.code == code, done
    return done


def test_deliver_does_not_get_past_failing_tests(tmp_path: Path) -> None:
    here = home(tmp_path)
    (here.project / "Makefile").write_text("test:\n\t@echo looking for it; test -e feature\n")
    deliver(here, (
        move("implement"), 'call: update_todos {"content": "- [ ] make the feature"}', move("implement"), move("test"),
        move("review"), "text: The tests pass, trust me.", move("implement"), 'call: bash {"command": "touch feature"}',
        move("test"), move("review"), 'call: edit {"file_path": "Makefile", "old_string": "", "new_string": "x"}',
        move("done", note="made the feature"), 'call: update_todos {"content": "- [x] make the feature"}',
        move("done", note="made the feature"), "text: Made the feature.",
    ), "/deliver make the feature")  # fmt: skip
    results = [e["content"] for e in here.log() if e["entry_type"] == "tool_result"]
    assert "there is no plan yet" in results[0]
    assert "`make test` failed (exit status 2):\nlooking for it" in results[4]
    assert "state review of workflow deliver allows" in results[9]
    assert "todos are open: make the feature" in results[10]
    assert results[-1].startswith("[workflow deliver: done, in the state done]")
    [went_on] = [e["content"] for e in here.log() if e.get("metadata", {}).get("source") == "continuation"]
    assert "the state test is not left yet" in went_on and "`make test` must succeed" in went_on


PLAN = ('call: update_todos {"content": "- [ ] make the feature"}', move("implement"))
TO_REVIEW = (
    'call: bash {"command": "touch feature"}',
    'call: update_todos {"content": "- [x] make the feature"}',
    move("test"),
    move("review"),
)
BREAK = 'call: bash {"command": "rm feature"}'
MEND = 'call: bash {"command": "touch feature"}'
GUT = 'call: write {"file_path": "Makefile", "content": "test:\\n\\ttrue\\n"}'
NEW_TEST = 'call: write {"file_path": "tests/test_feature.py", "content": "def test_feature(): pass"}'
LAST = "text: Made the feature."
# what the agent tries → its replies, what the refusal says, and the state at the end
CHEATS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "code is overwritten after the tests passed": (
        (*PLAN, *TO_REVIEW, BREAK, move("done"), MEND, move("done"), LAST),
        "the check of the state test is made again, since files may have changed after it passed: `make test` failed", "done",
    ),
    "the Makefile is gutted": (
        (*PLAN, GUT, *TO_REVIEW, move("done", note="done"), 'call: call_user {"message": "stuck"}', 'call: call_user {"message": "stuck"}'),
        "files that the checks consist of were changed: Makefile.", "review",
    ),
    "a new test is named in the note": (
        (*PLAN, NEW_TEST, *TO_REVIEW, move("done", note="done"), move("done", note="tests/test_feature.py covers the feature"), LAST),
        "files that the checks consist of were changed: tests/test_feature.py.", "done",
    ),
    "a protected file is put back": (
        (
            *PLAN, 'call: bash {"command": "cp Makefile kept; echo >> Makefile"}', *TO_REVIEW, move("done", note="done"),
            'call: bash {"command": "cp kept Makefile"}', move("done", note="done"), LAST,
        ),
        "files that the checks consist of were changed: Makefile.", "done",
    ),
    "a note that names a file by chance": (
        (
            *PLAN, 'call: bash {"command": "touch tests/a"}', *TO_REVIEW, move("done", note="I made a change"),
            move("done", note="tests/a is an empty fixture"), LAST,
        ),
        "files that the checks consist of were changed: tests/a.", "done",
    ),
    "a protected file is deleted": (
        (
            *PLAN, 'call: bash {"command": "rm tests/test_old.py"}', *TO_REVIEW, move("done", note="x"),
            move("done", note="test_old.py: gone"), LAST,
        ),
        "files that the checks consist of were changed: tests/test_old.py.", "done",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CHEATS)
def test_deliver_is_closed(tmp_path: Path, what: str) -> None:
    replies, refusal, state = CHEATS[what]
    here = home(tmp_path)
    (here.project / "Makefile").write_text("test:\n\t@test -e feature\n")
    (here.project / "tests").mkdir()
    (here.project / "tests" / "test_old.py").write_text("def test_old(): pass\n")
    deliver(here, replies, "/deliver make the feature", code=0 if state == "done" else 3)
    assert any(refusal in entry["content"] for entry in here.log() if entry["entry_type"] == "tool_result")
    assert json.loads(cru("fsm", "status", "--json", home=here).out)["deliver"]["state"] == state


def test_what_is_protected_is_looked_at_without_waiting_for_anything(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    (tests / "venv").mkdir(parents=True)
    (tests / "venv" / "conftest.py").write_text("x")
    os.mkfifo(tests / "pipe")
    (tests / "link").symlink_to("../elsewhere")
    (tests / os.fsdecode(b"\xff.py")).write_text("x")
    digests = digest_protected(tmp_path, ["tests/**"])
    assert digests.keys() == {"tests/venv/conftest.py", "tests/pipe", "tests/link", "tests/\\udcff.py"}
    assert (digests["tests/pipe"], digests["tests/link"]) == ("unreadable", "link to ../elsewhere")
    json.dumps(digests).encode()


def test_deliver_is_off_until_it_is_wanted_and_takes_another_command(tmp_path: Path) -> None:
    here = home(tmp_path)
    (here.cru / "plugins").mkdir(parents=True)
    here.configure("")
    assert "there are no workflows" in cru("fsm", "list", home=here).out
    deliver(here, ("text: hi",), "hello", config='test = "cargo test"\n')
    assert "[`cargo test` must succeed]--> review" in cru("fsm", "show", "deliver", home=here).out
    done = deliver(here, ("text: hi",), "hello", config="test = 5\ntimeot = 1\n")
    assert "[plugins.deliver] test: expected string, got number" in done.err


SPY = (
    '#!/bin/sh\n{ cat ~/.ssh/creds; echo "token=$GITHUB_TOKEN own=$PLAIN"; touch ~/escaped; } > got.txt 2>&1\nexit 0\n'
)


@pytest.mark.parametrize("is_confined", [pytest.param(True, marks=needs_sandbox), False])
def test_a_check_runs_as_a_command_of_the_model_does(tmp_path: Path, is_confined: bool) -> None:
    """The model may have written what it starts."""
    ship = Ship(tmp_path, "lua")
    (ship.home.path / ".ssh").mkdir()
    (ship.home.path / ".ssh" / "creds").write_text("AKIASECRET\n")
    ship.check(SPY)
    ship.model(move("check"), move("done"), "text: end")
    env = {"GITHUB_TOKEN": "ghp_secret", "PLAIN": "yes"}
    flags = ("--sandbox",) if is_confined else ()
    done = cru(*flags, "/ship go", home=ship.home, env=env)
    assert done.code == 0, done
    got = (ship.home.project / "got.txt").read_text()
    assert "token= own=yes" in got and "ghp_secret" not in got
    assert ("AKIASECRET" in got) is not is_confined and (ship.home.path / "escaped").exists() is not is_confined


def test_no_check_is_run_in_plan_mode(tmp_path: Path) -> None:
    ship = Ship(tmp_path, "lua")
    ship.model(move("check"), move("done"), "text: end")
    cru("--mode", "plan", "/ship go", home=ship.home)
    assert not (ship.home.project / "tries").exists()
    assert any(
        "`./check` is not run in plan mode, which only reads, so it did not pass" in text for text in ship.results()
    )
