"""Lines of files that may be very long: read in blocks from either end, never as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from cru.core.base.files.regular import read_range

BLOCK = 1 << 18
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
