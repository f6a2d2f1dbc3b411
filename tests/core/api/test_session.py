"""tools, context, session, defaults, modes, permissions: a script's hands on its own session."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room
from tests.core.turn.support import MadeTool

from cru.core.api import context, modes, permissions, session, tools
from cru.core.api.host import BadArgument, call
from cru.core.events.answers import PermissionUpdate, UpdateKind, cancel
from cru.core.events.payloads import ToolBeforeCall, ToolCompleted
from cru.core.guard import UnknownMode
from cru.core.guard.rules.updates import take_update

TALK = "text: one\n---\ntext: two\n---\ntext: three\n---\ntext: four\n"


def prompts(room: Room, *texts: str) -> None:
    """Ask, with the host set, as a run of cru does."""
    room.within(lambda: room.world.run(*texts))


def test_a_tool_is_called_on_the_road_of_all_calls(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (room.root / "a.txt").write_text("hello")
    result, error = room(tools.call, "read", {"file_path": "a.txt"})
    assert "hello" in result
    assert error is None
    assert room.world.of(ToolBeforeCall)[0].origin == "script"
    assert len(room.world.of(ToolCompleted)) == 1


def test_what_a_script_calls_stays_out_of_the_conversation(tmp_path: Path) -> None:
    room = Room(tmp_path, TALK)
    (room.root / "a.txt").write_text("hello")
    prompts(room, "hi")
    before = len(room.world.log())
    room(tools.call, "read", {"file_path": "a.txt"})
    assert len(room.world.log()) == before
    prompts(room, "again")
    assert [role for role, _ in room.world.said()][-3:] == ["user", "assistant", "user"]


def test_a_long_result_comes_whole(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.world.tools(MadeTool("long", lambda _args: "x" * 100_000))
    assert len(room(tools.call, "long")[0]) == 100_000


REFUSED: list[tuple[str, Any, str]] = [
    ("bash", {"command": "true"}, "may not answer for a person"),
    ("nope", {}, "there is no tool `nope`"),
    ("read", {}, "bad arguments for read"),
    ("read", {"file_path": "missing.txt"}, "does not exist"),
    ("read", "x", "args must be a table"),
    (None, {}, "name must be a string"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("name", "args", "message"), REFUSED)
def test_a_call_that_is_refused_or_fails_gives_nil_and_why(tmp_path: Path, name: str, args: Any, message: str) -> None:
    result, error = Room(tmp_path)(tools.call, name, args)
    assert result is None
    assert message in error


def test_hooks_hear_the_calls_of_scripts(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.parts.bus.registry.on("tool:before_call", lambda _event: cancel("not today"), owner="guard")
    assert "not today" in room(tools.call, "ls", {})[1]


def test_tools_are_listed_with_their_schemas(tmp_path: Path) -> None:
    listed, _ = Room(tmp_path)(tools.list_)
    bash = next(one for one in listed if one["name"] == "bash")
    assert bash["description"]
    assert bash["parameters"]["type"] == "object"


def test_the_active_tools_only_narrow(tmp_path: Path) -> None:
    room = Room(tmp_path, TALK)
    room.parts.models.offer_tools = True
    assert room(tools.set_active, None, ["re*", "nope"]) == (True, None)
    assert room(tools.get_active)[0] == ["re*", "nope"]
    prompts(room, "hi")
    assert [spec.name for spec in room.world.requests[-1].tools] == [
        n for n in room.parts.tools.names() if n.startswith("re")
    ]
    room(tools.set_active, None, [])
    prompts(room, "hi")
    assert room.world.requests[-1].tools == ()
    room(tools.set_active, None, None)
    prompts(room, "hi")
    assert len(room.world.requests[-1].tools) == len(room.parts.tools.names())
    bad: Any
    for bad in ({"a": 1}, "x", [{}], ["{"]):
        assert room(tools.set_active, None, bad)[0] is None


@pytest.mark.parametrize(("words", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("éé", 1)])
def test_tokens_are_estimated_by_bytes(words: str, tokens: int) -> None:
    assert context.estimate_tokens(words) == tokens


def test_the_conversation_can_be_read_and_measured(tmp_path: Path) -> None:
    room = Room(tmp_path, TALK, settings={"context_window_limit": 1000})
    prompts(room, "hi")
    assert room(context.messages)[0] == [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "one"}]
    usage, _ = room(context.usage)
    assert (usage["messages"], usage["budget"]) == (2, 1000)
    assert usage["prompt_tokens"] > 0
    assert usage["percent"] == round(usage["prompt_tokens"] / 10, 1)
    assert room(context.messages, "elsewhere")[0] is None
    assert room(context.usage, 7)[0] is None


REMOVE: list[tuple[dict[str, Any], int, list[str]]] = [
    ({"type": "all"}, 4, []),
    ({"type": "first", "n": 1}, 1, ["one", "b", "two"]),
    ({"type": "last"}, 1, ["a", "one", "b"]),
    ({"type": "last", "n": 99}, 4, []),
    ({"type": "first", "n": 0}, 0, ["a", "one", "b", "two"]),
    ({"type": "indices", "start": 1, "end": 3}, 2, ["a", "two"]),
]


@pytest.mark.parametrize(("which", "count", "left"), REMOVE)
def test_messages_are_taken_from_the_models_sight_and_stay_in_the_log(
    tmp_path: Path, which: dict[str, Any], count: int, left: list[str]
) -> None:
    room = Room(tmp_path, TALK)
    prompts(room, "a", "b")
    assert room(context.remove, None, which) == (count, None)
    assert [one["content"] for one in room(context.messages)[0]] == left
    assert [e.content for e in room.world.log("message")] == ["a", "one", "b", "two"]
    prompts(room, "c")
    assert [content for role, content in room.world.said() if role != "system"] == [*left, "c"]


def test_calls_and_results_go_with_their_reply(tmp_path: Path) -> None:
    room = Room(tmp_path, "text: look\ncall: t {}\n---\ntext: done\n")
    room.world.tools(MadeTool("t", lambda _args: "result"))
    prompts(room, "a")
    assert [one["role"] for one in room(context.messages)[0]] == ["user", "assistant", "tool", "assistant"]
    assert room(context.remove, None, {"type": "indices", "start": 1, "end": 2}) == (1, None)
    assert [one["content"] for one in room(context.messages)[0]] == ["a", "done"]


@pytest.mark.parametrize(
    "which", [{}, {"type": "some"}, {"type": "first", "n": -1}, {"type": "indices", "start": 0}, "x"]
)
def test_remove_says_what_is_wrong(tmp_path: Path, which: Any) -> None:
    found, error = Room(tmp_path)(context.remove, None, which)
    assert found is None
    assert "cru.context.remove" in error


def test_a_prompt_that_is_being_answered_is_left_alone(tmp_path: Path) -> None:
    room, said = Room(tmp_path, TALK), []

    async def meddle(_event: Any) -> None:
        said.append((context.remove(None, {"type": "all"}), await context.compact(None)))

    room.parts.bus.registry.on("message:before_send", meddle, owner="demo")
    prompts(room, "a")
    (removed, compacted) = said[0]
    assert removed[0] is compacted[0] is None
    assert "being answered" in removed[1]
    assert "being answered" in compacted[1]


def test_compact_makes_a_summary(tmp_path: Path) -> None:
    room = Room(tmp_path, "text: one\n---\ntext: two\n---\ntext: the summary\n")
    assert room(context.compact)[0] is None
    prompts(room, "a", "b")
    assert room(context.compact) == (True, None)
    assert room(context.messages)[0] == []
    assert room.parts.store.summary() != ""


def test_attached_text_stands_beside_the_next_prompt_once(tmp_path: Path) -> None:
    room = Room(tmp_path, TALK)
    assert room(context.attach, None, "Today is Monday.", {"key": "day"}) is True
    assert room(context.attach, None, "Today is Tuesday.", {"key": "day"})[0] is False
    assert room(context.attach, None, "x" * 1984) is True
    refused, reason = room(context.attach, None, "y")
    assert refused is False
    assert "2000 characters" in reason
    prompts(room, "a", "b")
    assert "Today is Monday." in room.world.said(0)[-1][1]
    assert room.world.said(1)[-1][1] == "b"
    assert room(context.attach, None, 7)[0] is False


def test_the_session_object_shows_what_is_fixed(tmp_path: Path) -> None:
    room = Room(tmp_path)

    def look() -> None:
        s = session.get_session()
        assert (s.id, s.workspace, s.isolation) == (room.parts.store.session_id, str(room.root), None)
        assert (s.mode, s.temperature, s.interactive) == ("ask", None, False)
        for name in session.FIXED:
            with pytest.raises(BadArgument, match="cannot be assigned"):
                setattr(s, name, "x")
        with pytest.raises(BadArgument, match=r"unknown property `temprature`\n  did you mean `temperature`"):
            s.temprature = 1
        with pytest.raises(BadArgument, match="unknown property `nope`"):
            _ = s.nope
        s.set_variable("k", {"a": [1]})
        assert session.get_session().get_variable("k") == {"a": [1]}
        assert s.get_variable("none") is None
        with pytest.raises(BadArgument):
            s.set_variable("k", print)
        s.mark_first_message_sent()

    room(look)


def test_defaults_reach_the_next_request(tmp_path: Path) -> None:
    room = Room(tmp_path, TALK)
    room(session.set_default, "temperature", 0.5)
    room(session.set_default, "max_tokens", 100)
    room(session.set_default, "thinking_budget", 2000)
    room(session.set_default, "system_prompt", "Be a pirate.")
    assert room(session.get_default, "temperature") == 0.5
    prompts(room, "a")
    request = room.world.requests[-1]
    assert request.parameters == {"temperature": 0.5, "max_tokens": 100, "reasoning": {"max_tokens": 2000}}
    assert [span.text for span in request.system if span.name == "base"] == ["Be a pirate."]
    assert any(span.name == "environment" for span in request.system)
    for name in session.KNOBS:
        room(session.set_default, name, None)
    prompts(room, "b")
    assert room.world.requests[-1].parameters == {}
    assert "pirate" not in str(room.world.requests[-1].system)


KNOBS: list[tuple[str, Any]] = [
    ("temperature", 3), ("temperature", -1), ("temperature", "hot"), ("max_tokens", 0), ("max_tokens", 1.5), ("system_prompt", 1),
    ("thinking_budget", "x"), ("temprature", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), KNOBS)
def test_defaults_refuse_what_does_not_fit(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.defaults"):
        Room(tmp_path)(session.set_default, name, value)


def test_hooks_hear_the_ends_of_a_session_in_their_plugins_name(tmp_path: Path) -> None:
    room, seen = Room(tmp_path, TALK), []

    def register() -> None:
        session.on_session_start(lambda s: seen.append(("start", s.id)))
        session.on_session_start(fails)
        session.on_session_end(lambda info: seen.append(("end", info["reason"])))

    async def main() -> None:
        await room.world.session.open()
        await room.world.session.close("exit")

    room(register)
    room(main)
    assert seen == [("start", room.parts.store.session_id), ("end", "exit")]
    assert "demo: on_session_start: no luck" in room.notices()


def fails(*_: Any) -> None:
    raise ValueError("no luck")


def test_a_mode_of_ones_own_narrows_and_judges(tmp_path: Path) -> None:
    room = Room(tmp_path, TALK)
    room.world.tools(*(MadeTool(name, lambda _args: "ran") for name in ("look", "edit", "send")))
    room.parts.models.offer_tools = True
    definition = {
        "description": "reviews",
        "tools": ["look", "edit"],
        "permissions": {"default": "allow", "deny": ["edit"]},
    }
    room(modes.set_, "review", definition)
    assert room(modes.get, "review")["description"] == "reviews"
    room.within(lambda: modes.switch_mode(room.session, "review"))
    assert room.within(lambda: session.get_session().mode) == "review"
    assert room(tools.call, "look") == ("ran", None)
    for name in ("edit", "send"):
        assert "review mode refuses" in room(tools.call, name)[1]
    prompts(room, "a")
    assert [spec.name for spec in room.world.requests[-1].tools] == ["look", "edit"]
    room(modes.set_, "review", None)
    assert room(modes.get, "review") is None
    assert room.within(lambda: modes.current_mode(room.session)) == "ask"
    assert room(tools.call, "send") == ("ran", None)


def _set_mode(name: str) -> None:
    session.get_session().mode = name


def test_a_mode_that_a_plugin_has_set_is_lifted_by_no_hook(tmp_path: Path) -> None:
    room = Room(tmp_path)
    gate = room.parts.gate
    wider = PermissionUpdate(UpdateKind.MODE, items=("auto",), by="hook a")
    room(modes.set_, "review", {"permissions": {"default": "ask", "deny": ["edit"]}})
    for name in ("review", "plan", "ask"):
        room.within(partial(_set_mode, name))
        assert "stays" in take_update(gate, wider)[0] and room.within(lambda: modes.current_mode(room.session)) == name
    room.within(partial(_set_mode, "review"))
    room(modes.set_, "review", None)
    assert take_update(gate, wider) and gate.mode == "auto"


@pytest.mark.parametrize(("command", "runs"), [("git status", True), ("git push", False), ("touch x", False)])
def test_rules_of_a_mode_look_at_the_command(tmp_path: Path, command: str, runs: bool) -> None:
    room = Room(tmp_path)
    rules = {"default": "deny", "allow": ["bash:git *"], "deny": ["bash:git push*"]}
    room(modes.set_, "careful", {"permissions": rules})
    room.within(lambda: modes.switch_mode(room.session, "careful"))
    error = room(tools.call, "bash", {"command": command})[1]
    assert (error is None or "careful mode refuses" not in error) is runs


def test_built_in_modes_are_known_by_both_names_and_cannot_be_changed(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room(modes.get, "normal") == room(modes.get, "ask")
    assert room(modes.get, "plan")["description"] == "only reads"
    room.within(lambda: setattr(session.get_session(), "mode", "plan"))
    assert room.parts.gate.mode == "plan"
    room.within(lambda: setattr(session.get_session(), "mode", "normal"))
    assert room.parts.gate.mode == "ask"
    with pytest.raises(UnknownMode):
        room.within(lambda: modes.switch_mode(room.session, "nope"))
    for name in ("ask", "normal"):
        with pytest.raises(BadArgument, match="built-in"):
            room(modes.set_, name, {})


@pytest.mark.parametrize(
    "definition", ["x", {"permissions": "maybe"}, {"tools": "bash"}, {"permissions": {"deny": "x"}}, {"description": 1}]
)
def test_a_mode_must_be_well_made(tmp_path: Path, definition: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.modes\.x"):
        Room(tmp_path)(modes.set_, "x", definition)


VERDICTS: list[tuple[Callable[..., Any], bool, str]] = [
    (lambda _req: {"allow": True}, True, ""),
    (lambda _req: {"deny": True, "reason": "not now"}, False, "not now"),
    (lambda _req: None, False, "may not answer for a person"),
    (fails, False, "no luck"),
    (lambda _req: "yes", False, "verdict must be a table"),
]


@pytest.mark.parametrize(("work", "runs", "why"), VERDICTS)
def test_a_script_answers_before_a_person_has_to(tmp_path: Path, work: Any, runs: bool, why: str) -> None:
    room, seen = Room(tmp_path), []

    async def judge(request: dict[str, Any]) -> Any:
        seen.append(request)
        return await call(work, request)

    assert room(permissions.on_request, judge, {"pattern": "bash"}) > 0
    result, error = room(tools.call, "bash", {"command": "echo hi"})
    assert seen[0] == {
        "tool_name": "bash",
        "args": {"command": "echo hi"},
        "file_path": None,
        "mode": "ask",
        "is_safe": False,
    }
    if runs:
        assert "hi" in result
    else:
        assert why in error
    assert len(seen) == 1
    room(tools.call, "fetch", {"url": "http://127.0.0.1:1/"})
    assert len(seen) == 1
