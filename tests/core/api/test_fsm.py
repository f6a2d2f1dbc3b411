"""cru.fsm: what is wrong with a definition, and what only a session in one process shows."""

from __future__ import annotations

import asyncio
import copy
import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.api.support import Room
from tests.core.turn.support import Person, World

from cru.core.api.host import BadArgument
from cru.core.base.values.messages import ToolCall
from cru.core.events.payloads import Custom, LegStarted, SessionCompacted, ToolBatchCompleted
from cru.core.turn.calls.tool_call import decide
from cru.features.workflows import api as fsm
from cru.features.workflows import guard
from cru.features.workflows.definition import Guard
from cru.features.workflows.workflows import find_workflows

GOOD: dict[str, Any] = {
    "name": "ship",
    "initial": "work",
    "states": {
        "work": {"tools": ["read"], "to": ["check"], "limits": {"legs": 3, "on_limit": "check"}},
        "check": {"to": ["done"], "back": ["work"], "exit": {"shell": "true"}},
        "done": {"final": True},
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """GOOD with one place changed; `...` takes it out."""
    made: dict[str, Any] = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    place = made
    for name in parents:
        place = place.setdefault(name, {})
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return made


WORK, CHECK = "workflow ship, state work", "workflow ship, state check"
# what is changed → (path, value, what is said)
BAD: dict[str, tuple[str, Any, str]] = {
    "a missing name": ("name", ..., "name must be a string, got nil"),
    "a name with a space": ("name", "to ship", "name `to ship`"),
    "a name with a slash": ("name", "a/b", "name `a/b`"),
    "an unknown key": ("inital", "work", "unknown key `inital`; did you mean `initial`?"),
    "no initial state": ("initial", ..., "workflow ship: initial must be the name of a state, got nil"),
    "an unknown initial state": ("initial", "wrok", "workflow ship: initial: there is no state `wrok`; did you mean `work`?"),
    "a final initial state": ("initial", "done", "the initial state `done` is final"),
    "no states": ("states", {}, "states must be a table of states by name"),
    "states as a list": ("states", [{"final": True}], "states must be a table of states by name, got table"),
    "a state that is text": ("states.work", "do it", f"{WORK} must be a table with keys, got string"),
    "a state without a name": ("states.1", {"final": True}, "state '1'"),
    "an unknown key of a state": ("states.work.tool", ["read"], f"{WORK}: unknown key `tool`; did you mean `tools`?"),
    "a target that there is not": ("states.work.to", ["chek"], f"{WORK}: to: there is no state `chek`; did you mean `check`?"),
    "a target that is a number": ("states.work.to", 5, f"{WORK}: to must be an array, got number"),
    "a way back that there is not": ("states.check.back", ["wrk"], f"{CHECK}: back: there is no state `wrk`; did you mean `work`?"),
    "a target twice": ("states.check.back", ["done"], f"{CHECK}: `done` is named twice"),
    "a state that leads to itself": ("states.work.to", ["work"], f"{WORK}: to names the state itself"),
    "a dead end": ("states.work.to", ..., f"{WORK}: it leads nowhere"),
    "an unreachable state": ("states.lost", {"to": ["done"]}, "workflow ship: state `lost` cannot be reached from `work`"),
    "no final state": ("states.done", {"to": ["work"]}, "workflow ship: no state is final"),
    "a final state with a way out": ("states.done.to", ["work"], "state done: it is final, so it has no `to`"),
    "a final state with tools": ("states.done.tools", ["read"], "state done: it is final, so it has no `tools`"),
    "recheck of a state that is not final": ("states.work.recheck", ["check"], f"{WORK}: recheck is for a final state"),
    "recheck of a state that there is not": ("states.done.recheck", ["chek"], "recheck: there is no state `chek`; did you mean `check`?"),
    "recheck of a state without a check": ("states.done.recheck", ["work"], "state done: recheck: state `work` has no `exit`"),
    "protected files that are a number": ("protect", 5, "workflow ship: protect must be an array, got number"),
    "final that is text": ("states.done.final", "yes", "state done: final must be a boolean, got string"),
    "an instruction that is a list": ("states.work.instruction", ["do"], f"{WORK}: instruction must be a string, got table"),
    "tools that are a number": ("states.work.tools", 5, f"{WORK}: tools must be an array, got number"),
    "a tool that is a table": ("states.work.tools", [{}], f"{WORK}: tools must be an array of strings"),
    "a glob that is none": ("states.work.tools", ["{read"], f"{WORK}: tools: bad pattern `{{read`"),
    "a guard that is text": ("states.check.exit", "make", f"{CHECK}: exit must be a function or a table"),
    "a guard without anything": ("states.check.exit", {}, f"{CHECK}: exit needs one of `shell` and `call`"),
    "a guard with both": ("states.check.exit.call", print, f"{CHECK}: exit needs one of `shell` and `call`"),
    "an empty command": ("states.check.exit.shell", " ", f"{CHECK}: exit.shell is empty"),
    "a command that is a list": ("states.check.exit.shell", ["make"], f"{CHECK}: exit.shell must be a string, got table"),
    "a function that is none": ("states.check.exit", {"call": 5}, f"{CHECK}: exit.call must be a function, got number"),
    "an unknown key of a guard": ("states.check.exit.tiemout", 5, f"{CHECK}: exit: unknown key `tiemout`; did you mean `timeout`?"),
    "a timeout that is text": ("states.check.exit.timeout", "5", f"{CHECK}: exit.timeout must be a number, got string"),
    "a timeout of nothing": ("states.check.exit.timeout", 0, f"{CHECK}: exit.timeout must be finite and at least 0.001"),
    "a guard of no way forward": ("states.work", {"back": ["check"], "exit": print}, f"{WORK}: `exit` guards the way"),
    "limits that are a number": ("states.work.limits", 5, f"{WORK}: limits must be a table with keys, got number"),
    "a limit of nothing": ("states.work.limits.legs", 0, f"{WORK}: limits.legs must be finite and at least 1"),
    "a limit with a fraction": ("states.work.limits.legs", 1.5, f"{WORK}: limits.legs must be a whole number"),
    "an unknown limit": ("states.work.limits.turns", 5, f"{WORK}: limits: unknown key `turns`"),
    "a limit that leads nowhere": ("states.work.limits.on_limit", "chck", "limits.on_limit: there is no state `chck`"),
    "a limit that leads to itself": ("states.work.limits.on_limit", "work", f"{WORK}: on_limit is the state itself"),
    "a limit that is a success": ("states.work.limits.on_limit", "done", f"{WORK}: on_limit leads to the final state `done`"),
    "a way out of no limit": ("states.work.limits", {"on_limit": "check"}, f"{WORK}: on_limit without a limit"),
    "a state after the last limit": ("limits", {"legs": 5, "on_limit": "check"}, "ship: limits: unknown key `on_limit`"),
}  # fmt: skip


@pytest.mark.sample(20)
@pytest.mark.parametrize("what", BAD)
def test_a_bad_definition_is_refused_with_a_reason(tmp_path: Path, what: str) -> None:
    path, value, words = BAD[what]
    room = Room(tmp_path)
    with pytest.raises(BadArgument) as raised:
        room(fsm.define, changed(path, value))
    error = raised.value
    assert words in f"{error.message}; {error.hint}".replace(" (plugin demo)", ""), error
    assert "plugin demo" in error.message
    assert find_workflows(room.parts.services) is None and "workflow" not in room.parts.tools.names()


@pytest.mark.parametrize("spec", [None, 5, "ship", [], [1]])
def test_what_is_no_table_is_no_definition(tmp_path: Path, spec: Any) -> None:
    with pytest.raises(BadArgument, match="must be"):
        Room(tmp_path)(fsm.define, spec)


def test_a_name_of_another_command_or_workflow_is_refused(tmp_path: Path) -> None:
    room = Room(tmp_path)
    with pytest.raises(BadArgument, match="cru has a command of that name"):
        room(fsm.define, {**GOOD, "name": "tools"})
    room(fsm.define, GOOD)
    room.host = room.host_of("other")
    with pytest.raises(BadArgument, match="of plugin demo"):
        room(fsm.define, GOOD)
    assert [one["plugin"] for one in room(fsm.list_)] == ["demo"]


def test_states_are_listed_as_they_are_reached(tmp_path: Path) -> None:
    spec = {**GOOD, "states": dict(reversed(GOOD["states"].items()))}
    assert Room(tmp_path)(fsm.define, spec) == {"name": "ship", "states": ["work", "check", "done"]}


def test_with_its_plugin_it_goes_and_what_is_saved_stays(tmp_path: Path) -> None:
    room = Room(tmp_path)
    before = room.parts.tools.names()
    handlers = {event: len(found) for event, found in room.parts.bus.registry.by_event.items()}

    async def main() -> None:
        fsm.define(GOOD)
        await fsm.start("ship", "x")
        fsm.stop("ship")

    room(main)
    assert "workflow" in room.parts.tools.names()
    undo = room.session.owned.pop("demo")
    for one in reversed(undo.values()):
        one()
        one()  # it may be called when the thing has gone
    assert room.parts.tools.names() == before
    assert {event: len(found) for event, found in room.parts.bus.registry.by_event.items()} == handlers
    assert find_workflows(room.parts.services) is None and "ship" not in [
        one.name for one in room.parts.services.commands.all()
    ]
    room(fsm.define, GOOD)
    found = room(fsm.status, "ship")
    assert (found["state"], found["task"]) == ("work", "x")


PLUGIN = """
cru.fsm.define { name = "ship", initial = "work", states = {
  work = { instruction = "Do the work.", tools = { "read" }, to = { "check" } },
  check = { instruction = "Check it.", to = { "done" } },
  done = { final = true } } }
"""


def world(tmp_path: Path, script: str, source: str = PLUGIN, **settings: Any) -> World:
    plugins = tmp_path / "home" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "ships.lua").write_text(source)
    return World(tmp_path, script, asker=Person(None), settings=settings)  # somebody is there: a question waits


def test_requests_offer_the_same_tools_in_every_state(tmp_path: Path) -> None:
    script = 'text: hi\n---\ncall: workflow {"to": "check"}\n---\ncall: workflow {"to": "done"}\n---\ntext: done\n---\ntext: bye'
    made = world(tmp_path, script)
    made.run("hello", "/ship x", "bye")
    assert len(made.sent) == 5
    assert len({msgspec.json.encode(msgspec.json.decode(body)["tools"]) for body in made.sent}) == 1
    messages = [msgspec.json.decode(body)["messages"] for body in made.sent]
    for earlier, later in itertools.pairwise(messages):
        assert later[: len(earlier)] == earlier, "what was sent stays as it was"


def test_after_a_compaction_the_model_is_told_again(tmp_path: Path) -> None:
    long = "x" * 32_000  # both sides of the threshold have room for any length of the paths in the prompt
    script = "by: order\n" + "text: one\n---\n" * 3 + 'call: call_user {"message": "and?"}\n---\n'
    script += f'call: workflow {{"to": "check", "note": "{long}"}}\n---\ntext: the summary\n---\ncall: call_user {{"message": "so?"}}\n'
    sizes: dict[str, Any] = {"context_window_limit": 12_000, "auto_compact_threshold": 70.0}
    made = world(tmp_path, script, **sizes, auto_compact=True, compaction_choice="oldest")
    made.run("a", "b", "c", "/ship build a boat", "go on")
    assert made.of(SessionCompacted), made.notices()
    told = [text for role, text in made.said() if role == "user"][-1]
    assert "you are in the state check" in told and "Task: build a boat" in told


def test_an_agent_that_goes_on_by_itself_keeps_its_note(tmp_path: Path) -> None:
    script = 'by: order\ncall: recurse {"note": "remember the mast"}\n---\ntext: more to come\n---\ncall: call_user {"message": "ok"}\n'
    made = world(tmp_path, script, PLUGIN.replace('"read"', '"read", "recurse"'))
    made.run("/ship x")
    assert "remember the mast" in made.said()[-1][1]
    assert made.notices() == []
    workflows = find_workflows(made.session.parts.services)
    assert workflows is not None and workflows.machines["ship"].record is not None
    assert workflows.machines["ship"].record.total_legs == 2


def test_a_plugin_that_is_loaded_anew_holds_the_agent_where_it_was(tmp_path: Path) -> None:
    made = world(tmp_path, 'call: call_user {"message": "ok"}')
    made.run("/ship x")
    parts, extensions = made.session.parts, made.built.extensions
    assert extensions is not None

    async def denied() -> str:
        return (await decide(parts, ToolCall("1", "ls", "{}"))).content

    asyncio.run(extensions.reload("ships"))
    assert "state work of workflow ship allows read" in asyncio.run(denied())
    assert parts.tools.names().count("workflow") == 1
    asyncio.run(extensions.disable("ships"))
    assert "no plugin that is loaded defines it" in asyncio.run(denied())
    assert "ship" not in [one.name for one in parts.services.commands.all()]


def test_stop_pauses_it_until_the_next_prompt(tmp_path: Path) -> None:
    made = world(tmp_path, "by: order\ntext: one\nrepeat: 20\n")

    async def main() -> int:
        session, bus = made.session, made.session.parts.bus

        def stop(event: Any) -> None:
            asyncio.get_running_loop().create_task(bus.dispatch(Custom("command:stop", {"args": ""})))

        await session.open()
        bus.registry.on("message:received", stop, owner="test", once=True)
        await made.asked("/ship x")
        stopped = len(made.sent)
        await made.asked("go on")
        return stopped

    assert asyncio.run(main()) == 1
    assert len(made.sent) > 2


def test_a_gate_that_cannot_decide_denies(tmp_path: Path) -> None:
    made = world(
        tmp_path, 'call: call_user {"message": "ok"}\n---\ncall: read {"file_path": "x"}\n---\ntext: hm\nrepeat: 9\n'
    )
    made.run("/ship x")
    workflows = find_workflows(made.session.parts.services)
    assert workflows is not None
    workflows.machines["ship"].refresh = lambda: None  # type: ignore[method-assign]
    workflows.running = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    made.run("read it")
    assert any("ZeroDivisionError" in text for text in made.results()[1:2]), made.results()


def test_calls_of_a_user_and_of_scripts_between_turns_are_free(tmp_path: Path) -> None:
    made = world(tmp_path, 'call: call_user {"message": "ok"}')
    made.run("/ship x")
    parts = made.session.parts

    async def decided(origin: str) -> str:
        return (await decide(parts, ToolCall("1", "ls", "{}"), origin=origin)).content

    assert asyncio.run(decided("user")) == ""
    assert asyncio.run(decided("script")) == ""
    assert "state work of workflow ship allows read" in asyncio.run(decided("model"))


def test_a_batch_that_is_over_lets_calls_pass_again(tmp_path: Path) -> None:
    made = world(tmp_path, 'call: call_user {"message": "ok"}')
    made.run("/ship x")
    parts = made.session.parts

    async def both() -> tuple[str, str]:
        await decide(parts, ToolCall("0", "workflow", '{"to": "check"}'))  # a client's, outside of any leg
        assert (await decide(parts, ToolCall("0", "read", '{"file_path": "x"}'))).content == ""
        await parts.bus.dispatch(LegStarted("x", 10))
        await decide(parts, ToolCall("1", "workflow", '{"to": "check"}'))
        refused = (await decide(parts, ToolCall("2", "read", '{"file_path": "x"}'))).content
        await parts.bus.dispatch(ToolBatchCompleted((), 10))
        return refused, (await decide(parts, ToolCall("3", "read", '{"file_path": "x"}'))).content

    refused, allowed = asyncio.run(both())
    assert "may change the state" in refused and allowed == ""


SHELLS: dict[str, tuple[str, str]] = {
    "true": ("true", ""),
    "an exit status": ("echo why; exit 7", "`echo why; exit 7` failed (exit status 7):\nwhy"),
    "nothing said": ("exit 1", "`exit 1` failed (exit status 1):\n(no output)"),
    "a signal": ("kill -9 $$", "`kill -9 $$` failed (ended by signal 9):\n(no output)"),
    "a command that is not there": ("no-such-program", "failed (exit status 127):"),
    "a dash": ("-x", "failed (exit status 127):"),
    "errors and output": ("echo one; echo two >&2; exit 2", "one\ntwo"),
}


@pytest.mark.parametrize("what", SHELLS)
def test_a_command_as_a_guard(tmp_path: Path, what: str) -> None:
    room, (command, words) = Room(tmp_path), SHELLS[what]
    why = room(guard.check_guard, Guard(shell=command), {}, room.parts)
    assert why == words if not words or "`" in words else words in why


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    room = Room(tmp_path)
    why = room(guard.check_guard, Guard(shell="echo begun; sleep 60", timeout=1), {}, room.parts)
    assert why == "`echo begun; sleep 60` ran longer than 1 s and was ended:\nbegun"


def test_of_much_output_the_end_is_told(tmp_path: Path) -> None:
    room = Room(tmp_path)
    why = room(guard.check_guard, Guard(shell="seq 1000; exit 1"), {}, room.parts)
    assert why.splitlines()[1] == "…" and why.splitlines()[2:] == [str(n) for n in range(961, 1001)]
