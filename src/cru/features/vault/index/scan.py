"""Which notes and files are in the folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cru.core.base.files import is_inside
from cru.core.base.files.selection import EVERYTHING, FileSelection, select_by_glob, without
from cru.features.vault import NoVault
from cru.features.vault.notes import NOTE_SUFFIXES

LEFT_OUT = frozenset({"node_modules", "__pycache__"})
"""Folders that are not looked into, as all whose names begin with a dot."""


class NoteFile(Struct, frozen=True):
    """path: below the vault, with `/`; size: bytes; mtime_ns: nanoseconds"""

    path: str
    size: int
    mtime_ns: int


class Listing(Struct, frozen=True):
    """What is in the vault. files: paths of what is no note; problems: folders that cannot be read, a sentence each."""

    notes: dict[str, NoteFile]
    files: frozenset[str]
    problems: tuple[str, ...] = ()


def selection_of(exclude: list[str]) -> FileSelection:
    """What the settings leave. Raises BadGlob."""
    patterns = [each for glob in exclude for each in _as_paths(glob)]
    return without(EVERYTHING, select_by_glob(patterns)) if patterns else EVERYTHING


def _as_paths(glob: str) -> Iterator[str]:
    """A glob as in .gitignore: without a slash inside it names anything of that name, with one at its end folders."""
    text = glob.strip().removeprefix("./")
    is_folder = text.endswith("/")
    name = text.strip("/")
    if not name:
        return
    start = "" if "/" in name or text.startswith("/") else "**/"
    yield f"{start}{name}/**"
    if not is_folder:
        yield f"{start}{name}"


def list_vault(root: Path, selection: FileSelection = EVERYTHING) -> Listing:
    """All notes and files. Links to folders, and to files outside of the vault, are not followed. Raises NoVault."""
    notes: dict[str, NoteFile] = {}
    files: set[str] = set()
    problems: list[str] = []
    try:
        real = os.path.realpath(root, strict=True)
        for entry, path in _walk(real, "", selection, problems):
            if not path.lower().endswith(NOTE_SUFFIXES):
                files.add(path)
            elif (status := _status(entry, real)) is not None:
                notes[path] = NoteFile(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise NoVault(f"the vault cannot be read: {root}: {error.strerror}", "see [vault] path") from error
    return Listing(notes, frozenset(files), tuple(problems))


def stat_note(root: Path, path: str) -> NoteFile | None:
    """The note of that path; None if none is there."""
    try:
        status = os.stat(root / path)
    except OSError:
        return None
    return NoteFile(path, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def _walk(
    folder: str, below: str, selection: FileSelection, problems: list[str]
) -> Iterator[tuple[os.DirEntry[str], str]]:
    waiting = [(folder, below, selection)]
    while waiting:
        folder, below, selected = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            if not below:
                raise
            problems.append(f"{below[:-1]} cannot be read: {error.strerror}")
            continue
        for entry in entries:
            if entry.name.startswith(".") or not _is_text(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner = selected.below(entry.name)
                if entry.name not in LEFT_OUT and not inner.is_empty:
                    waiting.append((entry.path, f"{below}{entry.name}/", inner))
            elif selected.holds(entry.name):
                yield entry, below + entry.name


def _is_text(name: str) -> bool:
    """A name that is not UTF-8 cannot be named by a link, nor kept in the index."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _status(entry: os.DirEntry[str], real: str) -> os.stat_result | None:
    """Of a regular file inside of the vault."""
    try:
        status = entry.stat()
        if entry.is_symlink() and not is_inside(os.path.realpath(entry.path), real):
            return None
    except OSError:  # deleted meanwhile, or a link to nothing
        return None
    return status if stat.S_ISREG(status.st_mode) else None
