"""What of a conversation may go. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from cru.core.base.values.messages import LEG_ENDED, MESSAGE, RESOLVED, TOOL_CALL, TOOL_RESULT, Entry, Message
from cru.core.conversations.entries import role_of
from cru.core.turn.history import History

LEAST = 4
KEPT_LAST = 2


class Unit(Struct, eq=False):
    """Entries that live and die together: a prompt with its resolutions, or a reply with its calls and their results; and the
    messages that the model reads of them (none, for example, of a blocked prompt)."""

    entries: list[Entry]
    is_prompt: bool
    messages: tuple[Message, ...] = ()


class Offer(Struct, frozen=True):
    """What a compaction may drop.

    candidates: units that may go, the oldest first
    count: how many of them should
    shown: all that the model reads
    running: the prompt that is being answered, which stays; None: there is none
    silent: units without messages, which go along
    """

    candidates: list[Unit]
    count: int
    shown: list[Unit]
    running: Unit | None
    silent: list[Unit]


def offer(entries: Sequence[Entry], percent: float, ref: str) -> Offer | None:
    """What may go so that `percent` of the units do; None if there is too little. The prompt `ref` of the running leg stays; at
    less than 100 so do the last few units, which the model is working with."""
    units = units_of(entries)
    running = next((u for u in units if u.is_prompt and u.entries[0].id == ref), None)
    shown = [u for u in units if u.messages]
    candidates = [u for u in shown if u is not running]
    count = len(candidates)
    if percent < 100:
        if len(shown) <= LEAST:
            return None
        del candidates[-KEPT_LAST:]
        count = min(max(1, int(count * percent / 100 + 0.5)), len(candidates))
    silent = [u for u in units if not u.messages and u is not running]
    return Offer(candidates, count, shown, running, silent) if candidates else None


def leaving(offered: Offer, chosen: Collection[int] | None = None) -> set[str]:
    """The ids of all entries that go when these candidates do; None: the oldest. What is left of earlier legs begins with a
    prompt: no provider takes a conversation that an answer opens."""
    numbers = set(range(offered.count) if chosen is None else chosen)
    gone = {unit for number, unit in enumerate(offered.candidates) if number in numbers}
    for unit in offered.shown:
        if unit is offered.running or (unit.is_prompt and unit not in gone):
            break
        gone.add(unit)
    return {entry.id for unit in (*gone, *offered.silent) for entry in unit.entries}


def units_of(entries: Sequence[Entry]) -> list[Unit]:
    """The units of what is visible, in order."""
    units: list[Unit] = []
    owner: dict[str, Unit] = {}
    for entry in entries:
        home = _home(entry, owner)
        if home is None:
            is_prompt = entry.entry_type == MESSAGE and role_of(entry) == "user"
            home = Unit([], is_prompt)
            units.append(home)
        home.entries.append(entry)
        for key in (entry.id, entry.metadata.get("reply", "")):
            if key:
                owner.setdefault(key, home)
        if entry.entry_type == TOOL_CALL:  # providers may use an id again: the newest call owns it
            owner[entry.tool_call_id] = home
    for unit in units:
        unit.messages = History(unit.entries).messages()
    return units


def _home(entry: Entry, owner: dict[str, Unit]) -> Unit | None:
    if entry.entry_type in (RESOLVED, LEG_ENDED):
        return owner.get(entry.metadata.get("ref", ""))
    if entry.entry_type == TOOL_RESULT:
        return owner.get(entry.tool_call_id)
    if entry.entry_type == TOOL_CALL:
        return owner.get(entry.metadata.get("reply", ""))
    if entry.entry_type == MESSAGE and "call" in entry.metadata:  # what a call said
        return owner.get(entry.metadata["call"])
    return None
