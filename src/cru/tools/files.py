"""The tools `read` and `write`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cru.tools.arguments import Read, Write
from cru.tools.paths import failed, regular, resolve
from cru.tools.protocol import ToolContext, ToolError, ToolResult
from cru.tools.settings import Options
from cru.tools.store import encode, store

LINE = 2_000
SMALL = 256 * 1024
COUNTED = 64 * 1024 * 1024


async def read(args: Read, running: ToolContext, options: Options) -> ToolResult:
    """Lines with their numbers. It ends before its output would be long enough to be saved to a file."""
    path = resolve(running.root, args.file_path)
    size = regular(path, args.file_path).st_size
    room = options.settings.tool_output_cache_threshold - 200  # for the notes at the end
    if size <= SMALL:
        return ToolResult(_read(path, args, size, room))
    return ToolResult(await asyncio.to_thread(_read, path, args, size, room))


async def write(args: Write, running: ToolContext, options: Options) -> ToolResult:
    data = encode(args.content)
    new = store(resolve(running.root, args.file_path), args.file_path, data)
    lines = args.content.count("\n") + (not args.content.endswith("\n") and bool(args.content))
    done = "Created" if new else "Replaced"
    return ToolResult(f"{done} {args.file_path} ({lines:,} {'line' if lines == 1 else 'lines'}, {len(data):,} bytes).")


def _read(path: Path, args: Read, size: int, room: int) -> str:
    try:
        with open(path, "rb") as file:
            start = file.read(8192)
            if b"\0" in start:
                wide = start[:2] in (b"\xff\xfe", b"\xfe\xff")
                hint = "it looks like UTF-16: `iconv -f utf-16 -t utf-8` shows it" if wide else ""
                raise ToolError(f"`{args.file_path}` is a binary file ({size:,} bytes)", hint)
            file.seek(0)
            return _page(file, args, size, room)
    except OSError as error:
        raise failed("read", args.file_path, error) from error


def _page(file: BinaryIO, args: Read, size: int, room: int) -> str:
    shown: list[str] = []
    number = odd = 0
    more = False
    for number, line in enumerate(_lines(file), 1):
        if number < args.offset:
            continue
        text, strange = _text(line)
        room -= len(text) + 8
        if len(shown) == args.limit or (room < 0 and shown):
            more = True
            break
        odd += strange
        shown.append(f"{number:6d}\t{text}")
    if not shown:
        return _nothing(args, number)
    notes = [f"[lines that are not valid UTF-8: {odd}; what could not be read is shown as \ufffd]"] if odd else []
    if more:
        total = f" of {number + _count(file):,}" if size <= COUNTED else ""
        notes.append(f"[lines {args.offset}-{number - 1}{total}; go on with offset {number}]")
    return "\n".join([*shown, *notes])


def _nothing(args: Read, lines: int) -> str:
    if not lines:
        return "(empty file)"
    raise ToolError(f"`offset`: {args.offset} is past the end of `{args.file_path}`, which has {lines:,} lines")


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """(the line's beginning, its length in bytes): a line of a gigabyte takes no more memory than another."""
    while line := file.readline(4 * LINE):
        length = len(line)
        piece = line
        while not piece.endswith(b"\n") and (piece := file.readline(1 << 20)):
            length += len(piece)
        yield line, length


def _text(line: tuple[bytes, int]) -> tuple[str, bool]:
    """The line as it is shown, and whether it holds bytes that are not UTF-8."""
    data, length = line
    text = data.decode("utf-8", "replace")
    shown = text.rstrip("\r\n")
    if len(shown) > LINE or length > len(data):
        shown = f"{text[:LINE]} [line cut: {length:,} bytes]"
    return shown, shown.count("\ufffd") > data.count(b"\xef\xbf\xbd")


def _count(file: BinaryIO) -> int:
    """The lines that are left."""
    count, last = 0, b"\n"
    while piece := file.read(1 << 20):
        count += piece.count(b"\n")
        last = piece[-1:]
    return count + (last != b"\n")
