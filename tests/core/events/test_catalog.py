"""The catalog against the table that the design fixed (tests/data/events/catalog.md), cell by cell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.core.events.world import example

from cru.core.events import BadAnswer
from cru.core.events.answers import Change, apply_change
from cru.core.events.catalog import ALIASES, BY_NAME, BY_TYPE, CATALOG, EventRow

TABLE = Path(__file__).parents[2] / "data" / "events" / "catalog.md"
rows = pytest.mark.parametrize("row", CATALOG, ids=lambda row: row.name)


def designed() -> dict[str, tuple[set[str], str]]:
    """Event → (words of its kind, its writable cell)."""
    found: dict[str, tuple[set[str], str]] = {}
    for line in TABLE.read_text().splitlines():
        if not line.startswith("| `") and not line.startswith("| names"):
            continue
        events, kind, _, writable = (cell.strip() for cell in line.strip("|").split("|"))
        names = re.findall(r"`([^`]+)`", events) if events.startswith("`") else ["custom"]
        kinds = kind.split(", ")
        for index, name in enumerate(names):
            pair = "inbox" in name and len(kinds) == len(names) == 2  # "gate, observe": one kind each
            found[name] = ({kinds[index]} if pair else set(kinds), writable)
    return found


DESIGN = designed()


def test_the_catalog_holds_exactly_the_designed_events() -> None:
    assert {row.name for row in CATALOG} == set(DESIGN)
    assert len(BY_NAME) == len(BY_TYPE) == len(CATALOG)


@rows
def test_kind_is_as_designed(row: EventRow) -> None:
    kinds = DESIGN[row.name][0]
    assert row.kind in kinds
    # The table marks context and inject only on observe events; gates and transforms have them by the rules under it.
    if row.kind == "observe" and row.name != "tool:called":
        assert bool(row.context) == ("context" in kinds)
        assert row.inject == ("inject" in kinds)


@rows
def test_writable_fields_are_as_designed(row: EventRow) -> None:
    cell = DESIGN[row.name][1]
    # "prompt in the first round" is the engine's to judge; brackets and dashes are remarks.
    named = set(re.findall(r"\w+", re.sub(r"\(.*?\)|in the first round|–", "", cell)))
    assert set(row.writable) == named
    assert set(row.writable) <= set(row.payload.__struct_fields__)


@rows
def test_context_lands_where_the_design_says(row: EventRow) -> None:
    if row.name in ("session:started", "message:received", "message:before_send", "task:spawned"):
        lands = "beside the prompt"
    elif row.name in (
        "tool:before_call", "tool:called", "tool:completed", "tool:failed", "permission:requested",
    ):  # fmt: skip
        lands = "after the tool result"
    elif row.name == "system_prompt:build":
        lands = "a section"
    elif row.name in ("agent:responded", "tool:batch_completed", "turn:complete", "turn:ending"):
        lands = "the next request"
    else:
        lands = ""
    assert row.context == lands


@rows
def test_scope_is_tree_for_tool_permission_and_before_send_events(row: EventRow) -> None:
    if row.name.split(":")[0] in ("tool", "permission", "task") or row.name == "message:before_send":
        assert row.scope == "tree"
    if row.name.split(":")[0] in ("session", "turn", "leg", "context"):
        assert row.scope == "main"


@rows
def test_a_row_is_consistent(row: EventRow) -> None:
    assert bool(row.cancel) == (row.kind == "gate"), "a gate says what cancel means, and only a gate"
    assert row.kind != "observe" or not row.writable
    assert not row.result or row.kind == "gate"
    assert not row.ident or row.ident in row.payload.__struct_fields__
    assert row.when


@rows
def test_every_writable_field_has_a_type_that_is_checked(row: EventRow) -> None:
    for field in row.writable:
        with pytest.raises(BadAnswer, match=field):
            apply_change(example(row), Change(field, "set", 3.5))


def test_every_event_is_fired_by_some_part() -> None:
    assert [row.name for row in CATALOG if not row.live] == []


def test_only_tool_calls_and_permissions_are_denied_by_a_failing_handler() -> None:
    assert {row.name for row in CATALOG if row.fails == "deny"} == {
        "tool:before_call",
        "permission:requested",
        "task:spawned",
    }


def test_aliases_name_rows_and_are_no_rows() -> None:
    assert {name for name, _ in ALIASES.values()} <= set(BY_NAME)
    assert not set(ALIASES) & set(BY_NAME)
