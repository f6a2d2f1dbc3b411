"""Lines of files that may be very long: read in blocks from either end, never as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from cru.files.regular import read_range

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


def lines_forward(fd: int, start: int, end: int) -> Iterator[bytes]:
    """The lines between two offsets without their newlines."""
    pieces: list[bytes] = []  # of the line whose end is yet to be read
    while start < end and (data := read_range(fd, start, min(end, start + BLOCK))):
        start += len(data)
        *lines, rest = data.split(b"\n")
        if lines:
            yield b"".join([*pieces, lines[0]])
            yield from lines[1:]
            pieces = []
        pieces.append(rest)
    if any(pieces):
        yield b"".join(pieces)
