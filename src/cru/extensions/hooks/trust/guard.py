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
from cru.extensions.hooks.loader import EntryStatus, LoadedHooks
from cru.extensions.hooks.model.entry import HookEntry, HookFileProblem, HookSource
from cru.extensions.hooks.model.mapping import Dialect, EventMapping
from cru.extensions.hooks.model.result import CommandResult, HookResult
from cru.extensions.hooks.run.command import CommandHook
from cru.extensions.hooks.trust.fingerprint import definition

if TYPE_CHECKING:
    from cru.extensions.hooks.session import Hooks
    from cru.extensions.hooks.trust.store import HookTrust

GUARDED = "tool:before_call"
REVIEW = "`cru hooks review`"


class GuardSnapshot(Struct, frozen=True):
    """A guard as it was when it last ran. beside: definitions of the other entries of its file then · running: of those that ran · why:
    it is withheld."""

    entry: HookEntry
    beside: frozenset[bytes]
    running: frozenset[bytes]
    why: str = ""


def snapshot_guards(loaded: LoadedHooks, dialects: Mapping[str, Dialect]) -> list[GuardSnapshot]:
    """The project's entries that run now and may say no to a tool call."""
    found = []
    for entry in loaded.active():
        moments = dialects[entry.dialect].events.get(entry.event, ())
        if entry.of_project and not entry.asynchronous and any(moment.event == GUARDED for moment in moments):
            path, mine = entry.source.path, definition(entry)
            beside = {definition(one.entry): one for one in loaded.known if one.entry.source.path == path}
            running = {key for key, one in beside.items() if one.state == "active"}
            found.append(GuardSnapshot(entry, frozenset(beside.keys() - {mine}), frozenset(running - {mine})))
    return found


def find_revoked(guarding: Iterable[GuardSnapshot], now: LoadedHooks, trust: HookTrust) -> list[GuardSnapshot]:
    """Those that do not run now although no person ended them: not plainly taken out of their file, not refused, not disabled."""
    active = {definition(entry) for entry in now.active()}
    missing = [held for held in guarding if definition(held.entry) not in active]
    return [replace(held, why=why) for held in missing if (why := _why(held, now, trust))]


def _why(held: GuardSnapshot, now: LoadedHooks, trust: HookTrust) -> str:
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


def _unjudged(mine: Iterable[EntryStatus], before: frozenset[bytes], trust: HookTrust) -> str:
    """Whatever is new in its file, and nobody has judged, may be what became of it."""
    new = [one for one in mine if definition(one.entry) not in before and not _is_ended(one)]
    return next((_next_step(one) for one in new if not trust.is_judged(one.entry)), "")


def _only_less(now: HookSource, before: HookSource) -> bool:
    """Whether a file says nothing that it did not say before: then what is missing was taken out, and is nowhere else."""
    from cru.extensions.hooks.parsing.toml import reading_of

    return _is_within(reading_of(now, comments=True).value, reading_of(before, comments=True).value)


def _is_within(now: Any, before: Any) -> bool:
    if isinstance(now, dict) and isinstance(before, dict):
        return all(key in before and _is_within(value, before[key]) for key, value in now.items())
    if isinstance(now, list) and isinstance(before, list):
        rest = iter(before)
        return all(any(_is_within(one, other) for other in rest) for one in now)
    return type(now) is type(before) and bool(now == before)


def _losses(problems: Iterable[HookFileProblem]) -> Iterable[HookFileProblem]:
    """Those that leave something out."""
    return (one for one in problems if one.fatal or one.void or one.text.startswith("there is no event"))


def _is_ended(one: EntryStatus) -> bool:
    """By a person: in the user's settings, or in another program's own file of the user."""
    return one.state == "disabled" and (one.entry.enabled or one.entry.off_by_user)


def _same(one: HookEntry, other: HookEntry) -> bool:
    return definition(replace(one, enabled=other.enabled)) == definition(other)


def _next_step(one: EntryStatus) -> str:
    return (
        REVIEW if one.state == "untrusted" else f"what stands in its place is {one.state} ({one.entry.where}): {REVIEW}"
    )


def deny_answer(entry: HookEntry, event: Event, why: str = REVIEW) -> Answer | None:
    """What a withheld guard answers; elsewhere than before a tool call it has no say."""
    if event.name != GUARDED:
        return None
    reason = f"the hook {entry.label} changed since it was trusted: {why}"
    return Answer(decision="deny", reason=reason, note="error")


class RevokedGuard(CommandHook):
    """Stands where the guard stood, with its matcher, and denies, as often as it is asked."""

    def __init__(self, held: GuardSnapshot, dialect: Dialect, moment: EventMapping, hooks: Hooks) -> None:
        super().__init__(replace(held.entry, once=False), dialect, moment, hooks)
        self._why = held.why

    async def __call__(self, event: Event) -> Answer:
        run = CommandResult(None, error=f"it does not run: {self._why}", withheld=True)
        return self._judged(
            event, b"", run, HookResult(deny_answer(self._entry, event, self._why) or PASS, failed=run.error)
        )
