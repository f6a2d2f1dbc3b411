from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.turn.support import Ext, MadeTool, Person, World, always

from cru.core.base.values.messages import ToolCall
from cru.core.events.answers import Answer, Change, Inject, allow, ask, cancel, halt, handled, transform
from cru.core.events.payloads import (
    InteractionCompleted,
    InteractionRequested,
    PermissionResolved,
    ToolCalled,
    ToolCompleted,
    ToolFailed,
)
from cru.core.events.stamp import Event
from cru.core.guard.rules.gate import PermissionReply
from cru.core.tools.protocol import ToolError, ToolResult, ToolTimeout
from cru.core.turn.calls import tool_call
from cru.core.turn.calls.permission import CallState

ECHO = 'call: bash {"command":"echo out"}\n---\ntext: end\n'
NO, YES = PermissionReply("no", "not today"), PermissionReply("once")
DENY = {"permissions.deny": ["bash"]}
ASK = {"permissions.ask": ["bash"], "mode": "trust"}
TRUST = {"mode": "trust"}


def boom(_event: Event) -> Answer:
    raise RuntimeError("boom")


def rewrite(**args: Any) -> Answer:
    return Answer(changes=(Change("args", "merge", args),))


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in flat.items():
        table, dot, key = name.partition(".")
        if dot:
            made.setdefault(table, {})[key] = value
        else:
            made[name] = value
    return made


# case: (handlers of before_call and permission:requested, settings, person, which, words of the result)
EXITS: dict[str, tuple[dict[str, Any], dict[str, Any], Any, str, str]] = {
    "mode allows": ({}, TRUST, None, "", "out"),
    "nobody to ask": ({}, {}, None, "policy", "Not allowed by policy: ask mode asks before running commands; nobody"),
    "human says yes": ({}, {}, YES, "", "out"),
    "human says no": ({}, {}, NO, "human", "The user refused: not today"),
    "human is too slow": ({}, {}, TimeoutError(), "timeout", "Nobody answered in time"),
    "terminal is gone": ({}, {}, OSError("gone"), "error", "Refused because of an error: the question could not be asked"),
    "deny rule": ({}, DENY, YES, "policy", "Not allowed by policy: the rule `bash`"),
    "deny rule beats hook allow": ({"b": always(allow())}, DENY, None, "policy", "Not allowed by policy"),
    "deny rule beats hook result": ({"b": always(handled("mine"))}, DENY, None, "policy", "Not allowed by policy"),
    "hook allow": ({"b": always(allow())}, {}, None, "", "out"),
    "explicit ask beats hook allow": ({"b": always(allow())}, ASK, NO, "human", "The user refused"),
    "explicit ask beats trust": ({}, ASK, None, "policy", "take the rule out of [permissions] ask"),
    "hook ask beats trust": ({"b": always(ask("careful"))}, TRUST, NO, "human", "The user refused"),
    "hook ask, nobody there": ({"b": always(ask("careful"))}, TRUST, None, "policy", "careful; nobody can be asked"),
    "hook deny": ({"b": always(cancel("bad idea"))}, TRUST, YES, "hook", "Blocked by ext: bad idea"),
    "hook fails": ({"b": boom}, TRUST, YES, "error", "Refused because of an error: the handler of ext failed"),
    "hook result": ({"b": always(handled("mine"))}, {}, None, "", "mine"),
    "hook error result": ({"b": always(handled({"content": "nope", "is_error": True}))}, {}, None, "failed", "nope"),
    "hook rewrite": ({"b": always(rewrite(command="echo other"))}, TRUST, None, "", "other"),
    "bad rewrite": ({"b": always(rewrite(command=7))}, TRUST, None, "invalid", "as changed by a hook"),
    "rewrite that is no JSON": ({"b": always(rewrite(command=object()))}, TRUST, None, "error", "the handler of ext failed"),
    "request answered allow": ({"p": always(handled("allow"))}, {}, None, "", "out"),
    "request answered deny": ({"p": always(handled("deny"))}, {}, YES, "hook", "Blocked by ext"),
    "request denied": ({"p": always(cancel("never"))}, {}, YES, "hook", "Blocked by ext: never"),
    "request handler fails": ({"p": boom}, {}, YES, "error", "Refused because of an error: the handler of ext failed"),
    "request answered with nonsense": ({"p": always(handled("maybe"))}, {}, NO, "human", "The user refused"),
}  # fmt: skip


def world_of(tmp_path: Path, case: str, script: str = ECHO) -> World:
    handlers, settings, reply, _, _ = EXITS[case]
    names = {"b": "tool:before_call", "p": "permission:requested"}
    ext = Ext({names[key]: call for key, call in handlers.items()})
    asker = Person(reply) if reply is not None else None
    return World(tmp_path, script, ext, settings=nested(settings), asker=asker)


