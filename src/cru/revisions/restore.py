"""What a set of changes comes to for each file, and bringing files to how they were before it, or after it again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from cru.files.atomic import replace_file
from cru.revisions import RevisionError
from cru.revisions.records import ANY_MODE, ChangeOrigin, FileChange, FileKind, PathState, make_change
from cru.revisions.store import RevisionStore


class FileSummary(Struct, frozen=True):
    """What consecutive changes made of one file: from what to what."""

    file: str
    start: PathState
    end: PathState


class StepKind(Enum):
    """WRITE: it is brought to its target. DONE: it is there already. CHANGED: someone else changed it. LOST: the target is not
    kept, or would lie elsewhere."""

    WRITE = "write"
    DONE = "done"
    CHANGED = "changed"
    LOST = "lost"


class Step(Struct, frozen=True):
    """One file on its way to a target.

    expected: what should lie there
    current: what does
    foreign: what someone else changed, before the last of the changes or since; only of CHANGED
    why: of LOST, for people
    """

    file: str
    target: PathState
    expected: PathState
    current: PathState
    kind: StepKind
    why: str = ""
    foreign: tuple[FileSummary, ...] = ()


def summarize(changes: Iterable[FileChange]) -> list[FileSummary]:
    """Return what the changes made of each file, in the order in which the files were first changed.

    A file has more than one summary if its changes do not connect: what lies between the end of one and the start of the next is a
    change of someone else.
    """
    runs: dict[str, list[FileSummary]] = {}
    for change in changes:
        of_file = runs.setdefault(change.file, [])
        if of_file and of_file[-1].end.connects(change.before):
            of_file[-1] = replace(of_file[-1], end=change.after)
        else:
            of_file.append(FileSummary(change.file, change.before, change.after))
    return [run for of_file in runs.values() for run in of_file]


def plan(store: RevisionStore, summaries: Iterable[FileSummary], *, backwards: bool) -> list[Step]:
    """What has to be done to bring each file to how it was before (or after). Nothing is changed. Raises StoreFailed."""
    runs: dict[str, list[FileSummary]] = {}
    for entry in summaries:
        runs.setdefault(entry.file, []).append(entry)
    return [_step(store, of_file, backwards=backwards) for of_file in runs.values()]


def _step(store: RevisionStore, runs: Sequence[FileSummary], *, backwards: bool) -> Step:
    file, first, last = runs[0].file, runs[0].start, runs[-1].end
    target, expected = (first, last) if backwards else (last, first)
    current = store.look(file)
    foreign = () if current.is_same(expected) else (FileSummary(file, expected, current),)
    if backwards:  # a redo brings exactly what lay there before the undo, which has asked about these
        foreign = (*(FileSummary(file, one.end, two.start) for one, two in pairwise(runs)), *foreign)
    if current.is_same(target):
        return Step(file, target, expected, current, StepKind.DONE)
    if _leads_elsewhere(file):
        return Step(file, target, expected, current, StepKind.LOST, "its folder is a link now")
    if not store.has(target):
        return Step(file, target, expected, current, StepKind.LOST, _why_lost(target))
    return Step(file, target, expected, current, StepKind.CHANGED if foreign else StepKind.WRITE, foreign=foreign)


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
