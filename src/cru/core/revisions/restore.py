"""What a set of changes comes to for each file, and bringing files to how they were before it, or after it again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import unsynced
from cru.core.base.files.atomic import replace_file
from cru.core.revisions import NotKept
from cru.core.revisions.records import ANY_MODE, ChangeOrigin, FileChange, FileKind, PathState, make_change
from cru.core.revisions.store import RevisionStore


class FileSummary(Struct, frozen=True):
    """What consecutive changes made of one file: from what to what."""

    file: str
    start: PathState
    end: PathState


class StepKind(Enum):
    """WRITE: it is brought to its target. DONE: it is there already. CHANGED: someone else changed it. BLOCKED: something that is not
    part of the plan lies in its way. LOST: its target is not kept."""

    WRITE = "write"
    DONE = "done"
    CHANGED = "changed"
    BLOCKED = "blocked"
    LOST = "lost"


TO_DO = (StepKind.WRITE, StepKind.CHANGED)
BEHIND_LINK = "its folder is a link now"


class Step(Struct, frozen=True):
    """One file on its way to a target.

    expected: what should lie there
    current: what does
    foreign: what someone else changed, before the last of the changes or since; only of CHANGED
    why: of BLOCKED and LOST, for people
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
    steps = [_step(store, of_file, backwards=backwards) for of_file in runs.values()]
    return _check_ways(steps)


def _step(store: RevisionStore, runs: Sequence[FileSummary], *, backwards: bool) -> Step:
    file, first, last = runs[0].file, runs[0].start, runs[-1].end
    target, expected = (first, last) if backwards else (last, first)
    current = store.look(file)
    foreign = () if current.is_same(expected) else (FileSummary(file, expected, current),)
    if backwards:  # a redo brings exactly what lay there before the undo, which has asked about these
        foreign = (*(FileSummary(file, run.end, later.start) for run, later in pairwise(runs)), *foreign)
    if current.is_same(target):
        is_behind_link = expected.kind is not FileKind.MISSING and os.path.lexists(file) and _leads_elsewhere(file)
        return Step(
            file, target, expected, current, *((StepKind.LOST, BEHIND_LINK) if is_behind_link else (StepKind.DONE,))
        )
    if current == expected and current.kind is FileKind.FILE and not current.sha:
        # it could not be kept, so removing or replacing it could not be undone
        return Step(file, target, expected, current, StepKind.LOST, _too_large(current))
    if not store.has(target):
        return Step(file, target, expected, current, StepKind.LOST, _why_lost(target))
    return Step(file, target, expected, current, StepKind.CHANGED if foreign else StepKind.WRITE, foreign=foreign)


def _leads_elsewhere(file: str) -> bool:
    """Return whether its folder is no longer where it was: the file that lies there is another one."""
    folder = os.path.dirname(file)
    return os.path.realpath(folder) != folder


def _check_ways(steps: Sequence[Step]) -> list[Step]:
    """Find the files that cannot be written because of what lies in their way. What other steps remove is not in the way; if these
    wait for a decision, the file waits with them."""
    removed = {step.file: step for step in steps if step.target.kind is FileKind.MISSING and step.kind in TO_DO}
    return [_check_way(step, removed) for step in steps]


def _check_way(step: Step, removed: Mapping[str, Step]) -> Step:
    if step.kind not in TO_DO:
        return step
    foreign = step.foreign
    for obstacle, why in _obstacles(step):
        if obstacle not in removed:
            return replace(step, kind=StepKind.BLOCKED, why=why)
        foreign += removed[obstacle].foreign
    return replace(step, kind=StepKind.CHANGED if foreign else step.kind, foreign=foreign)


def _obstacles(step: Step) -> Iterator[tuple[str, str]]:
    """Find what must be removed before the file can be written, and say for people what it is."""
    if step.target.kind is FileKind.MISSING:
        return
    folders: list[str] = []
    while (folder := os.path.dirname(folders[-1] if folders else step.file)) != (folders[-1] if folders else ""):
        folders.append(folder)
    for folder in reversed(folders):
        if os.path.islink(folder):
            yield folder, BEHIND_LINK
            return
        if not os.path.isdir(folder):
            if os.path.lexists(folder):
                yield folder, "a file lies in the place of its folder"
            return
    if os.path.isdir(step.file) and not os.path.islink(step.file):
        for place, names, files in os.walk(step.file):
            links = [name for name in names if os.path.islink(os.path.join(place, name))]
            for name in (*files, *links):
                yield os.path.join(place, name), "a folder with other files lies there"


