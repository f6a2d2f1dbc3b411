"""What a handler of a plugin returned, as the one answer record: the vectors of crucible's contract, and what cru adds."""

from __future__ import annotations

from typing import Any

import pytest

from cru.core.api.answers import parse
from cru.core.api.answers.values import LONGEST
from cru.core.api.host import Values
from cru.core.events import BadAnswer
from cru.core.events.answers import PASS, Answer, Change, Inject, TurnOutcome
from cru.core.events.catalog import BY_NAME

CALL = {"name": "bash", "args": {"command": "ls"}}
SAID = {"content": "hello"}
DONE = {"cause": "done", "response": "x"}

# returned value → answer, on turn:complete. Of an inject beside a cancel crucible reads the inject only.
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
    ({"inject": 7}, Answer(inject=Inject("7"))),
    ({"inject": {"content": "a"}, "model": "p/m"}, Answer(inject=Inject("a", model="p/m"))),
    ({"inject": "a", "position": "user_suffix"}, Answer(inject=Inject("a", "user_suffix"))),
    ({"halt": True, "reason": "r", "inject": "x"}, Answer(decision="deny", halt=True, reason="r")),
    ({"inject": {"content": "a"}, "cancel": True}, Answer(inject=Inject("a"))),
    ({"type": "turn:complete", "cancel": True}, Answer(decision="deny", reason="cancelled")),
]


def read(event: str, raw: Any, sent: dict[str, Any]) -> Answer:
    return parse.parse_answer(event, BY_NAME[event], raw, sent).answer


@pytest.mark.parametrize(("raw", "wanted"), VECTORS)
def test_the_vectors_of_the_contract(raw: Any, wanted: Answer) -> None:
    assert read("turn:complete", raw, DONE) == wanted