@pytest.mark.parametrize("case", EXITS)
def test_every_way_out_of_a_call_has_its_which_and_its_words(tmp_path: Path, case: str) -> None:
    which, words = EXITS[case][3:]
    world = world_of(tmp_path, case)
    assert world.run("go").cause == "done"
    [entry] = world.log("tool_result")
    assert words in entry.content
    assert entry.metadata.get("which", "") == which
    assert [f.which for f in world.of(ToolFailed)] == ([which] if which else [])
    assert len(world.of(ToolCompleted)) == (0 if which else 1)


@pytest.mark.parametrize("case", EXITS)
def test_a_decided_call_says_what_became_of_it(tmp_path: Path, case: str) -> None:
    world = world_of(tmp_path, case)
    decided = asyncio.run(tool_call.decide(world.session.parts, ToolCall("call_1", "bash", '{"command":"echo out"}')))
    by_handler = case in ("hook result", "hook error result")
    assert decided.state == ("handled" if by_handler else "refused" if EXITS[case][3] else "granted")


@pytest.mark.parametrize("state", ["undecided", "granted", "handled", "refused"])
def test_only_a_granted_call_runs(tmp_path: Path, state: CallState) -> None:
    world = world_of(tmp_path, "mode allows")
    parts, call = world.session.parts, ToolCall("call_1", "bash", '{"command":"touch ran"}')

    async def decide_and_run() -> None:
        decided = await tool_call.decide(parts, call)
        await tool_call.run(parts, replace(decided, state=state))

    asyncio.run(decide_and_run())
    assert (tmp_path / "project" / "ran").exists() == (len(world.of(ToolCalled)) == 1) == (state == "granted")


@pytest.mark.parametrize("case", EXITS)
def test_a_dialog_is_announced_only_where_somebody_can_be_asked(tmp_path: Path, case: str) -> None:
    world = world_of(tmp_path, case)
    world.run("go")
    is_asked = case.startswith("human") or "terminal" in case or EXITS[case][3] == "human"
    assert len(world.of(InteractionRequested)) == len(world.of(InteractionCompleted)) == is_asked


@pytest.mark.parametrize(
    "case", [c for c, row in EXITS.items() if row[3] in ("policy", "hook", "human", "timeout", "error")]
)
def test_every_denial_is_announced_as_resolved(tmp_path: Path, case: str) -> None:
    world = world_of(tmp_path, case)
    world.run("go")
    [resolved] = world.of(PermissionResolved)
    which = EXITS[case][3]
    assert (resolved.decision, resolved.by) == ("deny", "ext" if which == "hook" else which)
    assert not world.of(ToolCalled)


@pytest.mark.parametrize(
    ("line", "which", "words"),
    [
        ("call: bsh {}", "unknown", "there is no tool `bsh`; did you mean `bash`?"),
        ('call: bash {"command":', "invalid", "not valid JSON"),
        ("call: bash [1]", "invalid", "must be a JSON object"),
        ("call: bash {}", "invalid", "`command`: required"),
        ('call: bash {"command":"x","when":1}', "invalid", "`when`: unknown argument"),
        ("call: bash " + "[" * 100_000 + "]" * 100_000, "invalid", "nested too deep"),
    ],
)
def test_a_call_that_makes_no_sense_is_explained_to_the_model(
    tmp_path: Path, line: str, which: str, words: str
) -> None:
    world = World(tmp_path, f"{line}\n---\ntext: end\n", settings=nested(TRUST))
    assert world.run("go").cause == "done"
    [entry] = world.log("tool_result")
    assert words in entry.content
    assert entry.metadata["is_error"] and entry.metadata["which"] == which


def test_a_hook_sees_an_invalid_call_and_may_mend_it(tmp_path: Path) -> None:
    seen: list[bool] = []

    def mend(event: Event) -> Answer:
        seen.append(event.payload.valid)  # type: ignore[attr-defined]
        return transform(args={"command": "echo mended"})

    ext = Ext({"tool:before_call": mend})
    world = World(tmp_path, 'call: bash {"cmd":"x"}\n---\ntext: end\n', ext, settings=nested(TRUST))
    world.run("go")
    assert seen == [False, True]  # what a handler made valid is announced again: some guards hear of valid calls only
    assert world.results() == ["mended"]


def test_a_guard_of_valid_calls_hears_of_one_that_a_handler_has_mended(tmp_path: Path) -> None:
    def mend(event: Event) -> Answer:
        return replace(transform(args={"command": "echo mended"}), decision="allow")

    def refuse(event: Event) -> Answer | None:
        return cancel("guarded") if event.payload.valid else None  # type: ignore[attr-defined]

    mender, guard = Ext({"tool:before_call": mend}, "mender"), Ext({"tool:before_call": refuse}, "guard")
    for order in ((mender, guard), (guard, mender)):
        folder = tmp_path / order[0].owner
        folder.mkdir()
        world = World(folder, 'call: bash {"cmd":"x"}\n---\ntext: end\n', *order, settings=nested(TRUST))
        world.run("go")
        assert "guarded" in world.results()[0]


