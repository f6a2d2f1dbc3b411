"""The answer: constructors, the fold, and what a change may do to a payload."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.events.world import CALL

from cru.core.base.values.messages import Span
from cru.core.events import BadAnswer
from cru.core.events import answers as a
from cru.core.events.answers import PASS, Answer, Change, Inject, add, apply_change, strength
from cru.core.events.payloads import Attachment, LegStarted, MessageReceived, SystemPromptBuild, ToolsSelect

RECEIVED = MessageReceived("hello", (Attachment("a.txt", "A"), Attachment("b.txt", "B")))
BUILD = SystemPromptBuild((Span("base", "bundled", "You are."), Span("notes", "file", "Note.")))
SELECT = ToolsSelect(("bash", "read", "edit"))


def test_every_constructor_makes_the_record_it_names() -> None:
    assert a.transform(args={"a": 1}, env={}).changes == (Change("args", "set", {"a": 1}), Change("env", "set", {}))
    assert a.cancel() == Answer(decision="deny", reason="cancelled")
    assert a.halt("enough") == Answer(decision="deny", halt=True, reason="enough")
    assert a.allow("fine") == Answer(decision="allow", reason="fine")
    assert a.ask("sure?") == Answer(decision="ask", reason="sure?")
    assert a.inject("go on", "user_suffix", "m").inject == Inject("go on", "user_suffix", "m")
    assert a.add_context("one", "two").context == ("one", "two")
    assert a.handled({"content": "x"}).result == {"content": "x"}
    assert Answer() == PASS


def test_handled_with_nothing_is_a_mistake_and_an_empty_result_is_not() -> None:
    assert a.handled("").result == ""
    with pytest.raises(BadAnswer, match="without a result"):
        a.handled(None)


texts = st.text("ab\n", max_size=3)
answers = st.one_of(
    st.just(PASS),
    st.builds(
        Answer,
        decision=st.sampled_from(list(a.STRENGTH)),
        halt=st.booleans(),
        reason=texts,
        changes=st.lists(st.builds(Change, texts, st.just("set"), st.integers()), max_size=2).map(tuple),
        context=st.lists(texts, max_size=2).map(tuple),
        context_files=st.lists(texts, max_size=2).map(tuple),
        inject=st.none() | st.builds(Inject, texts),
        result=st.none() | st.sampled_from(["", "r", 0, False]),
        note=texts,
    ),
)


@settings(max_examples=60, deadline=None)
@given(answers, answers, answers)
def test_the_fold_is_associative(x: Answer, y: Answer, z: Answer) -> None:
    assert add(add(x, y), z) == add(x, add(y, z))


@settings(max_examples=60, deadline=None)
@given(answers)
def test_pass_changes_nothing_on_either_side(x: Answer) -> None:
    assert add(x, PASS) == add(PASS, x) == add(x, Answer()) == add(Answer(), x) == x


@settings(max_examples=60, deadline=None)
@given(answers, answers)
def test_the_stronger_decision_wins_with_its_own_reason(x: Answer, y: Answer) -> None:
    both = add(x, y)
    assert strength(both) == max(strength(x), strength(y))
    assert both.halt == (x.halt or y.halt)
    assert a.STRENGTH[both.decision] == max(a.STRENGTH[x.decision], a.STRENGTH[y.decision])
    if strength(x) > strength(y):
        assert both.reason == x.reason
    if strength(x) < strength(y):
        assert both.reason == y.reason


@settings(max_examples=60, deadline=None)
@given(answers, answers)
def test_the_first_result_stays_the_last_inject_wins_the_rest_adds_up(x: Answer, y: Answer) -> None:
    both = add(x, y)
    assert both.result == (x.result if x.result is not None else y.result)
    assert both.inject == (y.inject or x.inject)
    assert both.changes == x.changes + y.changes
    assert both.context == x.context + y.context
    assert both.context_files == x.context_files + y.context_files


def test_strength_is_halt_cancel_ask_allow_none() -> None:
    order = [a.halt(), a.cancel(), a.ask(), a.allow(), PASS]
    assert [strength(one) for one in order] == sorted((strength(one) for one in order), reverse=True)
    assert len({strength(one) for one in order}) == 5
    assert strength(Answer(halt=True)) == strength(a.halt())


def test_reasons_of_equal_strength_are_joined() -> None:
    assert add(a.cancel("one"), a.cancel("two")).reason == "one\ntwo"


def test_a_reason_for_allowing_never_explains_a_refusal() -> None:
    assert add(a.allow("it is harmless"), a.cancel("")).reason == ""


def test_a_stopped_dispatch_drops_injects_and_context() -> None:
    gathered = add(a.add_context("x"), add(a.inject("y"), Answer(context_files=("f",), decision="deny", reason="no")))
    assert a.stopped(gathered) == a.cancel("no")


@pytest.mark.parametrize(
    ("payload", "change", "expected"),
    [
        (CALL, Change("args", "set", {"command": "true"}), {"command": "true"}),
        (CALL, Change("args", "merge", {"timeout": 3}), {"command": "ls", "timeout": 3}),
        (CALL, Change("args", "merge", {"command": {"deep": 1}}), {"command": {"deep": 1}}),
        (CALL, Change("env", "merge", {"A": "1"}), {"A": "1"}),
        (RECEIVED, Change("content", "set", "bye"), "bye"),
        (RECEIVED, Change("content", "prepend", "so "), "so hello"),
        (RECEIVED, Change("content", "append", "!"), "hello!"),
        (RECEIVED, Change("attachments", "append", {"path": "c", "text": "C"}), (*RECEIVED.attachments, Attachment("c", "C"))),
        (RECEIVED, Change("attachments", "drop", "a.txt"), RECEIVED.attachments[1:]),
        (BUILD, Change("sections", "prepend", {"name": "n", "origin": "m", "text": "t"}), (Span("n", "m", "t"), *BUILD.sections)),
        (BUILD, Change("sections", "keep", ["base"]), BUILD.sections[:1]),
        (BUILD, Change("sections", "drop", ["base", "unknown"]), BUILD.sections[1:]),
        (SELECT, Change("tools", "keep", ["read", "bash"]), ("bash", "read")),
        (SELECT, Change("tools", "drop", "bash"), ("read", "edit")),
        (SELECT, Change("tools", "append", "grep"), ("bash", "read", "edit", "grep")),
        (SELECT, Change("tools", "set", []), ()),
    ],
)  # fmt: skip
def test_a_change_edits_its_field(payload: Any, change: Change, expected: object) -> None:
    before = getattr(payload, change.field)
    changed = apply_change(payload, change)
    assert getattr(changed, change.field) == expected
    assert getattr(payload, change.field) is before, "the payload itself is never touched"


@pytest.mark.parametrize(
    ("payload", "change"),
    [
        (CALL, Change("args", "set", "text")),
        (CALL, Change("args", "set", [1])),
        (CALL, Change("args", "merge", "text")),
        (CALL, Change("args", "append", {"a": 1})),
        (CALL, Change("args", "prepend", {"a": 1})),
        (CALL, Change("args", "keep", ["command"])),
        (CALL, Change("args", "drop", ["command"])),
        (CALL, Change("args", "merge", {1: 2})),
        (CALL, Change("env", "merge", {"A": 1})),
        (CALL, Change("args", "erase", 1)),  # type: ignore[arg-type]
        (CALL, Change("argz", "set", {})),
        (RECEIVED, Change("content", "set", 5)),
        (RECEIVED, Change("content", "append", 5)),
        (RECEIVED, Change("content", "append", None)),
        (RECEIVED, Change("content", "merge", {"a": 1})),
        (RECEIVED, Change("content", "keep", "h")),
        (RECEIVED, Change("attachments", "append", "a.txt")),
        (BUILD, Change("sections", "set", [{"name": "n"}])),
        (SELECT, Change("tools", "set", "bash")),
        (SELECT, Change("tools", "keep", [["bash"]])),
        (LegStarted("m", 5), Change("fuel", "set", "9")),
        (LegStarted("m", 5), Change("fuel", "set", 9.5)),
        (LegStarted("m", 5), Change("fuel", "set", True)),
        (LegStarted("m", 5), Change("fuel", "append", 1)),
        (LegStarted("m", 5), Change("fuel", "drop", 1)),
    ],
)
def test_a_change_that_does_not_fit_is_refused(payload: Any, change: Change) -> None:
    with pytest.raises(BadAnswer):
        apply_change(payload, change)