def _why_lost(target: PathState) -> str:
    match target.kind:
        case FileKind.UNKNOWN:
            return "what changed it was killed before anybody looked"
        case FileKind.OTHER:
            return "it was no regular file"
        case _:
            if target.sha:
                return "its revision is kept no more"
            return _too_large(target) if target.size else "git has it in another form only"


def _too_large(state: PathState) -> str:
    return f"too large to be kept ({state.size:,} bytes)"


class RestoreResult(Struct, frozen=True):
    """What came of it. failed: with the reason, for people"""

    changed: tuple[Step, ...]
    failed: tuple[str, ...]


def apply(store: RevisionStore, steps: Sequence[Step], origin: ChangeOrigin) -> RestoreResult:
    """Bring the files of WRITE and CHANGED steps to their targets, each kept as it is before, and check what lies there afterwards.

    Nothing is touched if one of them was changed since the plan was made. Files are removed first, since they may lie in the way of others.
    Raises StoreFailed if nothing can be kept: then no file was touched that is not kept.
    """
    todo = [step for step in _check_ways(steps) if step.kind in (*TO_DO, StepKind.BLOCKED)]
    if failed := [f"{step.file}: {why}" for step in todo if (why := _why_not(store, step))]:
        return RestoreResult((), tuple(failed))
    done: list[Step] = []
    for step in sorted(todo, key=lambda step: step.target.kind is not FileKind.MISSING):
        with store.writing():
            if why := _bring(store, step, origin):
                failed.append(f"{step.file}: {why}")
            else:
                done.append(step)
    return RestoreResult(tuple(done), tuple(failed))


def _why_not(store: RevisionStore, step: Step) -> str:
    """Return why a file cannot be replaced now, for people; "" if it can."""
    if step.kind is StepKind.BLOCKED:
        return step.why
    current = store.look(step.file)
    if not (current.is_same(step.current) or current == step.current):
        return "it was changed just now"
    if current.kind is FileKind.FILE and not current.sha:
        return "it is too large to be kept"
    return "" if current.kind in (FileKind.FILE, FileKind.LINK, FileKind.MISSING) else "it is no regular file"


def _bring(store: RevisionStore, step: Step, origin: ChangeOrigin) -> str:
    """Bring one file to its target; return why that failed, for people. Raises StoreFailed. Inside of `writing`."""
    if why := _why_not(store, step) or next((why for _, why in _obstacles(step)), ""):
        return why
    current = store.keep(step.file)
    try:
        data = _content(store, step.target)
        store.record(make_change(step.file, current, step.target, origin))
        put(step.file, step.target, data)
    except NotKept as error:
        return error.message
    except OSError as error:
        return error.strerror or str(error)
    if not store.look(step.file).is_same(step.target):
        return "it is not as it was after it was brought back"
    return ""


def _content(store: RevisionStore, state: PathState) -> bytes:
    return b"" if state.kind is FileKind.MISSING else store.content(state)


def put(file: str, state: PathState, data: bytes) -> None:
    """Make that lie there. Raises OSError."""
    path = Path(file)
    if state.kind is FileKind.MISSING:
        path.unlink(missing_ok=True)
        _remove_empty(path.parent, state.folders)
        unsynced.add(file)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        for folder, _, _ in os.walk(path, topdown=False):
            os.rmdir(folder)  # fails if it is not empty
    if state.kind is FileKind.LINK:
        temporary = path.with_name(f".{os.urandom(6).hex()}.tmp")
        temporary.symlink_to(os.fsdecode(data))
        os.replace(temporary, path)
        unsynced.add(file)
        return
    if path.is_symlink():
        path.unlink()
    mode: int | None = state.mode
    if state.mode == ANY_MODE:
        # it was not executable, and must not inherit that from the file that it replaces
        mode = path.stat().st_mode & 0o7666 if path.exists() else None
    replace_file(path, data, new_mode=0o666, in_place=True, follow=False, no_links=True, mode=mode)


def _remove_empty(folder: os.PathLike[str], count: int) -> None:
    """Folders that a change had made, if nothing else is in them."""
    place = os.fspath(folder)
    for _ in range(count):
        try:
            os.rmdir(place)
        except OSError:  # something else lies there by now
            return
        place = os.path.dirname(place)
