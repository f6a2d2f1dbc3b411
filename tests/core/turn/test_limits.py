"""What keeps a turn from costing without end: rounds without progress, fuel, continuations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import Ext, MadeTool, Person, World, always, payload

from cru.core.conversations.inbox import read_inbox
from cru.core.events.answers import Answer, Inject, cancel, transform
from cru.core.guard.rules.gate import PermissionReply
from cru.core.turn.loop_guard import CountedCall, LoopGuard, LoopStep
from cru.core.turn.turn import LegResult

A, B, C, D = (f'call: a {{"n": {n}}}' for n in range(4))
EMPTY = "think: hm"
NO = PermissionReply("no")
YES = PermissionReply("once")


def play(
    tmp_path: Path, *replies: str, person: Any = None, extensions: tuple[Ext, ...] = (), **settings: Any
) -> tuple[World, LegResult]:
    """The replies over and over, with a tool `a` that always gives the same result."""
    script = "loop: yes\nby: order\n" + "\n---\n".join(replies) + "\n"
    world = World(tmp_path, script, *extensions, asker=person, settings=settings)
    change = MadeTool("change", lambda _args: "done", kind="tool")
    world.tools(MadeTool("a", lambda _args: "done"), MadeTool("forbidden", lambda _args: "done"), change)
    return world, world.run("go")


def numbered(count: int) -> list[str]:
    """Replies that all call something else, and an end."""
    return [*(f'call: a {{"n": {n}}}' for n in range(count)), "text: end"]


def logged(world: World, text: str) -> int:
    return sum(text in entry.content for entry in world.log("message"))


@pytest.mark.parametrize(
    "replies",
    [
        [A], [A, B], [A, B, C], [A, B, C, D], [A, A, B], [A, EMPTY], [A, B, EMPTY], [EMPTY, A, EMPTY, B],
        [f"{A}\n{B}", B, f"{B}\n{C}"], [A, "call: nothing {}"], ["call: nothing {}", "call: a oops", A],
    ],
)  # fmt: skip
def test_a_circle_is_told_to_the_model_once_and_then_stopped(tmp_path: Path, replies: list[str]) -> None:
    world, result = play(tmp_path, *replies)
    assert (result.cause, "rounds brought nothing new" in result.reason) == ("halted", True), result
    assert len(world.sent) <= 30
    assert logged(world, "Do not repeat them") == 1
    assert [notice for notice in world.notices() if "nobody can be asked" in notice]


@pytest.mark.parametrize("answer", [cancel("no"), Answer(decision="deny", reason="no")])
def test_refused_calls_are_no_progress_whatever_their_arguments(tmp_path: Path, answer: Answer) -> None:
    guard = Ext([("tool:before_call", always(answer), {"pattern": "forbidden"})])
    replies = [line.replace("call: a", "call: forbidden") for line in numbered(60)]
    world, result = play(tmp_path, *replies, extensions=(guard,))
    assert (result.cause, len(world.sent)) == ("halted", 15)


def test_a_circle_is_seen_over_continuations(tmp_path: Path) -> None:
    again = Ext({"turn:complete": always(Answer(inject=Inject("go on")))})
    world, result = play(tmp_path, A, "text: so", extensions=(again,), max_continuations=0, fuel=0)
    assert result.cause == "halted" and len(world.sent) <= 20
    (tmp_path / "2").mkdir()
    world, result = play(tmp_path / "2", "text: so", extensions=(again,), max_continuations=0, fuel=0)
    assert (result.cause, len(world.sent)) == ("halted", 16)
    assert (
        "rounds brought nothing new" in result.reason
        and sum("no progress" in notice for notice in world.notices()) == 1
    )


@pytest.mark.parametrize(("reply", "requests", "cause"), [(NO, 11, "halted"), (YES, 25, "done")])
def test_a_person_decides_before_it_is_stopped(
    tmp_path: Path, reply: PermissionReply, requests: int, cause: str
) -> None:
    person = Person(reply)
    world, result = play(tmp_path, *[A] * 24, "text: end", person=person)
    assert (result.cause, len(world.sent)) == (cause, requests)
    assert {(q.tool, q.detail) for q in person.questions} == {("loop", 'a {"n": 0}')}
    assert [q.why for q in person.questions] == ["10 rounds brought nothing new; go on?"] * (
        2 if cause == "done" else 1
    )


def test_what_gives_something_new_is_no_circle(tmp_path: Path) -> None:
    """A test that is run again after every change, and a call that is waited for until its result changes."""
    changes = (line for n in range(4, 34) for line in (A, f'call: change {{"n": {n}}}'))
    world, result = play(tmp_path, *changes, "text: end", mode="trust")
    assert (result.cause, logged(world, "Do not repeat")) == ("done", 0)
    counts = iter(range(99))
    (tmp_path / "2").mkdir()
    world = World(tmp_path / "2", "call: a {}\nrepeat: 30\n---\ntext: end\n")
    world.tools(MadeTool("a", lambda _args: str(next(counts))))
    assert world.run("go").cause == "done"


def test_what_hooks_add_to_a_result_does_not_hide_a_circle(tmp_path: Path) -> None:
    counts = iter(range(99))
    ext = Ext({"tool:completed": lambda _e: Answer(context=(f"tick {next(counts)}",))})
    assert play(tmp_path, A, extensions=(ext,))[1].cause == "halted"


def test_many_equal_calls_in_one_reply_are_one_step(tmp_path: Path) -> None:
    assert play(tmp_path, "\n".join([A] * 20), "text: end")[1].cause == "done"


def test_every_user_prompt_begins_anew(tmp_path: Path) -> None:
    world, _ = play(tmp_path, *[A] * 12, "text: end")
    assert world.run("again").cause == "done"
    assert logged(world, "Do not repeat them") == 2


def test_a_wait_for_the_same_result_may_be_as_long_as_a_person_sets(tmp_path: Path) -> None:
    world, result = play(tmp_path, *[A] * 30, "text: end", max_idle_rounds=40)
    assert (result.cause, logged(world, "Do not repeat them")) == ("done", 1)
    assert [notice for notice in world.notices() if "nobody can be asked" in notice]
    (tmp_path / "2").mkdir()
    (tmp_path / "3").mkdir()
    _, result = play(tmp_path / "2", *[A] * 30, "text: end")
    assert result.reason == "15 rounds brought nothing new (setting max_idle_rounds)"
    assert play(tmp_path / "3", *[A] * 30, "text: end", max_idle_rounds=0)[1].cause == "done"


def test_after_a_compaction_everything_is_new_again() -> None:
    guard = LoopGuard(15)
    calls = [
        CountedCall("read", str(n), word, "read")
        for n, word in enumerate(("one", "two", "three", "four", "five", "six"))
    ]
    for call in calls:
        guard.take_calls([call])
    guard.forget()
    assert {guard.take_calls([call]) for call in calls} == {LoopStep.GO_ON}
    assert LoopStep.NUDGE in {guard.take_calls([call]) for call in calls}


def test_fuel_is_told_at_its_end_and_a_person_can_give_more(tmp_path: Path) -> None:
    world, result = play(tmp_path, *numbered(20), fuel=4)
    assert (result.cause, len(world.sent)) == ("halted", 4)
    assert "this prompt has cost 4 " in result.reason and "-s fuel=N" in result.reason
    (tmp_path / "2").mkdir()
    person = Person(YES)
    world, result = play(tmp_path / "2", *numbered(10), person=person, fuel=4)
    assert (result.cause, len(world.sent)) == ("done", 11)
    costs = [f"this prompt has cost {n} tool batches and continuations; go on for 4 more?" for n in (4, 8)]
    assert [q.why for q in person.questions] == costs
    (tmp_path / "3").mkdir()
    world, result = play(tmp_path / "3", *numbered(20), person=Person(NO), fuel=4)
    assert (result.cause, len(world.sent)) == ("halted", 4)


def test_fuel_that_a_handler_has_set_is_not_asked_for(tmp_path: Path) -> None:
    person = Person(YES)
    ext = Ext([("leg:started", always(transform(fuel=2)))])
    world, result = play(tmp_path, *numbered(20), person=person, extensions=(ext,))
    assert (result.cause, len(world.sent), person.questions) == ("halted", 2, [])
    assert "a handler set" in result.reason


def test_a_person_can_allow_more_continuations(tmp_path: Path) -> None:
    def more(event: Any) -> Answer | None:
        return Answer(inject=Inject("go on")) if payload(event).continuations < 5 else None

    person = Person(YES)
    texts = [f"text: {n}" for n in range(9)]
    _, result = play(tmp_path, *texts, person=person, extensions=(Ext({"turn:complete": more}),), max_continuations=2)
    assert (result.response, len(person.questions)) == ("5", 2)
    (tmp_path / "2").mkdir()
    _, result = play(tmp_path / "2", *texts, extensions=(Ext({"turn:complete": more}),), max_continuations=2)
    assert (result.response, result.cause) == ("2", "halted") and "(setting max_continuations)" in result.reason


def test_an_inject_of_an_idle_session_beyond_a_limit_halts_too(tmp_path: Path) -> None:
    again = Ext({"session:idle": always(Answer(inject=Inject("go on")))})
    _, result = play(tmp_path, "text: 1", "text: 2", "text: 3", extensions=(again,), max_continuations=1)
    assert (result.cause, result.response) == ("halted", "2") and "max_continuations" in result.reason


@pytest.mark.parametrize("fuel", [250, 4])
def test_words_behind_an_answer_reach_the_model(tmp_path: Path, fuel: int) -> None:
    """After yes with the next request, after no with the next prompt, which another process may take in."""
    yes, no = (Person(PermissionReply(choice, "look at X")) for choice in ("once", "no"))
    world, result = play(tmp_path, *[A] * 11, "text: end", person=yes, fuel=fuel)
    assert result.cause == "done" and "look at X" in str(world.said())
    (tmp_path / "2").mkdir()
    world, result = play(tmp_path / "2", *[A] * 11, "text: end", person=no, fuel=fuel)
    assert result.cause == "halted" and "look at X" not in str(world.said())
    assert [message.content for message in read_inbox(world.session.parts.store.folder)[0]] == [
        "[The user, asked whether to go on: look at X]"
    ]
    world.run("again")
    assert "look at X" in str(world.said())
