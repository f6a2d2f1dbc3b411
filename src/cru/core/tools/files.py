"""The tools `read`, `write` and `edit` (exact text for exact text)."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, chain
from operator import add
from pathlib import Path
from typing import BinaryIO

from cru.core.base.files.regular import open_regular, read_regular
from cru.core.tools.arguments import Edit, Read, Write
from cru.core.tools.paths import encode_text, os_failure, require_regular, require_replaceable, resolve, write_file
from cru.core.tools.protocol import ArgumentError, ToolContext, ToolError, ToolOptions, ToolResult

LINE = 2_000
SMALL = 256 * 1024
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
COUNTED = 64 * 1024 * 1024


async def read(args: Read, running: ToolContext, options: ToolOptions) -> ToolResult:
    """Lines with their numbers. It ends before its output would be long enough to be saved to a file."""
    path = resolve(running.root, args.file_path)
    size = require_regular(path, args.file_path).st_size
    room = options.settings.tool_output_cache_threshold - 200  # for the notes at the end
    if path.suffix.lower() in IMAGE_SUFFIXES:
        from cru.core.tools.images import read_image

        if (shown := read_image(path, args.file_path, running.folder)) is not None:
            return shown
    if size <= SMALL:
        return ToolResult(_read(path, args, size, room))
    return ToolResult(await asyncio.to_thread(_read, path, args, size, room))


async def write(args: Write, running: ToolContext, options: ToolOptions) -> ToolResult:
    data = encode_text(args.content)
    new = _write(running, "write", resolve(running.root, args.file_path), args.file_path, data)
    lines = args.content.count("\n") + (not args.content.endswith("\n") and bool(args.content))
    done = "Created" if new else "Replaced"
    return ToolResult(f"{done} {args.file_path} ({lines:,} {'line' if lines == 1 else 'lines'}, {len(data):,} bytes).")


def _write(running: ToolContext, tool: str, path: Path, text: str, data: bytes) -> bool:
    """`write_file`, with how the file was kept for `/undo`."""
    require_replaceable(path, text)
    if running.services.keep_file is not None:
        running.services.keep_file(str(path), data, tool, running.call_id)
    return write_file(path, text, data)


def _read(path: Path, args: Read, size: int, room: int) -> str:
    try:
        with open(open_regular(path), "rb") as file:
            start = file.read(8192)
            if b"\0" in start:
                wide = start[:2] in (b"\xff\xfe", b"\xfe\xff")
                hint = "it looks like UTF-16: `iconv -f utf-16 -t utf-8` shows it" if wide else ""
                raise ToolError(f"`{args.file_path}` is a binary file ({size:,} bytes)", hint)
            if size <= SMALL and (page := _show_plain_page(start + file.read(SMALL), args, room)):
                return page
            file.seek(0)
            return _show_page(file, args, size, room)
    except OSError as error:
        raise os_failure("read", args.file_path, error) from error


def _show_plain_page(data: bytes, args: Read, room: int) -> str:
    """What `_show_page` shows, without a step for each line; "" for what is not so simple: long lines, what is not UTF-8, what has
    grown, an empty page."""
    try:
        lines = data.decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        return ""
    page = lines[args.offset - 1 : args.offset - 1 + args.limit]
    if b"\r" in data:
        page = [line.rstrip("\r") for line in page]
    if not page or not data or len(data) > SMALL or len(max(page, key=len)) > LINE:
        return ""
    ends = list(accumulate(map((8).__add__, map(len, page))))
    if ends[-1] > room:
        del page[max(bisect_right(ends, room), 1) :]
    following = args.offset + len(page)
    shown = "\n".join(map(add, _number_columns(args.offset, following), page))
    more = following <= len(lines)
    note = f"\n[lines {args.offset}-{following - 1} of {len(lines):,}; go on with offset {following}]"
    return shown + note if more else shown


def _number_columns(first: int, end: int) -> list[str]:
    """What stands before each of these lines."""
    thousands = range(first // 1000, (end - 1) // 1000 + 1)
    columns = list(chain.from_iterable(map(_thousand_columns, thousands)))
    return columns[first % 1000 : first % 1000 + end - first]


@lru_cache(maxsize=4)
def _thousand_columns(thousand: int) -> list[str]:
    return [f"{number:6d}\t" for number in range(1000 * thousand, 1000 * (thousand + 1))]


def _show_page(file: BinaryIO, args: Read, size: int, room: int) -> str:
    shown: list[str] = []
    number = broken = 0
    more = False
    for number, line in enumerate(_read_lines(file), 1):
        if number < args.offset:
            continue
        text, is_broken = _show_line(line)
        room -= len(text) + 8
        if len(shown) == args.limit or (room < 0 and shown):
            more = True
            break
        broken += is_broken
        shown.append(f"{number:6d}\t{text}")
    if not shown:
        return _show_nothing(args, number)
    notes = [f"[lines that are not valid UTF-8: {broken}; what could not be read is shown as \ufffd]"] if broken else []
    if more:
        total = f" of {number + _count_rest(file):,}" if size <= COUNTED else ""
        notes.append(f"[lines {args.offset}-{number - 1}{total}; go on with offset {number}]")
    return "\n".join([*shown, *notes])


def _show_nothing(args: Read, lines: int) -> str:
    if not lines:
        return "(empty file)"
    raise ToolError(f"`offset`: {args.offset} is past the end of `{args.file_path}`, which has {lines:,} lines")


def _read_lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """(the line's beginning, its length in bytes): a line of a gigabyte takes no more memory than another."""
    while line := file.readline(4 * LINE):
        length = len(line)
        piece = line
        while not piece.endswith(b"\n") and (piece := file.readline(1 << 20)):
            length += len(piece)
        yield line, length


def _show_line(line: tuple[bytes, int]) -> tuple[str, bool]:
    """The line as it is shown, and whether it holds bytes that are not UTF-8."""
    data, length = line
    text = data.decode("utf-8", "replace")
    shown = text.rstrip("\r\n")
    if len(shown) > LINE or length > len(data):
        shown = f"{text[:LINE]} [line cut: {length:,} bytes]"
    return shown, shown.count("\ufffd") > data.count(b"\xef\xbf\xbd")


def _count_rest(file: BinaryIO) -> int:
    """The lines that are left."""
    count, last = 0, b"\n"
    while piece := file.read(1 << 20):
        count += piece.count(b"\n")
        last = piece[-1:]
    return count + (last != b"\n")


LIMIT = 32 * 1024 * 1024


async def edit(args: Edit, running: ToolContext, options: ToolOptions) -> ToolResult:
    """Line ends, mode and a byte order mark stay as they are. Nothing is written if anything is in doubt."""
    path = resolve(running.root, args.file_path)
    if not args.old_string:
        return _create(path, args, running)
    if args.old_string == args.new_string:
        raise ArgumentError("`new_string`: the same as `old_string`, so nothing would change")
    text = _load(path, args.file_path)
    old, new = _line_ends(text, args)
    count = text.count(old)
    if count == 0:
        hint = _nearest_hint(text, args.old_string) if _may_show(running, args.file_path) else ""
        raise ToolError(f"`old_string` was not found in {args.file_path}", hint)
    places = _line_numbers(text, old)
    if count > 1 and not args.replace_all:
        raise ToolError(
            f"`old_string` occurs {count} times in {args.file_path} (lines {places})",
            "add lines around it until it is the only one, or set `replace_all`",
        )
    _write(running, "edit", path, args.file_path, encode_text(text.replace(old, new)))
    what = "1 replacement at line" if count == 1 else f"{count} replacements at lines"
    return ToolResult(f"Edited {args.file_path}: {what} {places}.")


def _may_show(running: ToolContext, path: str) -> bool:
    """Whether lines of this file may be shown: what may be changed may be forbidden to read."""
    judge = running.services.rules.judge_read
    return judge is None or judge(path).decision == "allow"


def _create(path: Path, args: Edit, running: ToolContext) -> ToolResult:
    if path.exists() and require_regular(path, args.file_path).st_size:
        raise ToolError(
            f"`old_string` is empty, but {args.file_path} is not",
            "give the text to replace, or replace the whole file with `write`",
        )
    _write(running, "edit", path, args.file_path, encode_text(args.new_string))
    return ToolResult(f"Created {args.file_path}.")


def _load(path: Path, name: str) -> str:
    if require_regular(path, name).st_size > LIMIT:
        raise ToolError(f"`{name}` is larger than {LIMIT // 1024 // 1024} MiB", "change it with `bash`")
    try:
        return read_regular(path).decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"`{name}` is not UTF-8 text (byte {error.start})", "change it with `bash`") from error
    except OSError as error:
        raise os_failure("read", name, error) from error


