"""Where a key stands in TOML text. tomllib keeps no positions, so this finds them, and only when something is reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]

LONGEST_SHOWN = 200
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def line_of(text: str, key: str | Sequence[str]) -> int:
    """Return the 1-based line of a dotted key (`api.temperature`, `models."a.b"`) or of a sequence of names. A key inside an inline
    table has the line of that table's key, a missing one the line of its nearest table; 0 if nothing of it is there."""
    names = split_key(key) if isinstance(key, str) else tuple(key)
    lines = _first_lines(text)
    for length in range(len(names), 0, -1):
        if line := lines.get(names[:length]):
            return line
    return 0


@lru_cache(maxsize=4)
def _first_lines(text: str) -> dict[Path, int]:
    """Return the first line of each key and of each table around one. Kept, because a file with one mistake may have thousands."""
    lines: dict[Path, int] = {}
    for path, line in positions(text):
        for length in range(len(path), 0, -1):
            if lines.setdefault(path[:length], line) != line:
                break  # what is around it was there before
    return lines


def split_key(dotted: str) -> Path:
    """The names of a dotted key; quoted names may hold dots."""
    return _key(dotted, 0, "")[0]


def join_key(path: Sequence[str]) -> str:
    """The dotted key of these names, quoted where TOML asks for it."""
    return ".".join(
        name if _is_bare(name) else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in path
    )


def show_key(path: Sequence[str]) -> str:
    """Return the dotted key for people."""
    return shorten(join_key(path))


def shorten(text: str) -> str:
    """Return the beginning of a text that is longer than anybody writes, else the text."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def positions(text: str) -> Iterator[tuple[Path, int]]:
    """(full key path, line) of each header and each key of valid TOML, in order of the text."""
    table: Path = ()
    at, end, line, counted = 0, len(text), 1, 0
    while at < end:
        char = text[at]
        if char in " \t\r\n":
            at += 1
            continue
        if char == "#":
            at = _line_end(text, at)
            continue
        line, counted = line + text.count("\n", counted, at), at
        if char == "[":
            start = at + (2 if text.startswith("[[", at) else 1)
            table, at = _key(text, start, "]")
            yield table, line
            at = _line_end(text, at)
        else:
            path, at = _key(text, at, "=")
            yield table + path, line
            at = _after_value(text, at + 1)


def item_lines(text: str, path: Sequence[str]) -> list[tuple[str, int]]:
    """(text, 1-based line) of each string in the arrays of this key in valid TOML, in order; also in an inline table."""
    names = tuple(path)
    items: list[tuple[str, int]] = []
    for key, start in _value_starts(text):
        if names[: len(key)] != key:
            continue
        items += _strings_of(text, start, names[len(key) :])
    return items


def _value_starts(text: str) -> Iterator[tuple[Path, int]]:
    """(full key path, where its value begins) of each key."""
    table: Path = ()
    at = 0
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
        elif text[at] == "#":
            at = _line_end(text, at)
        elif text[at] == "[":
            table, at = _key(text, at + (2 if text.startswith("[[", at) else 1), "]")
            at = _line_end(text, at)
        else:
            key, at = _key(text, at, "=")
            yield table + key, at + 1
            at = _after_value(text, at + 1)


def _strings_of(text: str, at: int, names: Path) -> Iterator[tuple[str, int]]:
    """The strings of the value that begins at `at`; names: the keys of inline tables that lead to it."""
    end = _after_value(text, at)
    keys: list[Path] = []
    key: Path = ()
    while at < end:
        char = text[at]
        if char in "\"'":
            quote = char * 3 if text.startswith(char * 3, at) else char
            closing = _string_end(text, at, quote)
            item = text[at + len(quote) : closing - len(quote)]
            if text[closing:end].lstrip(" \t")[:1] in ("=", "."):  # a quoted key
                key, at = _key(text, at, "=")
                continue
            if tuple(name for part in (*keys, key) for name in part) == names:
                yield (_unescape(item) if char == '"' else item), text.count("\n", 0, at) + 1
            at = closing
            continue
        if char == "#":
            at = _line_end(text, at)
        elif char == "{":
            keys, key = [*keys, key], ()
        elif char == "}":
            key = keys.pop()
        elif char.isalnum() and keys:
            word, stop = _key(text, at, "=,]}")
            if text[stop : stop + 1] == "=":
                key = word
            at = stop
            continue
        at += 1


def _is_bare(name: str) -> bool:
    return (bool(name) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()) or name in ("-", "_")


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _key(text: str, at: int, stop: str) -> tuple[Path, int]:
    """The dotted key that begins at `at`, and where the stop character (or the end of the line) is."""
    names: list[str] = []
    bare = ""
    while at < len(text) and text[at] not in stop + "\n":
        char = text[at]
        if char in "\"'":
            closing = _string_end(text, at, char)
            names.append(_unescape(text[at + 1 : closing - 1]) if char == '"' else text[at + 1 : closing - 1])
            at = closing
            continue
        if char == "." and bare.strip():
            names.append(bare.strip())
            bare = ""
        elif char != ".":
            bare += char
        at += 1
    if bare.strip():
        names.append(bare.strip())
    return tuple(names), at


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\" or at + 1 >= len(text):
            out.append(text[at])
            at += 1
            continue
        mark = text[at + 1]
        digits = {"u": 4, "U": 8}.get(mark, 0)
        out.append(chr(int(text[at + 2 : at + 2 + digits], 16)) if digits else _ESCAPES.get(mark, mark))
        at += 2 + digits
    return "".join(out)


def _string_end(text: str, at: int, quote: str) -> int:
    """Behind the string that begins at `at`; `quote` is one or three quotation marks."""
    raw = quote[0] == "'"
    at += len(quote)
    while at < len(text):
        if text[at] == "\\" and not raw:
            at += 2
        elif text.startswith(quote, at):
            at += len(quote)
            while len(quote) == 3 and text.startswith(quote[0], at):
                at += 1
            return at
        else:
            at += 1
    return at


def _after_value(text: str, at: int) -> int:
    """The end of the line on which the value that begins at `at` ends: strings and brackets may span lines."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char in "\"'":
            at = _string_end(text, at, char * 3 if text.startswith(char * 3, at) else char)
            continue
        if char == "\n" and depth <= 0:
            return at
        if char == "#":
            at = _line_end(text, at)
            continue
        depth += (char in "[{") - (char in "]}")
        at += 1
    return at
