"""Guards that a person trusted when the session began, and that are not there any more as they trusted them: they do not run, and what
they guarded does not happen until a person has looked again (docs/decisions/hook-trust.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from cru.core.events.answers import PASS, Answer
from cru.core.events.stamp import Event
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.mapping import Dialect
from cru.core.hooks.model.status import REVIEW, Activation, EntryStatus, LoadedHooks
from cru.core.hooks.parsing.toml import open_reading
from cru.core.hooks.trust.fingerprint import definition
from cru.core.hooks.trust.store import HookTrust

GUARDED = "tool:before_call"


class GuardSnapshot(Struct, frozen=True):
    """A guard as it was when it last ran.

    beside: definitions of the other entries of its file then
    running: of these, the ones that ran
    why: a person must look before what it guards may happen
    """

    entry: HookEntry
    beside: frozenset[bytes]
    running: frozenset[bytes]
    why: str = ""


def snapshot_guards(loaded: LoadedHooks, dialects: Mapping[str, Dialect]) -> list[GuardSnapshot]:
    """The project's entries that run now and may say no to a tool call."""
    snapshots = []
    for entry in loaded.active():
        mappings = dialects[entry.dialect].events.get(entry.event, ())
        if not entry.of_project or entry.asynchronous or not any(mapping.event == GUARDED for mapping in mappings):
            continue
        of_file = {
            definition(status.entry): status for status in loaded.known if status.entry.source.path == entry.source.path
        }
        beside = of_file.keys() - {definition(entry)}
        running = {key for key in beside if of_file[key].state is Activation.ACTIVE}
        snapshots.append(GuardSnapshot(entry, frozenset(beside), frozenset(running)))
    return snapshots


def find_revoked(guards: Iterable[GuardSnapshot], now: LoadedHooks, trust: HookTrust) -> list[GuardSnapshot]:
    """Those that do not run now although no person ended them: not plainly taken out of their file, not refused, not disabled."""
    active = {definition(entry) for entry in now.active()}
    gone = [guard for guard in guards if definition(guard.entry) not in active]
    return [replace(guard, why=why) for guard in gone if (why := _explain(guard, now, trust))]


def _explain(guard: GuardSnapshot, now: LoadedHooks, trust: HookTrust) -> str:
    """Why a person must look first; "" if they have, or if nothing became of it that it could be hidden in."""
    if trust.is_settled(guard.entry):
        return ""
    path = guard.entry.source.path
    of_file = [status for status in now.known if status.entry.source.path == path]
    if any(status.is_ended_by_user and _is_same(status.entry, guard.entry) for status in of_file):
        return ""
    source = next((s for s in now.sources if s.path == path and s.dialect == guard.entry.dialect), None)
    if source is not None and source.text == guard.entry.source.text:
        return _explain_newcomer(of_file, guard.beside, trust)
    problem = next((problem for problem in now.problems if problem.loses_hooks and problem.path == path), None)
    if problem is not None:
        return f"its file cannot be used as it was ({problem}): put it right, or {REVIEW}"
    if source is None:
        return f"{path} cannot be read as a file of its own: {REVIEW}" if os.path.lexists(path) else ""
    is_only_shorter = _says_less(source, guard.entry.source)
    return _explain_newcomer(of_file, guard.running, trust) or ("" if is_only_shorter else REVIEW)


def _explain_newcomer(of_file: Iterable[EntryStatus], before: frozenset[bytes], trust: HookTrust) -> str:
    """Whatever is new in its file, and nobody has judged, may be what became of it."""
    for status in of_file:
        entry = status.entry
        if definition(entry) in before or status.is_ended_by_user or trust.is_judged(entry):
            continue
        if status.state is Activation.UNTRUSTED:
            return REVIEW
        return f"what stands in its place is {status.state} ({entry.where}): {REVIEW}"
    return ""


def _says_less(now: HookSource, before: HookSource) -> bool:
    """Whether a file says nothing that it did not say before: then what is missing was taken out, and is nowhere else."""
    return _is_within(open_reading(now, comments=True).value, open_reading(before, comments=True).value)


def _is_within(now: object, before: object) -> bool:
    if isinstance(now, dict) and isinstance(before, dict):
        return all(key in before and _is_within(value, before[key]) for key, value in now.items())
    if isinstance(now, list) and isinstance(before, list):
        rest = iter(before)
        return all(any(_is_within(item, other) for other in rest) for item in now)
    return type(now) is type(before) and now == before


def _is_same(entry: HookEntry, other: HookEntry) -> bool:
    return definition(replace(entry, enabled=other.enabled)) == definition(other)


def deny_answer(entry: HookEntry, event: Event, why: str = REVIEW) -> Answer:
    """What a revoked guard answers; elsewhere than before a tool call it has no say."""
    if event.name != GUARDED:
        return PASS
    reason = f"the hook {entry.label} changed since it was trusted: {why}"
    return Answer(decision="deny", reason=reason, note="error")