def test_an_unknown_tool_may_be_answered_by_a_hook_unless_a_rule_denies_it(tmp_path: Path) -> None:
    script = "call: oracle {}\n---\ntext: end\n"
    for number, (settings, words) in enumerate([({}, "42"), ({"permissions.deny": ["oracle"]}, "by policy")]):
        (tmp_path / str(number)).mkdir()
        ext = Ext({"tool:before_call": always(handled("42"))})
        world = World(tmp_path / str(number), script, ext, settings=nested(settings))
        world.run("go")
        assert words in world.results()[0]


def test_an_allow_is_void_after_a_change_by_somebody_else(tmp_path: Path) -> None:
    first = Ext({"tool:before_call": always(allow())}, "first")
    second = Ext({"tool:before_call": always(rewrite(command="echo worse"))}, "second")
    world = World(tmp_path, ECHO, first, second)
    world.run("go")
    assert "Not allowed by policy" in world.results()[0]


def test_the_handlers_variables_reach_the_tool(tmp_path: Path) -> None:
    ext = Ext({"tool:before_call": always(transform(env={"COLOUR": "green"}))})
    world = World(tmp_path, 'call: bash {"command":"echo $COLOUR"}\n---\ntext: end\n', ext, settings=nested(TRUST))
    world.run("go")
    assert world.results() == ["green"]


@pytest.mark.parametrize(
    ("raised", "which", "words"),
    [
        (ToolError("cannot"), "failed", "cannot"),
        (ToolTimeout("too long", "so far"), "timeout", "so far\n[too long]"),
        (ValueError("oops"), "failed", "ValueError: oops"),
        (ToolResult("bad", is_error=True), "failed", "bad"),
    ],
)
def test_a_tool_that_fails_gives_an_error_result(tmp_path: Path, raised: Any, which: str, words: str) -> None:
    def work(_args: dict[str, Any]) -> ToolResult:
        if isinstance(raised, Exception):
            raise raised
        return raised  # type: ignore[no-any-return]

    world = World(tmp_path, "call: made {}\n---\ntext: end\n").tools(MadeTool("made", work))
    assert world.run("go").cause == "done"
    [entry] = world.log("tool_result")
    assert (entry.content, entry.metadata["which"], entry.metadata["is_error"]) == (words, which, True)


@pytest.mark.parametrize("method", ["check", "subject", "paths"])
def test_a_tool_that_breaks_before_it_runs_is_a_failed_call(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object) -> None:
        raise KeyError("inside")

    tool = MadeTool("made", lambda _a: "fine")
    monkeypatch.setattr(tool, method, broken)
    world = World(tmp_path, "call: made {}\n---\ntext: end\n").tools(tool)
    assert world.run("go").cause == "done"
    assert world.log("tool_result")[0].metadata["which"] == "failed"
    assert any("tool made failed" in text for text in world.notices())


def test_context_of_tool_events_follows_the_result_each_on_a_line(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "note.md").write_text("from a file")
    ext = Ext({
        "tool:before_call": always(Answer(context=("one",), context_files=("./note.md",))),
        "tool:called": always(Answer(context=("two",))),
        "tool:completed": always(Answer(context=("three",), context_files=("note.md", "missing.md"))),
    })  # fmt: skip
    world = World(tmp_path, "call: ls {}\n---\ntext: end\n", ext)
    world.run("go")
    assert world.results() == ["note.md\t11\none\ntwo\nthree\n## Referenced files\n- note.md"]


def test_context_of_a_call_that_says_nothing_stands_alone(tmp_path: Path) -> None:
    ext = Ext({"tool:before_call": always(Answer(context=("one",)))})
    world = World(tmp_path, "call: made {}\n---\ntext: end\n", ext).tools(MadeTool("made", lambda _a: ""))
    world.run("go")
    assert world.results() == ["one"]


def test_injects_of_several_tool_events_become_one_message_after_the_results(tmp_path: Path) -> None:
    ext = Ext({
        "tool:before_call": always(Answer(inject=Inject("first"))),
        "tool:completed": always(Answer(inject=Inject("second"))),
        "tool:batch_completed": always(Answer(inject=Inject("third"))),
    })  # fmt: skip
    world = World(tmp_path, "call: ls {}\n---\ntext: end\n", ext)
    world.run("go")
    assert world.said()[-2:] == [("tool", "(empty folder)"), ("user", "first\n\nsecond\n\nthird")]


