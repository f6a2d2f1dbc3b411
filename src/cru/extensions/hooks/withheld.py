"""A guard that a person trusted when the session began, and that is not there any more as they trusted it: it does not run, and what it
guarded does not happen until a person has looked again (docs/decisions/0009)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from cru.events.answers import PASS, Answer
from cru.events.stamp import Event
from cru.extensions.hooks.caller import Caller
from cru.extensions.hooks.dialect import Dialect, Moment, Run, Said
from cru.extensions.hooks.entry import Entry, Problem, Source
from cru.extensions.hooks.load import Known, Loaded
from cru.extensions.hooks.looks import definition

if TYPE_CHECKING:
    from cru.extensions.hooks.manager import Hooks
    from cru.extensions.hooks.trust import HookTrust

GUARDED = "tool:before_call"
REVIEW = "`cru hooks review`"


class Held(Struct, frozen=True):
    """A guard as it was when it last ran. beside: definitions of the other entries of its file then · running: of those that ran · why:
    it is withheld."""

    entry: Entry
    beside: frozenset[bytes]
    running: frozenset[bytes]
    why: str = ""


def guards(loaded: Loaded, dialects: Mapping[str, Dialect]) -> list[Held]:
    """The project's entries that run now and may say no to a tool call."""
    found = []
    for entry in loaded.active():
        moments = dialects[entry.dialect].moments.get(entry.event, ())
        if entry.of_project and not entry.asynchronous and any(moment.event == GUARDED for moment in moments):
            path, mine = entry.source.path, definition(entry)
            beside = {definition(one.entry): one for one in loaded.known if one.entry.source.path == path}
            running = {key for key, one in beside.items() if one.state == "active"}
            found.append(Held(entry, frozenset(beside.keys() - {mine}), frozenset(running - {mine})))
    return found


def withheld(guarding: Iterable[Held], now: Loaded, trust: HookTrust) -> list[Held]:
    """Those that do not run now although no person ended them: not plainly taken out of their file, not refused, not disabled."""
    active = {definition(entry) for entry in now.active()}
    missing = [held for held in guarding if definition(held.entry) not in active]
    return [replace(held, why=why) for held in missing if (why := _why(held, now, trust))]


def _why(held: Held, now: Loaded, trust: HookTrust) -> str:
    """Why a person must look first; "" if they have, or if nothing became of it that it could be hidden in."""
    if trust.is_settled(held.entry):
        return ""
    path = held.entry.source.path
    mine = [one for one in now.known if one.entry.source.path == path]
    if any(_is_ended(one) and _same(one.entry, held.entry) for one in mine):
        return ""
    source = next((one for one in now.sources if one.path == path and one.dialect == held.entry.dialect), None)
    if source is not None and source.text == held.entry.source.text:
        return _unjudged(mine, held.beside, trust)
    problem = next((one for one in _losses(now.problems) if one.path == path), None)
    if problem is not None:
        return f"its file cannot be used as it was ({problem}): put it right, or `cru hooks review`"
    if source is None:
        return f"{path} cannot be read as a file of its own: `cru hooks review`" if os.path.lexists(path) else ""
    return _unjudged(mine, held.running, trust) or ("" if _only_less(source, held.entry.source) else REVIEW)


def _unjudged(mine: Iterable[Known], before: frozenset[bytes], trust: HookTrust) -> str:
    """Whatever is new in its file, and nobody has judged, may be what became of it."""
    new = [one for one in mine if definition(one.entry) not in before and not _is_ended(one)]
    return next((_next_step(one) for one in new if not trust.is_judged(one.entry)), "")


def _only_less(now: Source, before: Source) -> bool:
    """Whether a file says nothing that it did not say before: then what is missing was taken out, and is nowhere else."""
    from cru.extensions.hooks.dialects.toml import reading_of

    return _is_within(reading_of(now, comments=True).value, reading_of(before, comments=True).value)


def _is_within(now: Any, before: Any) -> bool:
    if isinstance(now, dict) and isinstance(before, dict):
        return all(key in before and _is_within(value, before[key]) for key, value in now.items())
    if isinstance(now, list) and isinstance(before, list):
        rest = iter(before)
        return all(any(_is_within(one, other) for other in rest) for one in now)
    return type(now) is type(before) and bool(now == before)


def _losses(problems: Iterable[Problem]) -> Iterable[Problem]:
    """Those that leave something out."""
    return (one for one in problems if one.fatal or one.void or one.text.startswith("there is no event"))


def _is_ended(one: Known) -> bool:
    """By a person: in the user's settings, or in another program's own file of the user."""
    return one.state == "disabled" and (one.entry.enabled or one.entry.off_by_user)


def _same(one: Entry, other: Entry) -> bool:
    return definition(replace(one, enabled=other.enabled)) == definition(other)


def _next_step(one: Known) -> str:
    return (
        REVIEW if one.state == "untrusted" else f"what stands in its place is {one.state} ({one.entry.where}): {REVIEW}"
    )


def denied(entry: Entry, event: Event, why: str = REVIEW) -> Answer | None:
    """What a withheld guard answers; elsewhere than before a tool call it has no say."""
    if event.name != GUARDED:
        return None
    reason = f"the hook {entry.label} changed since it was trusted: {why}"
    return Answer(decision="deny", reason=reason, note="error")


class Withheld(Caller):
    """Stands where the guard stood, with its matcher, and denies, as often as it is asked."""

    def __init__(self, held: Held, dialect: Dialect, moment: Moment, hooks: Hooks) -> None:
        super().__init__(replace(held.entry, once=False), dialect, moment, hooks)
        self._why = held.why

    async def __call__(self, event: Event) -> Answer:
        run = Run(None, error=f"it does not run: {self._why}", withheld=True)
        return self._judged(event, b"", run, Said(denied(self._entry, event, self._why) or PASS, failed=run.error))
