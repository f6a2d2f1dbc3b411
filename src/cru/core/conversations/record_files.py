"""Reading files of records (line_file.py writes them) over those that were put aside."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from cru.core.conversations import open_if_exists
from cru.core.conversations.line_file import list_numbers, numbered_path
from cru.core.conversations.log_tail import blocks_forward, count_lines, lines_backward


class RecordFiles:
    """The records as they are now, open until the block ends: what is put aside meanwhile is read all the same. Offsets count from the
    beginning of the oldest file. Entering raises StoreUnreadable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[_OpenFile] = []

    def __enter__(self) -> RecordFiles:
        opened: dict[tuple[int, int], _OpenFile] = {}
        try:
            # The newest first: files only move to higher numbers meanwhile, so that none is missed, and one that is met twice is known.
            self._open(self._path, opened)
            last = max(list_numbers(self._path), default=0) if self._path.parent.is_dir() else 0
            for number in range(1, last + 2):
                self._open(numbered_path(self._path, number), opened)
        except BaseException:  # whatever it is, Ctrl-C too: what is open is closed, and it is raised again
            self._files = [*opened.values()]
            self.__exit__()
            raise
        self._files = [*reversed(opened.values())]
        start = 0
        for file in self._files:
            file.start = start
            start += file.size
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            os.close(file.fd)
        self._files = []

    @staticmethod
    def _open(path: Path, opened: dict[tuple[int, int], _OpenFile]) -> None:
        fd = open_if_exists(path)
        if fd is None:
            return
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) in opened:
            os.close(fd)
        else:
            opened[status.st_dev, status.st_ino] = _OpenFile(path, fd, status.st_size)

    def backward(self) -> Iterator[bytes]:
        """Every line, the newest first."""
        for file in reversed(self._files):
            yield from lines_backward(file.fd, file.size)

    def backward_with_places(self) -> Iterator[tuple[LinePlace, bytes]]:
        """The same, with what `line_number` makes a number of."""
        for file in reversed(self._files):
            for behind, line in enumerate(lines_backward(file.fd, file.size)):
                yield LinePlace(file, behind), line

    def line_number(self, place: LinePlace) -> tuple[Path, int]:
        """The file of a line, and its number there."""
        file = place.file
        if file.newlines < 0:
            file.newlines = sum(block.count(b"\n") for block in blocks_forward(file.fd, 0, file.size))
        return file.path, file.newlines + 1 - place.behind

    def blocks(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """The lines between two offsets of lines, the oldest first, in blocks of whole lines with their newlines; each with its offset."""
        for file in self._files:
            at, last = max(start - file.start, 0), file.size if end is None else min(end - file.start, file.size)
            for block in blocks_forward(file.fd, at, last):
                yield file.start + at, block
                at += len(block)

    def place(self, offset: int) -> tuple[Path, int]:
        """The file of the line before an offset, and its number there."""
        file = next(file for file in reversed(self._files) if file.start < offset)
        return file.path, count_lines(file.fd, 0, min(offset - file.start, file.size))


def newest_first(path: Path, runs: Collection[str] = ()) -> Iterator[bytes]:
    """Every line, the newest first; with `runs`, those in which one of them stands. Raises StoreUnreadable."""
    names = [run.encode() for run in runs]
    with RecordFiles(path) as files:
        for line in files.backward():
            if not runs or any(name in line for name in names):
                yield line


class _OpenFile(Struct):
    path: Path
    fd: int
    size: int
    start: int = 0
    newlines: int = -1


class LinePlace(NamedTuple):
    """Where a line stands: its file, and how many lines come behind it there."""

    file: _OpenFile
    behind: int