def _line_ends(text: str, args: Edit) -> tuple[str, str]:
    """old and new with the file's own line ends: a model sees and writes \\n even where the file has \\r\\n."""
    old, new = args.old_string, args.new_string
    crlf = text.count("\r\n")
    if not crlf or ("\n" in old and old in text):
        return old, new
    windows = crlf == text.count("\n")
    if windows or old not in text:
        old, new = _with_crlf(old), _with_crlf(new)
    return old, new


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _line_numbers(text: str, old: str, limit: int = 10) -> str:
    """The numbers of the lines where it begins."""
    numbers: list[str] = []
    at, line, last = text.find(old), 1, 0
    while at >= 0:
        if len(numbers) == limit:
            numbers.append("…")
            break
        line += text.count("\n", last, at)
        numbers.append(str(line))
        last, at = at, text.find(old, at + len(old))
    return ", ".join(numbers)


def _nearest_hint(text: str, old: str) -> str:
    """A hint: the place that differs only in white space, or the most similar line."""
    lines = text.splitlines()
    first = next((line for line in old.splitlines() if line.strip()), "")
    compact = "".join(first.split())
    for number, line in enumerate(lines, 1):
        if compact and compact in "".join(line.split()):
            return f"its first line is like line {number}, but white space or what follows differs: {line[:200]!r}"
    if len(lines) > 5_000:
        return "read the file again: it may have changed"
    from difflib import get_close_matches

    near = get_close_matches(first[:200], [line[:200] for line in lines], 1, 0.6)
    if not near:
        return "read the file again: it may have changed"
    number = next(i for i, line in enumerate(lines, 1) if line[:200] == near[0])
    return f"the closest line is {number}: {near[0]!r}"
