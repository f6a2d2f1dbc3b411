"""Describe to people how a turn ended (docs/turn.md, "Outcomes")."""

from __future__ import annotations

from cru.core.turn.turn import LegResult

LABELS = {"done": "done", "gave_up": "gave up", "out_of_budget": "out of budget", "needs_person": "needs a person"}
SHOWN_OPEN = 3
"""Open items that the line about an outcome names; the rest is counted."""


def describe_end(result: LegResult) -> str:
    """Return one line for people about how a turn ended; "" if it is done and there is nothing to add."""
    outcome = result.outcome
    if outcome.kind == "done" and not outcome.reason:
        return ""
    why = outcome.reason if outcome.reason != result.cause else ""
    line = ": ".join(filter(None, (LABELS.get(outcome.kind, result.cause), " ".join(why.split()))))
    if not outcome.open:
        return line
    more = f" and {len(outcome.open) - SHOWN_OPEN} more" if len(outcome.open) > SHOWN_OPEN else ""
    items = ", ".join(" ".join(item.split()) for item in outcome.open[:SHOWN_OPEN])
    return f"{line}; open: {items}{more}"
