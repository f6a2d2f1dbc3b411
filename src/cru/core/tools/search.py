"""The tools `ls` and `glob`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from heapq import nsmallest
from pathlib import Path

from cru.core.base.files.glob import BadGlob
from cru.core.base.files.selection import NOTHING, FileSelection, both, select_by_glob, without
from cru.core.guard.rules.hidden_files import HiddenReason
from cru.core.tools.arguments import Glob, Ls
from cru.core.tools.hidden import HiddenCount, find_hidden
from cru.core.tools.paths import os_failure, printable, require_folder, resolve
from cru.core.tools.protocol import ArgumentError, ToolContext, ToolOptions, ToolResult
from cru.core.tools.walk import WalkStopped, deadline, walk

LISTED = 1_000
FOUND = 100
SECONDS = 30.0
_NOTES = {HiddenReason.DENIED: "rules forbid to read it", HiddenReason.UNASKED: "reading it needs a question"}


async def ls(args: Ls, running: ToolContext, options: ToolOptions) -> ToolResult:
    path = resolve(running.root, args.path)
    require_folder(path, args.path)
    try:
        with os.scandir(path) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        raise os_failure("list", args.path, error) from error
    hidden = HiddenCount(find_hidden(running, "ls", args.path))
    lines = [_show_entry(entry, hidden) for entry in entries[:LISTED]]
    if len(entries) > LISTED:
        lines.append(f"[{len(entries) - LISTED:,} more; `glob` finds some of them]")
    return ToolResult("\n".join(lines) or "(empty folder)")


def _show_entry(entry: os.DirEntry[str], hidden: HiddenCount) -> str:
    """The names belong to the folder that is listed; what is told of a file beside its name is judged as the file."""
    name = printable(entry.name)
    reason = hidden.why(entry.path)
    if reason is not None:
        return f"{name}\t[{_NOTES[reason]}]"
    try:
        if entry.is_symlink():
            return f"{name} -> {printable(str(Path(entry.path).readlink()))}"
        if entry.is_dir():
            return f"{name}/"
        return f"{name}\t{entry.stat().st_size}"
    except OSError:  # it went away meanwhile
        return name


async def glob(args: Glob, running: ToolContext, options: ToolOptions) -> ToolResult:
    path = resolve(running.root, args.path)
    require_folder(path, args.path)
    try:
        selection = select_by_glob([args.pattern])
    except BadGlob as error:
        raise ArgumentError(f"`pattern`: {error.message}") from error
    late = deadline(SECONDS)
    stopped = False
    hidden = HiddenCount(find_hidden(running, "glob", args.path))

    def stop() -> bool:
        return stopped or late()

    try:
        files, count, whole = await asyncio.to_thread(_find_files, path, running.root, selection, hidden, stop)
    finally:
        stopped = True  # a thread cannot be cancelled, but it looks here
    lines = [
        printable(os.path.relpath(file, running.root) if _is_inside(file, running.root) else file) for file in files
    ]
    notes = [] if whole else [f"[the search took longer than {SECONDS:g} s and is not complete; give a smaller `path`]"]
    if count > FOUND:
        notes.append(f"[{count - FOUND:,} more; only the newest {FOUND} are shown]")
    return ToolResult("\n".join([*(lines or ([] if notes else ["(no files)"])), *notes, *hidden.notes()]))


def _is_inside(file: str, root: Path) -> bool:
    return file.startswith(os.path.join(root, ""))


def _find_files(
    path: Path, root: Path, selection: FileSelection, hidden: HiddenCount, stop: Callable[[], bool]
) -> tuple[list[str], int, bool]:
    """The newest of the files that are meant, newest first; how many there are; and whether the search came to its end."""
    files: list[tuple[float, str]] = []
    whole = True
    left_out = hidden.hidden.below(str(path)) if hidden.hidden is not None else NOTHING
    try:
        for entry in walk(path, root, both(left_out, selection), stop) if not left_out.is_empty else ():
            hidden.why(entry.path)
        for entry in walk(path, root, without(selection, left_out), stop):
            if not (entry.is_symlink() and hidden.why(entry.path)):
                files.append((-_modified_at(entry), entry.path))
    except WalkStopped:
        whole = hidden.is_whole = False
    return [file for _, file in nsmallest(FOUND, files)], len(files), whole


def _modified_at(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0
