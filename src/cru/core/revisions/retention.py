"""Which changes stay known. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from cru.core.revisions import UndoSettings
from cru.core.revisions.records import ChangedBy, FileChange

DAY = 86_400.0
MOST_CHANGES = 50_000
"""Of one project, however small they are."""


def contents_of(changes: Iterable[FileChange]) -> set[str]:
    """The SHA-256 of every content that a change names."""
    return {state.sha for change in changes for state in (change.before, change.after) if state.sha}


def select_kept(changes: Sequence[FileChange], settings: UndoSettings, now: float) -> list[FileChange]:
    """Those that stay, in their order: of each file the newest, and the first and last of each of its newest turns, without which
    these could not be taken back; none that is too old; and of what is left the newest, as much as may be kept."""
    young = [change for change in changes if now - change.time <= settings.max_age_days * DAY]
    kept = _newest_of_files(young, settings.revisions)[-MOST_CHANGES:]
    room, sized, stay = settings.max_total_mb << 20, set[str](), set[str]()
    for change in reversed(kept):
        for state in (change.before, change.after):
            if state.sha and state.sha not in sized:
                sized.add(state.sha)
                room -= state.size
        if room < 0:
            break
        stay.add(change.id)
    return [change for change in kept if change.id in stay]


def _newest_of_files(changes: Sequence[FileChange], most: int) -> list[FileChange]:
    by_file: dict[str, list[FileChange]] = {}
    for change in changes:
        by_file.setdefault(change.file, []).append(change)
    kept: dict[str, FileChange] = {}
    for of_file in by_file.values():
        newest = {change.id for change in of_file[-most:]}
        turns: dict[tuple[str, str, bool], list[FileChange]] = {}
        for change in of_file:
            origin = change.origin
            is_edit = origin.by in (ChangedBy.TOOL, ChangedBy.COMMAND)
            turns.setdefault((origin.session, origin.prompt, is_edit), []).append(change)
        last_turns = list(turns.values())[-most:]
        kept |= {change.id: change for change in of_file if change.id in newest}
        kept |= {change.id: change for turn in last_turns for change in _merge(turn, newest)}
    return [kept[change.id] for change in changes if change.id in kept]


def _merge(turn: Sequence[FileChange], newest: set[str]) -> Iterator[FileChange]:
    """Merge the changes of a turn that are dropped into the one before them, so that the rest still connects for /undo. Changes between
    which someone else changed the file stay apart."""
    pending = turn[0]
    for change in turn[1:]:
        if change.id in newest or change is turn[-1] or not pending.after.connects(change.before):
            yield pending
            pending = change
        else:
            pending = replace(pending, after=change.after)
    yield pending
