"""Keys of an answer that mean nothing, and were probably meant to: slips of the pen, and words of other systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cru.core.api.answers.values import ADDING, BESIDE, DECIDING, OUTCOME, REFUSING
from cru.core.api.event_table.lazy import raw_items
from cru.core.api.event_table.table import alias_of, field_of
from cru.core.base.config.closest import closest
from cru.core.events.catalog import EventRow

# Words of other systems' answers, and ours.
OTHER_SYSTEMS = {
    "block": "cancel", "blocked": "cancel", "decision": "cancel, allow or ask", "permissionDecision": "cancel, allow or ask",
    "continue": "halt", "stop": "halt", "approved": "allow", "updated_input": "args", "updatedInput": "args",
    "updated_prompt": "content", "additionalContext": "context",
}  # fmt: skip
WITHOUT_EFFECT = {"continue": True, "block": False, "blocked": False, "stop": False}
"""The values with which they let things be."""


class MisspelledKey(NamedTuple):
    """A key that means nothing, and its neighbour.

    key: as it was returned
    meaning: the word that was probably meant
    refuses: whether that word forbids
    """

    key: str
    meaning: str
    refuses: bool


def find_misspelled(name: str, row: EventRow, raw: Mapping[str, object], unknown: Iterable[str]) -> list[MisspelledKey]:
    """What is wrong with the keys that mean nothing; most of them are just somebody's own."""
    values = dict(raw_items(raw))
    has_words = any(word in values for word in (*DECIDING, *ADDING))
    misspelled = []
    for key in unknown:
        value = values[key]
        if key in OTHER_SYSTEMS:
            if value is not None and value is not WITHOUT_EFFECT.get(key):
                meaning = OTHER_SYSTEMS[key]
                misspelled.append(MisspelledKey(key, meaning, not meaning.isalpha() or meaning in REFUSING))
            continue
        words = [
            *sorted(writable_keys(name, row)),
            *(DECIDING if value is True else ADDING),
            *([OUTCOME] if row.outcome else ()),
            *(BESIDE if has_words else ()),
        ]
        match = closest(key, words)
        if match:
            misspelled.append(MisspelledKey(key, match, match in REFUSING))
    return misspelled


def writable_keys(name: str, row: EventRow) -> set[str]:
    """The keys that a handler of this name may change."""
    return {key for key in (*alias_of(name).keys, *row.writable) if field_of(name, key) in row.writable}
