"""Every pair of words that an answer may hold, on every gate: what comes of them is what the table in docs/events.md says."""

from __future__ import annotations

import asyncio
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room
from tests.core.events.world import GATES, example

from cru.core.api.on import on
from cru.core.events.bus import Outcome
from cru.core.events.catalog import BY_NAME, EventRow

PAGE = Path(__file__).parents[3] / "docs" / "events.md"
REST = ("context", "inject", "fields")
WORDS = ("halt", "cancel", "deny", "cancelled", "ask", "allow", "handled", *REST)
CHANGED: dict[str, dict[str, Any]] = {
    "tool:before_call": {"args": {"command": "other"}},
    "permission:requested": {"args": {"command": "other"}},
    "message:received": {"content": "other"},
    "message:before_send": {"prompt": "other"},
    "output:cached": {"summary": "other"},
    "context:overflow": {"summary_prompt": "other"},
    "task:spawned": {"prompt": "other"},
}
SAYS: dict[str, dict[str, Any]] = {
    **{word: {word: True} for word in WORDS if word not in REST},
    "handled": {"handled": True, "result": "mine"},
    "context": {"context": "more"},
    "inject": {"inject": "go on"},
}


def table() -> dict[frozenset[str], str]:
    """What the page says of two words."""
    text = PAGE.read_text("utf-8").partition("| beside |")[2].partition("\n\n")[0]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    columns = [cell.replace("`", "").split(", ") for cell in head]
    found = {}
    for row in rows:
        for names, cell in zip(columns, row[1:], strict=True):
            for one in row[0].replace("`", "").split(", "):
                found.update({frozenset((one, other)): cell for other in names if one != other})
    return found


TABLE = table()


def offered(row: EventRow) -> list[str]:
    """The words that this gate has a place for."""
    places = {
        "ask": row.fails == "deny", "allow": row.fails == "deny", "handled": row.result, "context": row.context,
        "inject": row.inject, "fields": row.writable,
    }  # fmt: skip
    return [word for word in WORDS if places.get(word, True)]


def known(word: str) -> str:
    return "cancel" if word in ("deny", "cancelled") else word


PAIRS = [
    (row.name, one, other)
    for row in GATES
    for one, other in combinations(offered(row), 2)
    if known(one) != known(other)
]


def dispatched(tmp_path: Path, event: str, says: dict[str, Any]) -> tuple[Outcome[Any], list[str]]:
    room, row = Room(tmp_path), BY_NAME[event]
    room.within(lambda: on(event, lambda ctx, event: says))
    outcome = asyncio.run(room.parts.bus.dispatch(example(row)))
    return outcome, room.notices()


def counts(word: str, event: str, outcome: Outcome[Any]) -> bool:
    """Whether a word did what it says."""
    answer = outcome.answer
    found: dict[str, bool] = {
        "halt": answer.halt,
        "cancel": answer.decision == "deny",
        "ask": answer.decision == "ask",
        "allow": answer.decision == "allow",
        "handled": answer.result == "mine",
        "context": answer.context == ("more",),
        "inject": answer.inject is not None and answer.inject.content == "go on",
        "fields": all(getattr(outcome.payload, key) == value for key, value in CHANGED.get(event, {}).items()),
    }
    return found[known(word)]


@pytest.mark.sample(30)
@pytest.mark.parametrize(("event", "one", "other"), PAIRS)
def test_two_words_do_what_the_page_says(tmp_path: Path, event: str, one: str, other: str) -> None:
    fields = {"fields": CHANGED.get(event, {})}
    says = {**{**SAYS, **fields}[one], **{**SAYS, **fields}[other]}
    outcome, notices = dispatched(tmp_path, event, says)
    wanted = TABLE[frozenset((known(one), known(other)))]
    if event == "turn:complete" and wanted == "cancel":  # it only stops the handlers behind it
        assert counts(other, event, outcome) and outcome.answer.decision == "none"
        return
    if wanted == "fails":
        assert outcome.failed and outcome.answer.decision == "deny"
        return
    holds = {"both": {known(one), known(other)}}.get(wanted, {wanted})
    assert {word for word in map(known, (one, other)) if counts(word, event, outcome)} - {"cancel"} == holds - {
        "cancel"
    }
    assert ("cancel" not in holds) or counts("cancel", event, outcome)
    if wanted in ("halt", "cancel") and other in (*REST, "handled"):
        left = {"fields": [*fields["fields"]], "handled": ["result"]}.get(other, [other])
        assert [key for key in left if not any(f"`{key}` beside" in text for text in notices)] == []


def test_every_gate_with_fields_has_an_example_and_every_pair_a_cell() -> None:
    assert {row.name for row in GATES if row.writable} == set(CHANGED)
    assert set(TABLE) == {frozenset(pair) for pair in combinations({known(word) for word in WORDS}, 2)}


@pytest.mark.parametrize("row", GATES, ids=lambda row: row.name)
def test_a_word_that_the_gate_has_no_place_for_is_told_and_the_rest_counts(tmp_path: Path, row: EventRow) -> None:
    for number, word in enumerate(sorted(set(SAYS) - set(offered(row)))):
        (tmp_path / str(number)).mkdir()
        outcome, notices = dispatched(tmp_path / str(number), row.name, {**SAYS[word], **CHANGED.get(row.name, {})})
        told = {
            "handled": "a result has no place",
            "inject": "an inject has no place",
            "context": "context has no place",
        }
        assert any(told.get(word, f"`{word}` means nothing") in text for text in notices), (word, notices)
        assert counts("fields", row.name, outcome) == (word != "ask" or not row.writable)
        assert outcome.failed == (word == "ask" and not row.outcome)
