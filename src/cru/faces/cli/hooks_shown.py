"""A hook as `cru hooks review` shows it: everything that decides, in a fixed order, in lines that no content can imitate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from cru.extensions.hooks.entry import Entry
from cru.extensions.hooks.looks import File, Look

SHOWN = 60
"""Lines of a file that are shown before a person asks for more."""
NOT_COVERED = "what these files start or read themselves is not looked at"
# Field of an entry → what people call it. What is as it always is, is left out; the timeout is always there.
FIELDS: dict[str, str] = {
    "event": "event", "matcher": "matcher", "condition": "if", "name": "name", "kind": "type", "command": "runs", "args": "args",
    "shell": "shell", "cwd": "in", "env": "env", "timeout": "timeout", "asynchronous": "async", "rewake": "rewake", "once": "once",
    "sequential": "sequential", "include_sub_agents": "sub-agents", "on_error": "on_error", "priority": "priority", "enabled": "enabled",
}  # fmt: skip
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Entry)} | {"env": {}, "timeout": None}


def shown(entry: Entry, seen: Look, *, whole: bool) -> Iterator[str]:
    """Its lines. Those of a value or file begin with its line numbers, all others at the left or with two blanks and a word of ours."""
    yield f"{entry.id}@{seen.digest}  {entry.dialect}"
    yield f"  {'at':<10} {plain(entry.where)}"
    for name, word in FIELDS.items():
        value = getattr(entry, name)
        if value == _DEFAULTS[name]:
            continue
        if name == "command" and "\n" in value:
            yield f"  {word:<10} (its lines, numbered)"
            yield from _numbered(value.encode("utf-8", "surrogatepass"), whole=True)
            continue
        yield f"  {word:<10} {plain(value)}"
    yield f"  {'as written':<10} {plain(entry.definition)}"
    for file in seen.files:
        yield f"  {'file':<10} {plain(file.path)} ({file.size} bytes)"
        yield from _content(file, whole)
    for text in seen.unseen:
        yield f"  CANNOT SEE what this runs: {plain(text)}"
    if seen.files:
        yield f"  {NOT_COVERED}"


def folded(line: str, width: int) -> Iterator[str]:
    """A line for a terminal of this width (0 = no terminal): where it would break, it goes on behind a mark, so that no content stands
    at the left."""
    at, mark = 0, ""
    while width and len(line) - at > 1:
        room = max(width - 1 - len(mark), 10)
        piece = line[at : at + room]
        if not piece.isascii():
            piece = piece[: max(room // 2, 5)]  # wide characters
        if at + len(piece) >= len(line):
            break
        yield mark + piece
        at, mark = at + len(piece), " " * 9 + "┆ "
    yield mark + line[at:]


def plain(value: Any) -> str:
    """A value on one line: as it is if that is unmistakable, else as JSON in ASCII."""
    if isinstance(value, str) and value.isprintable() and "\\" not in value and not value.startswith('"'):
        return value
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def _content(file: File, whole: bool) -> Iterator[str]:
    if b"\0" in file.content:
        yield f"    (not a text; SHA-256 {file.digest})"
        return
    yield from _numbered(file.content, whole)
    if file.size > len(file.content):
        yield f"    (only the first {len(file.content)} bytes are shown)"


def _numbered(content: bytes, whole: bool) -> Iterator[str]:
    lines = content.decode("utf-8", "backslashreplace").split("\n")
    if lines[-1] == "":
        lines.pop()
    left = 0 if whole else len(lines) - SHOWN
    for number, line in enumerate(lines[:SHOWN] if left > 0 else lines, 1):
        yield f"  {number:>6} │ {_line(line)}"
    if left > 0:
        yield f"    ({left} more lines: m shows them)"


def _line(text: str) -> str:
    """A line of a file; what a terminal would not show as a character is shown by its number."""
    return "".join(char if char.isprintable() or char == "\t" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
