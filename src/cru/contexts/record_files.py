"""Files of records (line_file.py writes them): putting one aside, and reading them over those that were put aside.

What is put aside is called `<name>.1`, what was that `<name>.2`, and so on. A kill between two renames leaves a gap in the numbers, which
readers pass over and the next rotation fills.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct

from cru.contexts import read_error
from cru.contexts.line_file import RecordLimits
from cru.files.lines import lines_backward, lines_forward
from cru.files.regular import open_regular


def put_aside(path: Path, limits: RecordLimits) -> None:
    """Give the file at `path` the number 1, after those that have one have moved up; remove what is too much or too old. Raises OSError."""
    oldest = time.time() - limits.seconds if limits.seconds else 0.0
    kept: set[int] = set()
    for number in _numbers(path):
        if number >= limits.files or _numbered(path, number).stat().st_mtime < oldest:
            _numbered(path, number).unlink(missing_ok=True)
        else:
            kept.add(number)
    if limits.files < 2:
        path.unlink(missing_ok=True)
        return
    free = next(number for number in range(1, limits.files) if number not in kept or number == limits.files - 1)
    for number in range(free, 0, -1):
        _numbered(path, number - 1).replace(_numbered(path, number))


def _numbers(path: Path) -> list[int]:
    """Of the files that were put aside, in order."""
    start = f"{path.name}."
    names = (name.removeprefix(start) for name in os.listdir(path.parent) if name.startswith(start))
    return sorted(int(number) for number in names if number.isdecimal() and not number.startswith("0"))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


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
            for number in (0, *_numbers(self._path)) if self._path.parent.is_dir() else ():
                self._open(_numbered(self._path, number), opened)
        except BaseException:
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
        try:
            fd = open_regular(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise read_error(path, error) from error
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) in opened:
            os.close(fd)
        else:
            opened[status.st_dev, status.st_ino] = _OpenFile(path, fd, status.st_size)

    def backward(self) -> Iterator[bytes]:
        """Every line, the newest first."""
        for file in reversed(self._files):
            yield from lines_backward(file.fd, file.size)

    def forward(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Every line that begins between two offsets, the oldest first, with the offset after it."""
        for file in self._files:
            first, last = max(start - file.start, 0), file.size if end is None else min(end - file.start, file.size)
            at = file.start + first
            for line in lines_forward(file.fd, first, last):
                at = min(at + len(line) + 1, file.start + file.size)
                yield at, line

    def place(self, offset: int) -> tuple[Path, int]:
        """The file of the line before an offset, and its number there."""
        file = next(file for file in reversed(self._files) if file.start < offset)
        return file.path, sum(1 for _ in lines_forward(file.fd, 0, offset - file.start))


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
