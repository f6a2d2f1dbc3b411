"""What a handler of a plugin returned, as the one answer record: the vectors of crucible's contract, and what cru adds."""

from __future__ import annotations

from typing import Any

import pytest

from cru.events.answers import PASS, Answer, Change, Inject
from cru.events.catalog import BY_NAME
from cru.namespace import answers
from cru.namespace.host import BadArgument

CALL = {"name": "bash", "args": {"command": "ls"}}
SAID = {"content": "hello"}
DONE = {"cause": "done", "response": "x"}

# returned value → answer, on turn:complete
VECTORS: list[tuple[Any, Answer]] = [
    (None, PASS),
    ({}, PASS),
    ({"cancel": True}, Answer(decision="deny", reason="cancelled")),
    ({"cancel": True, "reason": "r"}, Answer(decision="deny", reason="r")),
    ({"cancel": False, "x": 1}, PASS),
    ({"inject": {"content": "a"}}, Answer(inject=Inject("a"))),
    ({"inject": {"content": "a", "position": "user_suffix"}}, Answer(inject=Inject("a", "user_suffix"))),
    ({"inject": {"content": ""}}, Answer(inject=Inject(""))),
    ({"inject": "a"}, Answer(inject=Inject("a"))),
    ({"inject": {"content": "a"}, "cancel": True}, Answer(inject=Inject("a"))),
    ({"inject": {"content": "a"}, "model": "p/m"}, Answer(inject=Inject("a", model="p/m"))),
    ({"type": "turn:complete", "cancel": True}, PASS),
    ({"halt": True, "reason": "r", "inject": "x"}, Answer(decision="deny", halt=True, reason="r")),
]


@pytest.mark.parametrize(("raw", "wanted"), VECTORS)
def test_the_vectors_of_the_contract(raw: Any, wanted: Answer) -> None:
    assert answers.answer("turn:complete", BY_NAME["turn:complete"], raw, DONE) == wanted


# event, what was sent, returned, answer
TOGETHER: list[tuple[str, dict[str, Any], dict[str, Any], Answer]] = [
    ("tool:before_call", CALL, {"cancel": True, "reason": "no", "inject": "x"}, Answer(decision="deny", reason="no")),
    ("permission:requested", CALL, {"deny": True, "inject": "x"}, Answer(decision="deny", reason="cancelled")),
    ("message:received", SAID, {"halt": True, "inject": "x"}, Answer(decision="deny", halt=True, reason="halted")),
    (
        "tool:before_call",
        CALL,
        {"ask": True, "reason": "look", "args": {"command": "ls -l"}},
        Answer(decision="ask", reason="look", changes=(Change("args", "set", {"command": "ls -l"}),)),
    ),
    ("tool:before_call", CALL, {"allow": True, "context": "fine"}, Answer(decision="allow", context=("fine",))),
    (
        "message:received",
        SAID,
        {"context": "more", "content": "hi", "reason": "why"},
        Answer(context=("more",), changes=(Change("content", "set", "hi"),)),
    ),
]


@pytest.mark.parametrize(("event", "sent", "raw", "wanted"), TOGETHER)
def test_no_half_of_an_answer_is_lost(event: str, sent: Any, raw: Any, wanted: Answer) -> None:
    assert answers.answer(event, BY_NAME[event], raw, sent) == wanted


@pytest.mark.parametrize("raw", [True, "x", 3])
def test_a_scalar_means_nothing(raw: Any) -> None:
    with pytest.raises(answers.Odd):
        answers.answer("turn:complete", BY_NAME["turn:complete"], raw, DONE)


def test_an_inject_needs_content() -> None:
    with pytest.raises(BadArgument):
        answers.answer("turn:complete", BY_NAME["turn:complete"], {"inject": {"position": "user_prefix"}}, DONE)


@pytest.mark.parametrize(
    ("raw", "meant"),
    [({"block": True}, "cancel"), ({"decision": "deny"}, "cancel, allow or ask"), ({"continue": False}, "halt")],
)
def test_words_of_other_systems_are_told(raw: dict[str, Any], meant: str) -> None:
    row = BY_NAME["tool:before_call"]
    assert list(answers.misspelt("tool:before_call", row, raw, CALL).values()) == [meant]


@pytest.mark.parametrize("word", ["cancel", "deny", "ask", "halt"])
def test_a_decision_in_a_returned_event_fails_where_it_would_guard(word: str) -> None:
    row = BY_NAME["tool:before_call"]
    with pytest.raises(BadArgument):
        answers.answer("tool:before_call", row, {"type": "tool:before_call", **CALL, word: True}, CALL)


def test_an_event_that_is_marked_as_cancelled_is() -> None:
    row = BY_NAME["tool:before_call"]
    raw = {"type": "tool:before_call", **CALL, "cancelled": True}
    assert answers.answer("tool:before_call", row, raw, CALL) == Answer(decision="deny", reason="cancelled")
