"""How a turn ended: the outcome that handlers, limits and errors give it (docs/turn.md, "Outcomes")."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import Ext, Person, World, always, once

from cru.core.base.values.messages import LEG_ENDED
from cru.core.events.answers import OUTCOMES, PASS, Answer, TurnOutcome, add, cancel, halt, inject
from cru.core.turn.idempotency import find_earlier
from cru.core.turn.outcomes import describe_end
from cru.core.turn.turn import LegResult
from cru.faces.cli.session_run import exit_status

LOOP = "loop: yes\ntext: said\n"
ASK = 'loop: yes\ncall: call_user {"message": "Which one?"}\n'
NOBODY = "[Nobody can answer. Decide for yourself and continue, and say what you assumed.]"
GAVE_UP = TurnOutcome("gave_up", "no progress", ("port it",), ("it builds",))


def over(outcome: TurnOutcome, answer: Answer = PASS) -> Answer:
    return add(answer, Answer(outcome=outcome))


def complete(answer: Answer) -> Ext:
    return Ext({"turn:complete": always(answer)})


# what ends the turn → its script, its handlers, its settings, its outcome, its exit status
ENDS: dict[str, tuple[str, dict[str, Any], dict[str, Any], tuple[str, str], int]] = {
    "nothing": (LOOP, {}, {}, ("done", ""), 0),
    "a handler that says done": (LOOP, {"turn:complete": always(over(TurnOutcome("done", "all of it")))}, {}, ("done", "all of it"), 0),
    "a handler that gives up": (LOOP, {"turn:complete": always(over(GAVE_UP))}, {}, ("gave_up", "no progress"), 3),
    "a handler that is out of budget": (
        LOOP, {"turn:complete": always(over(TurnOutcome("out_of_budget", "2 turns")))}, {}, ("out_of_budget", "2 turns"), 3,
    ),
    "a handler that fails the turn": (
        LOOP, {"turn:complete": always(over(TurnOutcome("failed", "the tests fail")))}, {}, ("failed", "the tests fail"), 3,
    ),
    "a halt at the end": (LOOP, {"turn:complete": always(halt("enough"))}, {}, ("failed", "enough"), 3),
    "a halt with an outcome": (LOOP, {"turn:complete": always(over(GAVE_UP, halt("enough")))}, {}, ("gave_up", "no progress"), 3),
    "a halt with an outcome without a reason": (
        LOOP, {"turn:complete": always(over(TurnOutcome("gave_up"), halt("enough")))}, {}, ("gave_up", "enough"), 3,
    ),
    "a halt on the way": (LOOP, {"agent:responded": always(halt("stop"))}, {}, ("failed", "stop"), 3),
    "a halt on the way that is done": (
        LOOP, {"agent:responded": always(over(TurnOutcome("done", "the goal is met"), halt("stop")))}, {}, ("done", "the goal is met"), 0,
    ),
    "a prompt that is refused": (LOOP, {"message:received": always(cancel("no"))}, {}, ("failed", "no"), 3),
    "an error": ("error: 400 broken\n", {}, {}, ("failed", ""), 1),
    "fuel": ("loop: yes\ncall: ls {}\n", {}, {"fuel": 1}, ("out_of_budget", "this prompt has cost 1 "), 3),
    "continuations": (LOOP, {"turn:complete": always(inject("more"))}, {"max_continuations": 1}, ("out_of_budget", "1 continuations"), 3),
    "a circle": ("loop: yes\ncall: ls {}\n", {}, {"max_idle_rounds": 2}, ("gave_up", "2 rounds brought nothing new"), 3),
    "a budget": (
        "loop: yes\nusage: input=9\ncall: ls {}\n", {}, {"budget": {"max_tokens": 1}}, ("out_of_budget", "this prompt has used"), 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ENDS)
def test_what_ends_a_turn_gives_it_its_outcome(tmp_path: Path, what: str) -> None:
    script, handlers, settings, (kind, reason), status = ENDS[what]
    result = World(tmp_path, script, Ext(handlers), settings=settings).run("go")
    assert (result.outcome.kind, exit_status(result)) == (kind, status)
    assert result.outcome.reason.startswith(reason) and result.is_done is (kind == "done")
    if status == 3:
        assert result.cause in ("halted", "cancelled")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (cancel("not yet"), "failed"),
        (halt("stop"), "failed"),
        (over(GAVE_UP), "gave_up"),
        (over(GAVE_UP, halt("stop")), "gave_up"),
        (PASS, "done"),
    ],
)
def test_a_handler_of_turn_ending_has_the_last_word(tmp_path: Path, answer: Answer, kind: str) -> None:
    result = World(tmp_path, LOOP, Ext({"turn:ending": always(answer)})).run("go")
    assert (result.outcome.kind, exit_status(result)) == (kind, 0 if kind == "done" else 3)
    assert result.outcome.reason == {"failed": answer.reason, "gave_up": "no progress", "done": ""}[kind]


@pytest.mark.parametrize(("on_error", "kind"), [("deny", "failed"), ("", "done"), ("pass", "done")])
@pytest.mark.parametrize("event", ["turn:complete", "turn:ending"])
def test_a_judge_that_breaks_fails_the_turn_if_it_says_so(tmp_path: Path, event: str, on_error: str, kind: str) -> None:
    def broken(_event: Any) -> Answer:
        raise ValueError("no disk")

    world = World(tmp_path, LOOP, Ext([(event, broken, {"on_error": on_error})]))
    result = world.run("go")
    assert (result.outcome.kind, exit_status(result)) == (kind, 0 if kind == "done" else 3)
    assert kind == "done" or "the handler of ext failed: ValueError: no disk" in result.outcome.reason


def test_a_limit_keeps_what_a_discipline_says_is_open(tmp_path: Path) -> None:
    more = over(TurnOutcome("gave_up", open=("port it",)), inject("more"))
    result = World(tmp_path, LOOP, complete(more), settings={"max_continuations": 1}).run("go")
    assert (result.outcome.kind, result.outcome.open) == ("out_of_budget", ("port it",))
    assert result.outcome.reason.startswith("1 continuations")


def test_the_outcome_keeps_what_is_open_and_the_evidence(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP, complete(over(GAVE_UP)))
    assert world.run("go").outcome == GAVE_UP
    assert world.log(LEG_ENDED)[-1].metadata["outcome"] == {
        "kind": "gave_up", "reason": "no progress", "open": ["port it"], "evidence": ["it builds"],
    }  # fmt: skip


def test_an_outcome_counts_only_where_the_turn_ends(tmp_path: Path) -> None:
    call, fields = once(over(GAVE_UP, inject("more")))
    world = World(tmp_path, LOOP, Ext([("turn:complete", call, fields)]))
    assert world.run("go").outcome == TurnOutcome("done")
    assert [entry.metadata.get("outcome") for entry in world.log(LEG_ENDED)] == [None, None]


def test_another_handler_that_goes_on_is_heard_before_one_that_gives_up(tmp_path: Path) -> None:
    call, fields = once(inject("more"))
    world = World(tmp_path, LOOP, complete(over(GAVE_UP)), Ext([("turn:complete", call, fields)], "other"))
    assert world.run("go").outcome.kind == "gave_up" and len(world.sent) == 2


@pytest.mark.parametrize(("first", "second"), list(itertools.product(OUTCOMES, repeat=2)))
def test_the_worse_of_two_outcomes_counts_with_all_that_is_open(first: Any, second: Any) -> None:
    a, b = TurnOutcome(first, "one", ("x", "y"), ("e",)), TurnOutcome(second, "two", ("y", "z"))
    both = add(Answer(outcome=a), Answer(outcome=b)).outcome
    assert both is not None
    worse = max(first, second, key=OUTCOMES.index)
    reason = "one; two" if first == second else "one" if first == worse else "two"
    assert both == TurnOutcome(worse, reason, ("x", "y", "z"), ("e",))


@pytest.mark.parametrize("person", [None, Person(None)], ids=["nobody", "a person"])
def test_a_question_waits_for_a_person_and_is_answered_once_where_nobody_is(
    tmp_path: Path, person: Person | None
) -> None:
    def asks(event: Any) -> Answer:
        assert event.payload.called_user
        return over(TurnOutcome("needs_person", event.payload.response, ("port it",)))

    world = World(tmp_path, ASK, Ext({"turn:complete": asks}), asker=person)
    result = world.run("go")
    prompts = [entry.content for entry in world.log("message") if entry.role == "user"]
    assert prompts == ["go"] + [NOBODY] * (person is None)
    assert (result.outcome.kind, result.outcome.reason, exit_status(result)) == ("needs_person", "Which one?", 3)
    world.run("again")
    assert len(world.sent) == 4 if person is None else 2  # a prompt of the user counts anew


def test_a_call_of_call_user_without_a_discipline_ends_the_turn_well(tmp_path: Path) -> None:
    world = World(tmp_path, ASK)
    result = world.run("go")
    assert (result.is_done, exit_status(result), len(world.sent)) == (True, 0, 1)


def test_a_repeated_prompt_with_a_key_has_the_outcome_that_it_had(tmp_path: Path) -> None:
    world = World(tmp_path, LOOP, complete(over(GAVE_UP)))
    world.session.submit("go", key="k")

    asyncio.run(world.session.run())
    earlier = find_earlier(world.session.parts.store.everything(), "k")
    assert earlier is not None and earlier.is_finished
    assert (earlier.result.outcome, exit_status(earlier.result)) == (GAVE_UP, 3)


@pytest.mark.parametrize("saved", ["x", None, [], {"kind": "bogus"}])
def test_a_damaged_outcome_of_a_key_is_no_success(tmp_path: Path, saved: Any) -> None:
    world = World(tmp_path, LOOP)
    world.session.submit("go", key="k")
    asyncio.run(world.session.run())
    entries = list(world.session.parts.store.everything())
    entries[-1].metadata["outcome"] = saved
    earlier = find_earlier(entries, "k")
    assert earlier is not None and exit_status(earlier.result) == 3
    assert earlier.result.outcome.reason.startswith("how it ended is damaged in the log")


LINES = {
    "": LegResult("done"),
    "done: ralph-loop: complete": LegResult("done", outcome=TurnOutcome("done", "ralph-loop: complete")),
    "halted": LegResult("halted", reason="halted"),
    "halted: enough": LegResult("halted", reason="enough"),
    "cancelled: no": LegResult("cancelled", reason="no"),
    "interrupted": LegResult("interrupted", reason="interrupted"),
    "gave up: two lines; open: a": LegResult("halted", outcome=TurnOutcome("gave_up", "two\nlines", ("a",))),
    "needs a person: Which?; open: a, b, c": LegResult("halted", outcome=TurnOutcome("needs_person", "Which?", ("a", "b", "c"))),
    "out of budget: 2 turns; open: a, b, c and 2 more": LegResult(
        "halted", outcome=TurnOutcome("out_of_budget", "2 turns", ("a", "b", "c", "d", "e"))
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_the_last_line_says_how_it_ended(line: str) -> None:
    assert describe_end(LINES[line]) == line
