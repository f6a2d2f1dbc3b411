"""What a set of changes comes to for each file, and bringing files to how they were before it, or after it again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from enum import Enum

from msgspec import Struct

from cru.files.atomic import replace_file
from cru.revisions import RevisionError
from cru.revisions.records import ANY_MODE, ChangeOrigin, FileChange, FileKind, PathState, make_change
from cru.revisions.store import RevisionStore


class FileSummary(Struct, frozen=True):
    """What changes made of one file: from what to what."""

    file: str
    start: PathState
    end: PathState


class StepKind(Enum):
    """WRITE: it is brought to its target. DONE: it is there already. CHANGED: somebody else changed it since. LOST: the target is not
    kept, or would lie elsewhere."""

    WRITE = "write"
    DONE = "done"
    CHANGED = "changed"
    LOST = "lost"


class Step(Struct, frozen=True):
    """One file on its way to a target.

    expected: what should lie there
    current: what does
    why: of LOST, for people
    """

    file: str
    target: PathState
    expected: PathState
    current: PathState
    kind: StepKind
    why: str = ""


def summarize(changes: Iterable[FileChange]) -> list[FileSummary]:
    """Of each file the first state and the last, in the order in which the files were first changed."""
    sums: dict[str, FileSummary] = {}
    for change in changes:
        known = sums.get(change.file)
        start = change.before if known is None else known.start
        sums[change.file] = FileSummary(change.file, start, change.after)
    return list(sums.values())


def plan(store: RevisionStore, summaries: Iterable[FileSummary], *, backwards: bool) -> list[Step]:
    """What has to be done to bring each file to how it was before (or after). Nothing is changed. Raises StoreFailed."""
    return [
        _step(store, entry.file, entry.start, entry.end)
        if backwards
        else _step(store, entry.file, entry.end, entry.start)
        for entry in summaries
    ]


def _step(store: RevisionStore, file: str, target: PathState, expected: PathState) -> Step:
    current = store.look(file)
    kind, why = StepKind.WRITE, ""
    if current.is_same(target):
        kind = StepKind.DONE
    elif not current.is_same(expected):
        kind = StepKind.CHANGED
    if kind is not StepKind.DONE and _leads_elsewhere(file):
        kind, why = StepKind.LOST, "its folder is a link now"
    elif kind is not StepKind.DONE and not store.has(target):
        kind, why = StepKind.LOST, _why_lost(target)
    return Step(file, target, expected, current, kind, why)


def _leads_elsewhere(file: str) -> bool:
    """Whether its folder is not where it was: nobody was asked about the file that lies there."""
    folder = os.path.dirname(file)
    return os.path.realpath(folder) != folder


def _why_lost(target: PathState) -> str:
    match target.kind:
        case FileKind.UNKNOWN:
            return "what changed it was killed before anybody looked"
        case FileKind.OTHER:
            return "it was no regular file"
        case _:
            if target.sha:
                return "its revision is kept no more"
            return f"too large to be kept ({target.size:,} bytes)" if target.size else "git has it in another form only"


class RestoreResult(Struct, frozen=True):
    """What came of it. failed: with the reason, for people"""

    changed: tuple[Step, ...]
    failed: tuple[str, ...]


def apply(store: RevisionStore, steps: Sequence[Step], origin: ChangeOrigin) -> RestoreResult:
    """Bring the files of WRITE and CHANGED steps to their targets, each kept as it is before. One that was changed since the plan was
    made is left alone. Raises StoreFailed if nothing can be kept: then no file was touched that is not kept."""
    done: list[Step] = []
    failed: list[str] = []
    for step in steps:
        if step.kind not in (StepKind.WRITE, StepKind.CHANGED):
            continue
        with store.writing():
            if _leads_elsewhere(step.file):
                failed.append(f"{step.file}: its folder is a link now")
                continue
            current = store.keep(step.file)
            if not (current.is_same(step.current) or current == step.current) or not store.has(current):
                failed.append(
                    f"{step.file}: {'it is too large to be kept' if current == step.current else 'it was changed just now'}"
                )
                continue
            store.record(make_change(step.file, current, step.target, origin))
            try:
                put(step.file, step.target, _content(store, step.target))
            except (OSError, RevisionError) as error:
                failed.append(f"{step.file}: {getattr(error, 'strerror', None) or error}")
                continue
        done.append(step)
    return RestoreResult(tuple(done), tuple(failed))


def _content(store: RevisionStore, state: PathState) -> bytes:
    return b"" if state.kind is FileKind.MISSING else store.content(state)


def put(file: str, state: PathState, data: bytes) -> None:
    """Make that lie there. Raises OSError."""
    from pathlib import Path

    path = Path(file)
    if state.kind is FileKind.MISSING:
        path.unlink(missing_ok=True)
        _remove_empty(path.parent, state.folders)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if state.kind is FileKind.LINK:
        temporary = path.with_name(f".{os.urandom(6).hex()}.tmp")
        temporary.symlink_to(os.fsdecode(data))
        os.replace(temporary, path)
        return
    if path.is_symlink():
        path.unlink()
    replace_file(path, data, new_mode=0o666, in_place=True, follow=False, sync=False, no_links=True)
    if state.mode != ANY_MODE:
        path.chmod(state.mode)


def _remove_empty(folder: os.PathLike[str], count: int) -> None:
    """Folders that a change had made, if nothing else is in them."""
    place = os.fspath(folder)
    for _ in range(count):
        try:
            os.rmdir(place)
        except OSError:  # something else lies there by now
            return
        place = os.path.dirname(place)