# event, what was sent, returned, answer
WORDS_AND_FIELDS: list[tuple[str, dict[str, Any], dict[str, Any], Answer]] = [
    (
        "tool:before_call", CALL, {"ask": True, "reason": "look", "args": {"command": "ls -l"}},
        Answer(decision="ask", reason="look", changes=(Change("args", "set", {"command": "ls -l"}),)),
    ),
    (
        "message:received", SAID, {"context": "more", "content": "hi", "reason": "why"},
        Answer(context=("more",), changes=(Change("content", "set", "hi"),)),
    ),
    ("message:before_send", {"model": "a"}, {"model": "b"}, Answer(changes=(Change("model", "set", "b"),))),
    ("message:before_send", {"model": "a"}, {"inject": "x", "model": "b"}, Answer(inject=Inject("x", model="b"))),
    (
        "message:before_send", {"model": "a"}, {"type": "message:before_send", "inject": "x", "model": "b"},
        Answer(inject=Inject("x"), changes=(Change("model", "set", "b"),)),
    ),
    ("tool:completed", {"result": "a"}, {"result": "b"}, Answer(changes=(Change("result", "set", "b"),))),
    (
        "tool:completed", {"result": "a"}, {"halt": True, "result": "b"},
        Answer(decision="deny", halt=True, reason="halted", changes=(Change("result", "set", "b"),)),
    ),
    ("turn:complete", {}, {"outcome": "gave_up"}, Answer(outcome=TurnOutcome("gave_up"))),
    ("turn:complete", {}, {"outcome": "gave_up", "reason": "why"}, Answer(outcome=TurnOutcome("gave_up", "why"))),
    (
        "turn:complete", {}, {"outcome": {"kind": "done", "reason": "why", "open": {}, "evidence": ["a", 2]}, "reason": "not"},
        Answer(outcome=TurnOutcome("done", "why", (), ("a", "2"))),
    ),
    (
        "turn:complete", {}, {"halt": True, "outcome": {"kind": "failed", "open": "a"}},
        Answer(decision="deny", halt=True, reason="halted", outcome=TurnOutcome("failed", "", ("a",))),
    ),
    ("turn:complete", {}, {"inject": "more", "outcome": "done"}, Answer(inject=Inject("more"), outcome=TurnOutcome("done"))),
    ("turn:complete", {}, {"outcome": False}, PASS),
    (
        "tool:batch_completed", {}, {"halt": True, "reason": "x", "outcome": "out_of_budget"},
        Answer(decision="deny", halt=True, reason="x", outcome=TurnOutcome("out_of_budget", "x")),
    ),
    ("tool:completed", {"result": "a"}, {"outcome": "anything of a plugin's own"}, PASS),
    ("session:started", {"context": "work"}, {"context": "hi"}, Answer(context=("hi",))),
    ("session:started", {"context": "work"}, {"type": "session:started", "context": "work"}, PASS),
    ("custom", {"cancel": True}, {"type": "mine", "cancel": True}, PASS),
    ("tool:before_call", CALL, {"type": "tool:before_call", **CALL, "cancelled": True}, Answer("deny", reason="cancelled")),
    ("tool:before_call", CALL, {"handled": True, "terminate": True}, Answer(result={"content": "", "terminate": True})),
    (
        "tool:before_call", CALL, {"handled": True, "result": {"content": "x", "is_error": True}, "terminate": True},
        Answer(result={"content": "x", "is_error": True, "terminate": True}),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("event", "sent", "raw", "wanted"), WORDS_AND_FIELDS)
def test_a_word_is_a_word_and_a_field_is_a_field(event: str, sent: Any, raw: Any, wanted: Answer) -> None:
    assert read(event, raw, sent) == wanted


BAD_OUTCOMES = [
    ("gave up", "did you mean `gave_up`?"), ("interrupted", "one of done, gave_up"), (True, "`outcome` must be a text"), (3, "one of done"),
    ({"reason": "x"}, "one of done"), ({"kind": "done", "opened": []}, "did you mean `open`?"),
    ({"kind": "done", "open": [{}]}, "`outcome.open` must be a text"),
]  # fmt: skip


@pytest.mark.parametrize(("outcome", "message"), BAD_OUTCOMES)
def test_an_outcome_that_means_nothing_fails_the_handler(outcome: Any, message: str) -> None:
    with pytest.raises(BadAnswer) as raised:
        read("turn:complete", {"outcome": outcome}, {})
    assert message in f"{raised.value.message} {raised.value.hint}"


def test_a_word_that_is_nearly_outcome_is_told() -> None:
    _, odd, _ = parse.parse_answer("turn:complete", BY_NAME["turn:complete"], {"outcom": "gave_up"}, DONE)
    assert "did you mean `outcome`?" in odd["outcom"]


EMPTY = [False, "", 0, 0.0, [], ()]
SCALARS = [True, "x", 3, 3.5, Values((None, "no disk")), Values((False, "no disk"))]


@pytest.mark.parametrize("raw", EMPTY + SCALARS)
def test_a_scalar_means_nothing_and_is_told(raw: Any) -> None:
    answer, odd, _ = parse.parse_answer("turn:complete", BY_NAME["turn:complete"], raw, DONE)
    assert answer is PASS
    assert [text.endswith("; a table or nil is understood") for text in odd.values()] == [True]


@pytest.mark.parametrize("raw", EMPTY)
def test_a_guard_that_returns_what_is_empty_passes(raw: Any) -> None:
    answer, odd, _ = parse.parse_answer("tool:before_call", BY_NAME["tool:before_call"], raw, CALL)
    assert answer is PASS and len(odd) == 1


NO_ANSWERS = [*SCALARS, {"error": "x"}]


@pytest.mark.parametrize("event", ["tool:before_call", "permission:requested"])
@pytest.mark.parametrize("raw", NO_ANSWERS, ids=repr)
def test_a_guard_whose_answer_nobody_can_understand_fails(event: str, raw: Any) -> None:
    with pytest.raises(BadAnswer):
        read(event, raw, CALL)


@pytest.mark.parametrize(("raw", "told"), [({"cancel": False, "reason": "x"}, 0), ({"reason": "x"}, 1)])
def test_a_reason_without_a_decision_passes_and_is_told(raw: Any, told: int) -> None:
    """In Lua nobody can see that a `cancel` beside it is nil."""
    answer, odd, _ = parse.parse_answer("tool:before_call", BY_NAME["tool:before_call"], raw, CALL)
    assert answer == PASS and len(odd) == told


@pytest.mark.parametrize("raw", [[1], (1,), {1}, b"x", object(), len, iter(())])
def test_anything_else_that_is_no_table_is_a_failure(raw: Any) -> None:
    with pytest.raises(BadAnswer, match="a table or nil is understood"):
        read("message:received", raw, SAID)


def test_an_inject_needs_content() -> None:
    with pytest.raises(BadAnswer, match="inject without content"):
        read("turn:complete", {"inject": {"position": "user_prefix"}}, DONE)


@pytest.mark.parametrize(
    ("raw", "meant"),
    [({"block": True}, "cancel"), ({"decision": "deny"}, "cancel, allow or ask"), ({"continue": False}, "halt")],
)
def test_words_of_other_systems_are_told_and_on_gates_they_fail(raw: dict[str, Any], meant: str) -> None:
    odd = parse.parse_answer("tool:completed", BY_NAME["tool:completed"], raw, {"result": "x"}).warnings
    assert [meant in text for text in odd.values()] == [True]
    for event, sent in (("tool:before_call", CALL), ("message:received", SAID)):
        with pytest.raises(BadAnswer) as failed:
            read(event, raw, sent)
        assert meant in failed.value.hint and failed.value.refuses


TABLE, LIST, TEXT, NUMBER, TRUE, FUNCTION = {"a": 1}, ["x"], "text", 7, True, len
YES = ("cancel", "deny", "cancelled", "allow", "ask", "halt", "handled", "terminate")
# a word of an answer → values of the wrong type
WRONG: dict[str, tuple[Any, ...]] = {
    **{word: (0, 1, "", "x", {}, TABLE, [], LIST, FUNCTION) for word in YES},
    "reason": (TABLE, LIST, TRUE, FUNCTION),
    "context": (TABLE, LIST, TRUE, FUNCTION),
    "model": (TABLE, LIST, TRUE, FUNCTION),
    "inject": (LIST, TRUE, FUNCTION),
    "content": (TABLE, LIST, TRUE, FUNCTION),
    "position": (TABLE, LIST, TRUE, NUMBER, TEXT),
}
BESIDE: dict[str, dict[str, Any]] = {"model": {"inject": "x"}, "terminate": {"handled": True}}


@pytest.mark.parametrize(("word", "value"), [(word, value) for word, values in WRONG.items() for value in values])
def test_a_word_of_the_wrong_type_is_a_failure_that_names_it(word: str, value: Any) -> None:
    raw = {word: value, **BESIDE.get(word, {})}
    if word in ("content", "position"):
        raw = {"inject": {"content": "x", word: value}}
    for event in ("turn:complete", "tool:before_call", "tool:completed"):
        with pytest.raises(BadAnswer, match=word):
            read(event, raw, {})


@pytest.mark.parametrize("event", [row.name for row in BY_NAME.values() if row.kind == "gate"])
@pytest.mark.parametrize("word", ["cancel", "deny", "cancelled", "halt", "ask"])
@pytest.mark.parametrize("raw", [{}, {"reason": TABLE}, {"inject": {}}, {"payload": 5}])
def test_a_no_that_cannot_be_read_is_a_no_on_every_gate(event: str, word: str, raw: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer) as failed:
        read(event, {word: True if raw else 1, **raw}, {})
    assert failed.value.refuses == (event != "turn:complete" or word == "halt")


@pytest.mark.parametrize("word", ["reason", "context", "model", "inject", "cancel", "handled", "terminate", "result"])
@pytest.mark.parametrize("absent", [None, False])
def test_false_says_nothing(word: str, absent: Any) -> None:
    assert read("turn:complete", {word: absent}, DONE) == PASS


@pytest.mark.parametrize("word", ["result", "terminate", "position", "model"])
def test_a_word_without_the_one_that_it_stands_beside_is_a_failure(word: str) -> None:
    with pytest.raises(BadAnswer, match=f"`{word}` without"):
        read("tool:before_call", {word: True}, CALL)


def test_a_text_for_the_model_has_a_bound() -> None:
    long = "x" * (LONGEST + 5)
    cut = "x" * LONGEST + "\n[… 5 more characters of a handler are left out]"
    for raw, wanted in (
        ({"inject": long}, Answer(inject=Inject(cut))),
        ({"context": long}, Answer(context=(cut,))),
        ({"handled": True, "result": long}, Answer(result=cut)),
        (
            {"handled": True, "result": {"content": long, "is_error": True}},
            Answer(result={"content": cut, "is_error": True}),
        ),
    ):
        assert read("turn:complete", raw, DONE) == wanted
