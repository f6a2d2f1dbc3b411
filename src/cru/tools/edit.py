"""The tool `edit`: exact text for exact text."""

from __future__ import annotations

from pathlib import Path

from cru.tools.arguments import Edit
from cru.tools.paths import failed, regular, resolve
from cru.tools.protocol import ArgumentError, ToolContext, ToolError, ToolResult
from cru.tools.settings import Options
from cru.tools.store import encode, store

LIMIT = 32 * 1024 * 1024


async def edit(args: Edit, running: ToolContext, options: Options) -> ToolResult:
    """Line ends, mode and a byte order mark stay as they are. Nothing is written if anything is in doubt."""
    path = resolve(running.root, args.file_path)
    if not args.old_string:
        return _create(path, args)
    if args.old_string == args.new_string:
        raise ArgumentError("`new_string`: the same as `old_string`, so nothing would change")
    text = _load(path, args.file_path)
    old, new = _line_ends(text, args)
    count = text.count(old)
    if count == 0:
        raise ToolError(f"`old_string` was not found in {args.file_path}", _near(text, args.old_string))
    places = _places(text, old)
    if count > 1 and not args.replace_all:
        raise ToolError(
            f"`old_string` occurs {count} times in {args.file_path} (lines {places})",
            "add lines around it until it is the only one, or set `replace_all`",
        )
    store(path, args.file_path, encode(text.replace(old, new)))
    what = "1 replacement at line" if count == 1 else f"{count} replacements at lines"
    return ToolResult(f"Edited {args.file_path}: {what} {places}.")


def _create(path: Path, args: Edit) -> ToolResult:
    if path.exists() and regular(path, args.file_path).st_size:
        raise ToolError(
            f"`old_string` is empty, but {args.file_path} is not",
            "give the text to replace, or replace the whole file with `write`",
        )
    store(path, args.file_path, encode(args.new_string))
    return ToolResult(f"Created {args.file_path}.")


def _load(path: Path, name: str) -> str:
    if regular(path, name).st_size > LIMIT:
        raise ToolError(f"`{name}` is larger than {LIMIT // 1024 // 1024} MiB", "change it with `bash`")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"`{name}` is not UTF-8 text (byte {error.start})", "change it with `bash`") from error
    except OSError as error:
        raise failed("read", name, error) from error


def _line_ends(text: str, args: Edit) -> tuple[str, str]:
    """old and new with the file's own line ends: a model sees and writes \\n even where the file has \\r\\n."""
    old, new = args.old_string, args.new_string
    crlf = text.count("\r\n")
    if not crlf or ("\n" in old and old in text):
        return old, new
    windows = crlf == text.count("\n")
    if windows or old not in text:
        old, new = _windows(old), _windows(new)
    return old, new


def _windows(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _places(text: str, old: str, most: int = 10) -> str:
    """The numbers of the lines where it begins."""
    found: list[str] = []
    at, line, last = text.find(old), 1, 0
    while at >= 0:
        if len(found) == most:
            found.append("…")
            break
        line += text.count("\n", last, at)
        found.append(str(line))
        last, at = at, text.find(old, at + len(old))
    return ", ".join(found)


def _near(text: str, old: str) -> str:
    """A hint: the place that differs only in white space, or the most similar line."""
    lines = text.splitlines()
    first = next((line for line in old.splitlines() if line.strip()), "")
    wanted = "".join(first.split())
    for number, line in enumerate(lines, 1):
        if wanted and wanted in "".join(line.split()):
            return f"its first line is like line {number}, but white space or what follows differs: {line[:200]!r}"
    if len(lines) > 5_000:
        return "read the file again: it may have changed"
    from difflib import get_close_matches

    near = get_close_matches(first[:200], [line[:200] for line in lines], 1, 0.6)
    if not near:
        return "read the file again: it may have changed"
    number = next(i for i, line in enumerate(lines, 1) if line[:200] == near[0])
    return f"the closest line is {number}: {near[0]!r}"
