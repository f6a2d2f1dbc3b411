"""A guard that a person trusted when the session began, and that somebody has changed since: it does not run, and what it guarded does
not happen until a person has looked again (docs/decisions/0009)."""

from __future__ import annotations

from cru.events.answers import Answer
from cru.events.stamp import Event
from cru.extensions.hooks.caller import Caller
from cru.extensions.hooks.dialect import Run
from cru.extensions.hooks.entry import Entry
from cru.extensions.hooks.load import Loaded

GUARDED = "tool:before_call"


def withheld(before: Loaded, now: Loaded, so_far: list[Entry]) -> list[Entry]:
    """The guards of the project that were active, or withheld already, and in whose place an entry stands now that awaits trust. One that
    is gone from its file, or that a person refused, is gone."""
    mine = [entry for entry in before.active() if entry.of_project and not entry.asynchronous]
    active = {(_place(entry), entry.definition) for entry in now.active()}
    waiting = {_place(one.entry) for one in now.of("untrusted")}
    guards = [entry for entry in (*so_far, *mine) if (_place(entry), entry.definition) not in active]
    return [entry for entry in guards if _place(entry) in waiting]


def _place(entry: Entry) -> tuple[str, str, str]:
    return (entry.dialect, str(entry.source.path), entry.event)


def denied(entry: Entry, event: Event) -> Answer | None:
    """What a withheld guard answers; elsewhere than before a tool call it has no say."""
    if event.name != GUARDED:
        return None
    reason = f"the hook {entry.label} changed since it was trusted: `cru hooks review`"
    return Answer(decision="deny", reason=reason, note="error")


class Withheld(Caller):
    """Stands where the guard stood, with its matcher, and denies."""

    async def __call__(self, event: Event) -> Answer:
        why = "it changed after you trusted it (`cru hooks review`)"
        run = Run(None, error=why, withheld=True)
        return self._judged(event, b"", run, self._read(event, run))
