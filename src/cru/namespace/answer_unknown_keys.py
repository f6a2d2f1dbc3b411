"""Keys of an answer that mean nothing, and were probably meant to: slips of the pen, and words of other systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cru.events.catalog import EventRow
from cru.namespace.answer_words import ADDING, BESIDE, DECIDING, NO
from cru.namespace.lazy import stored
from cru.namespace.vocabulary import field_of, word

# Words of other systems' answers, and ours.
ELSEWHERE = {
    "block": "cancel", "blocked": "cancel", "decision": "cancel, allow or ask", "permissionDecision": "cancel, allow or ask",
    "continue": "halt", "stop": "halt", "approved": "allow", "updated_input": "args", "updatedInput": "args",
    "updated_prompt": "content", "additionalContext": "context",
}  # fmt: skip
GO_ON = {"continue": True, "block": False, "blocked": False, "stop": False}
"""The values with which they let things be."""


class Slip(NamedTuple):
    """A key, what was probably meant, and whether that was a no."""

    key: str
    meant: str
    refuses: bool


def slips(name: str, row: EventRow, raw: Mapping[str, Any], strays: Iterable[str]) -> list[Slip]:
    """What is wrong with the keys that mean nothing; most of them are just somebody's own."""
    from cru.config.closest import closest

    values = dict(stored(raw))
    spoken = any(one in values for one in (*DECIDING, *ADDING))
    found = []
    for key in strays:
        value = values[key]
        if key in ELSEWHERE:
            if value is not None and value is not GO_ON.get(key):
                found.append(Slip(key, ELSEWHERE[key], not ELSEWHERE[key].isalpha() or ELSEWHERE[key] in NO))
            continue
        words = [*sorted(writable(name, row)), *(DECIDING if value is True else ADDING), *(BESIDE if spoken else ())]
        meant = closest(key, words)
        if meant:
            found.append(Slip(key, meant, meant in NO))
    return found


def writable(name: str, row: EventRow) -> set[str]:
    """The keys that a handler of this name may change."""
    return {key for key in (*word(name).keys, *row.writable) if field_of(name, key) in row.writable}
