"""A guard that a person trusted when the session began, and that is not there any more as they trusted it: it does not run, and what it
guarded does not happen until a person has looked again (docs/decisions/0009)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cru.events.answers import PASS, Answer
from cru.events.stamp import Event
from cru.extensions.hooks.caller import Caller
from cru.extensions.hooks.dialect import Dialect, Moment, Run, Said
from cru.extensions.hooks.entry import Entry, Problem
from cru.extensions.hooks.load import Known, Loaded
from cru.extensions.hooks.looks import definition

if TYPE_CHECKING:
    from cru.extensions.hooks.manager import Hooks

GUARDED = "tool:before_call"


class Held(Struct, frozen=True):
    """A guard as it was when it last ran. beside: definitions of the other entries of its file then · problems: what was wrong with the
    file then · why: it is withheld."""

    entry: Entry
    beside: frozenset[bytes]
    problems: frozenset[str]
    why: str = ""


def guards(loaded: Loaded, dialects: Mapping[str, Dialect]) -> list[Held]:
    """The project's entries that run now and may say no to a tool call."""
    found = []
    for entry in loaded.active():
        moments = dialects[entry.dialect].moments.get(entry.event, ())
        if entry.of_project and not entry.asynchronous and any(moment.event == GUARDED for moment in moments):
            path, mine = entry.source.path, definition(entry)
            beside = {definition(one.entry) for one in loaded.known if one.entry.source.path == path}
            problems = frozenset(one.text for one in _losses(loaded.problems) if one.path == path)
            found.append(Held(entry, frozenset(beside - {mine}), problems))
    return found


def withheld(guarding: Iterable[Held], now: Loaded, is_judged: Callable[[Entry], bool]) -> list[Held]:
    """Those that do not run now although no person ended them: not gone from a file that can be read whole, not refused, not disabled.
    is_judged: whether a person has said something about an entry as it is now."""
    active = {definition(entry) for entry in now.active()}
    missing = [held for held in guarding if definition(held.entry) not in active]
    return [replace(held, why=why) for held in missing if (why := _why(held, now, is_judged))]


def _why(held: Held, now: Loaded, is_judged: Callable[[Entry], bool]) -> str:
    """What stands in its place, "" if nothing does that a person has not judged: whatever is new in its file may be what became of it."""
    path = held.entry.source.path
    for problem in _losses(now.problems):
        if problem.path == path and problem.text not in held.problems:
            return f"its file cannot be used as it was ({problem}): put it right"
    for one in now.known:
        is_new = one.entry.source.path == path and definition(one.entry) not in held.beside
        if is_new and not _is_ended(one, held) and not is_judged(one.entry):
            return _next_step(one)
    return ""


def _losses(problems: Iterable[Problem]) -> Iterable[Problem]:
    """Those that leave something out."""
    return (one for one in problems if one.fatal or one.void or one.text.startswith("there is no event"))


def _is_ended(one: Known, held: Held) -> bool:
    """By a person: in the user's settings, or in another program's own file of the user, which leaves the project's as it was."""
    entry = one.entry
    return one.state == "disabled" and (entry.enabled or entry.source.text == held.entry.source.text)


def _next_step(one: Known) -> str:
    if one.state == "untrusted":
        return "`cru hooks review`"
    return (
        f"what stands in its place never runs ({one.entry.where}: {one.state}): put it back, or say that it is to be so: "
        f"`cru hooks review --refuse {one.entry.id}`"
    )


def denied(entry: Entry, event: Event, why: str = "`cru hooks review`") -> Answer | None:
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
