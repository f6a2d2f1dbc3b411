"""What a command in the background prints, on disk as it comes: the first part and the last one, in plain files that anybody may read.

`output.log` begins at the first byte. Once it is full the rest goes on in `output.N.log`, which begins at byte N of all that was printed;
of these the last two are kept. So an offset stays valid whatever is thrown away, and a gap is known by the names alone.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

FIRST = "output.log"
_NAME = re.compile(r"output(?:\.(\d+))?\.log")
KEPT = 2
"""Files behind the first one."""


class OutputLog:
    """Writes it: at most `limit` bytes on disk, half of them the beginning. It never raises for what it cannot write: that is counted."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._first_size = limit - limit // 2
        self._next_size = max(limit // 2 // KEPT, 1)
        self._file = -1
        self._room = 0
        self._names: list[str] = []
        self._has_first = False
        self.size = 0
        """Bytes that came."""
        self.lost = 0
        """Bytes of these that could not be written."""
        self.problem = ""
        """Why, in the words of the system."""

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                if not self._room:
                    self._open_next()
                written = os.write(self._file, rest[: self._room])
            except OSError as error:
                self.lost += len(rest)
                self.problem = error.strerror or str(error)
                self._close_file()
                self.size += len(rest)
                return
            self._room -= written
            self.size += written
            rest = rest[written:]

    def close(self) -> None:
        self._close_file()

    def _open_next(self) -> None:
        """The next file, which begins at this byte; the oldest behind the first goes. Raises OSError."""
        self._close_file()
        name = FIRST if self.size == 0 else f"output.{self.size}.log"
        self._file = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._room = self._next_size if self._has_first else self._first_size
        if self._has_first:
            self._names.append(name)
        self._has_first = True
        while len(self._names) > KEPT:
            (self._folder / self._names.pop(0)).unlink(missing_ok=True)

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file, self._room = -1, 0


class OutputPage(Struct, frozen=True):
    """A part of an output.

    text: what of it is no UTF-8 is replaced; where bytes are gone it says so
    offset: where the next page begins
    skipped: bytes that are gone, or were passed over
    """

    text: str
    offset: int
    skipped: int = 0


class _Piece(NamedTuple):
    """A file and the byte at which it begins."""

    start: int
    path: str


def read_output(folder: Path, offset: int, limit: int, *, whole: bool = True) -> OutputPage:
    """From this byte on, at most so many bytes. Without `whole` a last character that has come in part is left for the next page."""
    parts: list[str] = []
    skipped, position, room = 0, offset, limit
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for start, data in _read_pieces(folder, offset, limit):
        if start > position:
            parts.append(decoder.decode(b"", True))
            decoder.reset()
            parts.append(cut_mark(start - position))
            skipped += start - position
        parts.append(decoder.decode(data))
        position, room = start + len(data), room - len(data)
    held = len(decoder.getstate()[0])
    if whole:
        parts.append(decoder.decode(b"", True))
    else:
        position -= held
    return OutputPage("".join(parts), position, skipped)


def read_tail(folder: Path, lines: int, limit: int, *, whole: bool = True) -> OutputPage:
    """The last lines, within at most so many bytes of the end; `skipped` is what stands before them and is there."""
    end = output_end(folder)
    page = read_output(folder, max(0, end - limit), limit, whole=whole)
    shown = page.text.splitlines(keepends=True)[-lines:]
    text = "".join(shown)
    return OutputPage(text, page.offset, max(0, page.offset - len(text.encode("utf-8", "replace"))))


def output_end(folder: Path) -> int:
    """The byte behind the last one on disk."""
    for piece in reversed(_pieces(folder)):
        try:
            return piece.start + os.stat(piece.path).st_size
        except FileNotFoundError:
            continue
    return 0


def cut_mark(count: int) -> str:
    """What stands where bytes are gone."""
    return f"\n[... {count:,} bytes left out ...]\n"


def _read_pieces(folder: Path, offset: int, limit: int) -> Iterator[tuple[int, bytes]]:
    """(at which byte, bytes) from that offset on. A file that is thrown away meanwhile is a gap like any other."""
    position, room = offset, limit
    for piece in _pieces(folder):
        if room <= 0:
            return
        try:
            fd = os.open(piece.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            at = max(position, piece.start)
            data = _read_at(fd, at - piece.start, room)
        finally:
            os.close(fd)
        if data:
            yield at, data
            position, room = at + len(data), room - len(data)


def _read_at(fd: int, offset: int, limit: int) -> bytes:
    parts = []
    while limit > 0 and (data := os.pread(fd, limit, offset)):
        parts.append(data)
        offset, limit = offset + len(data), limit - len(data)
    return b"".join(parts)


def _pieces(folder: Path) -> list[_Piece]:
    """The files of an output, the first bytes first."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    matches = [match for name in names if (match := _NAME.fullmatch(name))]
    return sorted(_Piece(int(match[1] or 0), os.path.join(folder, match[0])) for match in matches)
