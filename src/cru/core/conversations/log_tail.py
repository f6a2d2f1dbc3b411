"""The end of a log, read from there: however long it is, showing its last entries costs the same."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from cru.core.base.files.regular import read_range
from cru.core.base.values.messages import Entry
from cru.core.conversations import open_if_exists
from cru.core.conversations.entries import BROKEN, TORN, LogProblem, decode, decode_lines, line_key, short_error


class LogTail(Struct):
    """The last entries of a log, the newest last, and what is wrong with lines among them."""

    entries: list[Entry]
    problems: list[LogProblem]


def read_tail(path: Path, count: int, kinds: Collection[str]) -> LogTail:
    """The last `count` entries of these kinds, with all others among and after them; fewer if there are no more. Raises StoreUnreadable."""
    entries: list[Entry] = []
    problems: list[LogProblem] = []
    for entry in newest_entries(path, problems):
        entries.append(entry)
        count -= entry.entry_type in kinds
        if count <= 0:
            break
    return LogTail(entries[::-1], problems[::-1])


def newest_entries(path: Path, problems: list[LogProblem], part: bytes = b"") -> Iterator[Entry]:
    """The entries of a log or an archive, the newest first; only those in whose lines `part` stands. Lines that are none are added to
    `problems`. Raises StoreUnreadable."""
    fd = open_if_exists(path)
    if fd is None:
        return
    try:
        end = os.fstat(fd).st_size
        for from_end, line in enumerate(lines_backward(fd, end)):
            if part not in line or not line or line.isspace():
                continue
            try:
                yield decode(line)
            except BROKEN as error:
                text = f"not an entry, skipped: {short_error(error)}" if from_end else TORN
                problems.append(LogProblem(path.name, _count_lines(fd, end) - from_end, text, line_key(line)))
    finally:
        os.close(fd)


@contextmanager
def oldest_entries(path: Path) -> Iterator[Iterator[Entry]]:
    """The entries of a log or an archive as it is now, the oldest first, read while they are asked for. Lines that are none are passed
    over. Raises StoreUnreadable."""
    fd = open_if_exists(path)
    if fd is None:
        yield iter(())
        return
    try:
        blocks = blocks_forward(fd, 0, os.fstat(fd).st_size)
        yield (entry for block in blocks for entry in decode_lines(block, 1)[0])
    finally:
        os.close(fd)


def _count_lines(fd: int, end: int) -> int:
    """Lines of a file; an empty one after the last newline counts."""
    return count_lines(fd, 0, end) + (os.pread(fd, 1, end - 1) == b"\n")


BLOCK = 1 << 18
"""Bytes in which files that may be very long are read, from either end, never as a whole."""
FIRST_BLOCK = 1 << 13
"""Bytes that are read first from the end: whoever wants the last few lines needs no more."""


def lines_backward(fd: int, end: int) -> Iterator[bytes]:
    """The lines before the offset `end` without their newlines, the last one first."""
    pieces: list[bytes] = []  # of the line whose beginning is yet to be read, the last piece first
    size = FIRST_BLOCK
    while end > 0:
        start = max(0, end - size)
        head, *lines = read_range(fd, start, end).split(b"\n")
        if lines:
            yield lines.pop() + b"".join(reversed(pieces))
            yield from reversed(lines)
            pieces = []
        pieces.append(head)
        end, size = start, min(2 * size, BLOCK)
    if pieces:
        yield b"".join(reversed(pieces))


def blocks_forward(fd: int, start: int, end: int) -> Iterator[bytes]:
    """What stands between two offsets, in blocks of whole lines with their newlines; the last line may lack it."""
    pieces: list[bytes] = []  # of the line whose end is yet to be read
    while start < end and (data := read_range(fd, start, min(end, start + BLOCK))):
        start += len(data)
        last = data.rfind(b"\n") + 1
        if last:
            yield b"".join([*pieces, data[:last]])
            pieces = []
        pieces.append(data[last:])
    if any(pieces):
        yield b"".join(pieces)


def count_lines(fd: int, start: int, end: int) -> int:
    """How many lines stand between two offsets; one without a newline at the end counts."""
    count, rest = 0, False
    for block in blocks_forward(fd, start, end):
        count += block.count(b"\n")
        rest = not block.endswith(b"\n")
    return count + rest
