"""Which changes stay known. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cru.revisions import UndoSettings
from cru.revisions.records import FileChange

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
    stay: set[str] = set()
    for of_file in by_file.values():
        stay |= {change.id for change in of_file[-most:]}
        turns: dict[tuple[str, str], list[str]] = {}
        for change in of_file:
            turns.setdefault((change.origin.session, change.origin.prompt), []).append(change.id)
        for ids in list(turns.values())[-most:]:
            stay |= {ids[0], ids[-1]}
    return [change for change in changes if change.id in stay]