@pytest.mark.parametrize(
    ("event", "field", "script"),
    [("tool:completed", "result", "call: ls {}\n"), ("tool:failed", "error", "call: nothing {}\n")],
)
def test_a_result_may_be_rewritten(tmp_path: Path, event: str, field: str, script: str) -> None:
    world = World(tmp_path, f"{script}---\ntext: end\n", Ext({event: always(transform(**{field: "rewritten"}))}))
    world.run("go")
    assert world.results() == ["rewritten"]


def test_a_long_output_is_spilled_also_when_it_is_an_error(tmp_path: Path) -> None:
    for number, code in enumerate((0, 3)):
        (tmp_path / str(number)).mkdir()
        script = f'call: bash {{"command":"seq 1 9000; exit {code}"}}\n---\ntext: end\n'
        world = World(tmp_path / str(number), script, settings=nested(TRUST))
        world.run("go")
        assert len(world.results()[0]) < 5000 and "saved in" in world.results()[0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [(handled("short"), "Summary:\nshort"), (transform(summary="brief"), "Summary:\nbrief"), (cancel("full"), "9000")],
)
def test_handlers_of_output_cached_decide_what_the_model_sees(tmp_path: Path, answer: Answer, words: str) -> None:
    script = 'call: bash {"command":"seq 1 9000"}\n---\ntext: end\n'
    world = World(tmp_path, script, Ext({"output:cached": always(answer)}), settings=nested(TRUST))
    world.run("go")
    assert words in world.results()[0]


def test_a_question_to_a_person_is_surrounded_by_its_events(tmp_path: Path) -> None:
    world = World(tmp_path, ECHO, asker=Person(YES))
    world.run("go")
    [asked], [answered] = world.of(InteractionRequested), world.of(InteractionCompleted)
    assert asked.id == answered.id and answered.outcome == "once"
    assert answered.response == {"allowed": True, "scope": "once", "pattern": "", "reason": ""}


def test_call_user_speaks_for_the_agent_and_ends_the_turn(tmp_path: Path) -> None:
    script = 'text: thinking\ncall: call_user {"message":"Which one?"}\ncall: ls {}\n---\ntext: next\n'
    world = World(tmp_path, script)
    result = world.run("go")
    assert (result.cause, result.response, result.rounds) == ("done", "Which one?", 1)
    said = [e.content for e in world.log("message") if e.role == "agent"]
    assert said == ["thinking", "Which one?"]
    assert len(world.results()) == 2
    assert world.run("the left").response == "next"
    assert [role for role, _ in world.said()] == ["user", "assistant", "tool", "tool", "user"]


def test_a_halt_before_a_call_names_who_halted(tmp_path: Path) -> None:
    ext = Ext({"permission:requested": always(halt("stop it"))})
    world = World(tmp_path, ECHO, ext)
    result = world.run("go")
    assert (result.cause, result.reason) == ("halted", "stop it")
    assert world.results() == ["Blocked by ext: stop it"]


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ('write {"file_path":"a.txt","content":"one\\ntwo\\n"}', "one\ntwo\n(2 lines, 8 bytes)"),
        ('edit {"file_path":"a.txt","old_string":"x","new_string":"y"}', "- x\n+ y"),
        ('send_message {"to":"other","content":"hello"}', "hello"),
        ('bash {"command":"true"}', ""),
    ],
)
def test_a_question_shows_what_would_be_written_or_sent(tmp_path: Path, call: str, shown: str) -> None:
    person = Person(NO)
    World(tmp_path, f"call: {call}\n---\ntext: end\n", asker=person).run("go")
    assert [q.preview for q in person.questions] == [shown]


def test_a_question_is_asked_although_the_tool_cannot_show_a_preview(tmp_path: Path) -> None:
    class Torn(MadeTool):
        def preview(self, args: dict[str, Any]) -> str:
            raise KeyError("content")

    tool, person = Torn("torn", lambda _: "ran"), Person(YES)
    tool.kind = "tool"
    world = World(tmp_path, "call: torn {}\n---\ntext: end\n", asker=person).tools(tool)
    world.run("go")
    assert world.results() == ["ran"] and [q.preview for q in person.questions] == [""]
    assert any("torn: no preview" in text for text in world.notices())


@pytest.mark.parametrize(("reply", "word"), [(YES, "allow"), (NO, "deny")])
def test_a_persons_yes_and_no_are_both_by_human(tmp_path: Path, reply: PermissionReply, word: str) -> None:
    world = World(tmp_path, ECHO, asker=Person(reply))
    world.run("go")
    [resolved] = world.of(PermissionResolved)
    assert (resolved.decision, resolved.by) == (word, "human")


def test_a_refusal_names_the_settings_file_of_this_home(tmp_path: Path) -> None:
    world = World(tmp_path, ECHO)
    world.run("go")
    assert "in ~/home/config.toml" in world.results()[0]  # HOME is the folder above
