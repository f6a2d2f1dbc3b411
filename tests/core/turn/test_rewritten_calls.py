"""Handlers of a question that put another call in its place, and what they permit beside it (docs/decisions/answers.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import Ext, Person, World, always

from cru.core.events.answers import (
    Answer,
    Change,
    GrantKind,
    GrantScope,
    Inject,
    PermissionUpdate,
    UpdateKind,
    allow,
    ask,
    cancel,
    handled,
)
from cru.core.events.payloads import PermissionResolved, ToolCalled
from cru.core.events.registry import HandlerFunction
from cru.core.events.stamp import Event
from cru.core.guard.rules.gate import PermissionReply

ECHO = 'call: bash {"command":"echo first"}\n---\ntext: end\n'
TWICE = 'call: bash {"command":"echo first"}\n---\ncall: bash {"command":"echo second"}\n---\ntext: end\n'
QUESTION, CALL = "permission:requested", "tool:before_call"
NO, YES = PermissionReply("no", "not today"), PermissionReply("once")


def rewrite(command: str, decision: Any = "allow", **more: Any) -> Answer:
    return Answer(decision, changes=(Change("args", "set", {"command": command}),), **more)


def at(command: str, answer: Answer, otherwise: Answer | None = None) -> HandlerFunction:
    """Answers when the call is this command."""
    return lambda event: answer if event.payload.args["command"] == command else otherwise


def hooks(*answers: HandlerFunction, event: str = QUESTION) -> list[Ext]:
    """Command hooks of one group, one owner each."""
    return [Ext([(event, answer, {"lane": "commands"})], f"hook {n}") for n, answer in enumerate(answers)]


def rules(**lists: list[str]) -> dict[str, Any]:
    return {"permissions": lists}


OTHER = always(rewrite("echo other"))
# handlers, settings, person, the result, who decided
WAYS: dict[str, tuple[list[Ext], dict[str, Any], Any, str, str]] = {
    "a leave for another call": (hooks(OTHER), {}, None, "other", "hook 0"),
    "a plain allow before the rewrite": (hooks(always(allow()), OTHER), {}, None, "other", "hook 1, hook 0"),
    "a plain allow behind the rewrite": (hooks(OTHER, always(allow())), {}, None, "other", "hook 0, hook 1"),
    "the last of two rewrites": (hooks(OTHER, always(rewrite("echo last"))), {}, None, "last", "hook 1"),
    "a rewrite without a leave": (hooks(always(rewrite("echo other", "none"))), {}, NO, "The user refused", "human"),
    "an allow beside a rewrite without one": (
        hooks(at("echo first", allow()), always(rewrite("echo other", "none"))), {}, NO, "The user refused", "human"),
    "a rewrite behind a leave, by another group": (
        [*hooks(OTHER), Ext([(QUESTION, at("echo other", rewrite("echo more", "none")), {"priority": 200})], "late")],
        {}, NO, "The user refused", "human"),
    "a deny rule": (hooks(OTHER), rules(deny=["bash:echo other"]), YES, "the rule `bash:echo other`", "policy"),
    "an ask rule on the other call": (hooks(OTHER), rules(ask=["bash:echo other"]), NO, "The user refused", "human"),
    "an ask rule, plainly allowed": (hooks(always(allow())), rules(ask=["bash"]), NO, "The user refused", "human"),
    "an ask rule, answered in its place": (hooks(always(handled("allow"))), rules(ask=["bash"]), NO, "The user refused", "human"),
    "an ask rule, and a guard that asks, too": (
        [*hooks(always(allow())), Ext({CALL: always(ask("sure?"))}, "guard")], rules(ask=["bash"]), NO, "The user refused", "human"),
    "a guard refuses the other call": (
        [*hooks(OTHER), Ext({CALL: at("echo other", cancel("no other"))}, "guard")], {}, YES, "Blocked by guard: no other", "guard"),
    "a guard asks about the other call": (
        [*hooks(OTHER), Ext({CALL: at("echo other", ask("sure?"))}, "guard")], {}, NO, "The user refused", "human"),
    "a guard changes the other call": (
        [*hooks(OTHER), Ext({CALL: at("echo other", rewrite("echo safe", "none"))}, "guard")], {}, YES, "safe", "human"),
    "an earlier handler refuses the other call": (
        [Ext([(QUESTION, at("echo other", cancel("never")), {"priority": 1})], "early"), *hooks(OTHER)], {}, YES,
        "Blocked by early: never", "early"),
    "a neighbour asks about the other call": (
        hooks(OTHER, at("echo other", ask("sure?"))), {}, NO, "The user refused", "human"),
    "who changed it wants a person": (
        hooks(at("echo first", rewrite("echo other", "ask")), at("echo other", allow())), {}, NO, "The user refused", "human"),
    "a neighbour refuses": (hooks(OTHER, always(cancel("never"))), {}, YES, "Blocked by hook 1: never", "hook 1"),
    "the question is asked beside a leave": (hooks(always(ask("sure?")), always(handled("allow"))), {}, NO, "The user refused", "human"),
    "a rewrite of the rewrite": (
        hooks(OTHER, at("echo other", rewrite("echo third"))), {}, None, "other", "hook 0"),
    "no call at all": (hooks(always(rewrite(7))), {}, YES, "as changed by a hook", ""),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("case", WAYS)
def test_a_call_that_takes_the_place_of_another_is_judged_from_the_start(tmp_path: Path, case: str) -> None:
    extensions, settings, reply, words, by = WAYS[case]
    world = World(tmp_path, ECHO, *extensions, settings=settings, asker=Person(reply) if reply is not None else None)
    assert world.run("go").cause == "done"
    [entry] = world.log("tool_result")
    assert words in entry.content and "first" not in entry.content
    assert [resolved.by for resolved in world.of(PermissionResolved)] == ([by] if by else [])


def test_what_runs_is_the_call_that_was_allowed_and_every_guard_has_heard_of_it(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []

    def record(event: Event) -> None:
        heard.append((event.name, event.payload.args["command"]))  # type: ignore[attr-defined]

    world = World(tmp_path, ECHO, Ext({CALL: record, QUESTION: record}, "guard"), *hooks(OTHER))
    world.run("go")
    assert heard == [(CALL, "echo first"), (QUESTION, "echo first"), (CALL, "echo other"), (QUESTION, "echo other")]
    assert [call.args["command"] for call in world.of(ToolCalled)] == ["echo other"]


def test_who_changed_a_call_is_not_asked_about_it_again(tmp_path: Path) -> None:
    heard: list[str] = []

    def wrap(event: Event) -> Answer:
        command = event.payload.args["command"]  # type: ignore[attr-defined]
        heard.append(command)
        return rewrite(f"nice {command}")

    world = World(tmp_path, ECHO, *hooks(wrap))
    world.run("go")
    assert heard == ["echo first"]
    assert [call.args["command"] for call in world.of(ToolCalled)] == ["nice echo first"]


def test_texts_of_both_questions_reach_the_model(tmp_path: Path) -> None:
    more = {"context": ("by the way",), "inject": Inject("go on")}
    world = World(tmp_path, ECHO, *hooks(always(rewrite("echo other", **more))))
    world.run("go")
    assert world.results() == ["other\nby the way"] and ("user", "go on") in world.said()


@pytest.mark.parametrize(
    ("extensions", "why", "changed_by", "before"),
    [
        (hooks(always(rewrite("echo other", "ask", reason="sure?"))), "hook 0 asks: sure?", "hook 0", "echo first"),
        (hooks(at("echo first", rewrite("echo other", "ask"), allow())), "hook 0 asks: a person", "hook 0", "echo first"),
        (hooks(always(rewrite("echo other", "none"))), "ask mode asks", "hook 0", "echo first"),
        ([Ext({CALL: always(ask("sure?"))}, "guard")], "guard asks: sure?", "", ""),
        ([Ext({CALL: always(rewrite("echo other", "ask"))}, "guard")], "guard asks: a person is to decide", "guard", "echo first"),
        ([Ext({QUESTION: always(ask("sure?"))}, "guard")], "guard asks: sure?", "", ""),
    ],
)  # fmt: skip
def test_a_question_names_who_asks_who_changed_the_call_and_what_it_was(
    tmp_path: Path, extensions: list[Ext], why: str, changed_by: str, before: str
) -> None:
    person = Person(NO)
    World(tmp_path, ECHO, *extensions, asker=person).run("go")
    [question] = person.questions
    assert why in question.why and (question.changed_by, question.before) == (changed_by, before)


def give(*updates: PermissionUpdate, answer: Callable[..., Answer] = allow) -> Answer:
    from msgspec.structs import replace

    return replace(answer(), updates=updates)


ALLOW = PermissionUpdate(UpdateKind.ADD, GrantScope.SESSION, GrantKind.ALLOW, ("bash:echo *",))
DENY = PermissionUpdate(UpdateKind.ADD, GrantScope.SESSION, GrantKind.DENY, ("bash:echo second",))
SELF = PermissionUpdate(UpdateKind.ADD, GrantScope.SESSION, GrantKind.DENY, ("bash:echo first",))
KEEP = PermissionUpdate(UpdateKind.REPLACE, GrantScope.SESSION, GrantKind.DENY, ("bash:echo second",))
REFUSED, RULE = "Not allowed by policy: ask mode", "Not allowed by policy: the rule"
# handlers, what comes of the first call and of the second
GIVEN: dict[str, tuple[list[HandlerFunction], str, str]] = {
    "rules of a leave hold from then on": ([at("echo first", give(ALLOW))], "first", "second"),
    "of a leave for another call, too": ([at("echo first", rewrite("echo other", updates=(ALLOW,)))], "other", "second"),
    "the updates of two hooks add up": ([at("echo first", allow()), at("echo first", give(ALLOW))], "first", "second"),
    "not those of a hook that is overruled": (
        [at("echo first", give(ALLOW)), at("echo first", cancel("no"))], "Blocked by hook 1", REFUSED),
    "not those of a leave that a change ended": (
        [at("echo first", give(ALLOW)), at("echo first", rewrite("echo other", "none"))], REFUSED, REFUSED),
    "a deny rule forbids": ([at("echo first", give(DENY), allow())], "first", RULE),
    "even beside a refusal": ([at("echo first", give(DENY, answer=cancel), allow())], "Blocked by hook 0", RULE),
    "even of a leave that is overruled": (
        [at("echo first", give(KEEP), allow()), at("echo first", cancel("no"))], "Blocked by hook 1", RULE),
    "it stands above what is allowed beside it": ([at("echo first", give(ALLOW, DENY))], "first", RULE),
    "it holds for the call itself": ([at("echo first", give(SELF), allow())], RULE, "second"),
}  # fmt: skip


@pytest.mark.parametrize("case", GIVEN)
def test_what_hooks_permit_and_forbid_from_now_on(tmp_path: Path, case: str) -> None:
    answers, first, second = GIVEN[case]
    world = World(tmp_path, TWICE, *hooks(*answers))
    assert world.run("go").cause == "done"
    results = [entry.content for entry in world.log("tool_result")]
    assert results[0].startswith(first) and results[1].startswith(second), results


def test_kept_answers_that_cannot_be_read_are_told_once(tmp_path: Path) -> None:
    world = World(tmp_path, TWICE)
    (tmp_path / "home" / "grants.json").write_text("{")
    world.run("go")
    assert [text for text in world.notices() if "grants.json.corrupt-1" in text] == world.notices() != []


def test_updates_are_told_and_have_a_place_at_questions_only(tmp_path: Path) -> None:
    world = World(tmp_path, ECHO, *hooks(always(give(ALLOW))), *hooks(always(give(DENY)), event=CALL))
    world.run("go")
    told = world.notices()
    assert "hook 0: tool:before_call: changes of what is permitted have no place here" in told
    assert not any("forbids" in text for text in told)
    (tmp_path / "more").mkdir()
    world = World(tmp_path / "more", ECHO, *hooks(always(give(ALLOW))))
    world.run("go")
    assert world.notices() == ["hook 0: allows `bash:echo *` from now on in this session"]
