"""TOON 3.0, read strictly: counts, widths and indentation must be right."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from cru.features.formats.toon_encode import NUMERIC

_HEADER = re.compile(r"\[(\d+)([\t|]?)\](?:(\{.*\}))?:")
_UNESCAPE = {"\\": "\\", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
_DEPTH = 200


class ToonError(ValueError):
    """Not TOON; names the line."""


class _ToonLine(Struct, frozen=True):
    number: int
    depth: int
    text: str


class _Header(Struct, frozen=True):
    """`key[3]{a,b}: rest` in parts; fields is None without braces."""

    key: str | None
    count: int
    delimiter: str
    fields: list[str] | None
    rest: str


def decode(text: str) -> object:
    """The value of a TOON document; {} for an empty one. Raises ToonError."""
    return _ToonReader(text).document()


class _ToonReader:
    def __init__(self, text: str) -> None:
        self.at = 0
        self.lines: list[_ToonLine] = []
        self.blank: list[int] = []
        for number, line in enumerate(text.split("\n"), 1):
            bare = line.lstrip(" ")
            if not bare.strip():
                self.blank.append(number)
                continue
            indent = len(line) - len(bare)
            if bare.startswith("\t"):
                raise ToonError(f"line {number}: a tab in the indentation")
            if indent % 2:
                raise ToonError(f"line {number}: indented by {indent} blanks, not a multiple of 2")
            self.lines.append(_ToonLine(number, indent // 2, bare.rstrip(" \r")))

    def document(self) -> object:
        if not self.lines:
            return {}
        first = self.lines[0]
        if first.depth:
            raise ToonError(f"line {first.number}: the first line is indented")
        header = _header(first)
        if header is not None and header.key is None:
            self.at = 1
            document: object = self.array(header, first, 1)
        elif len(self.lines) == 1 and header is None and _colon(first.text) < 0:
            self.at = 1
            document = _scalar(first.text, first)
        else:
            document = self.object(0)
        if self.at < len(self.lines):
            line = self.lines[self.at]
            raise ToonError(f"line {line.number}: unexpected `{line.text[:40]}`")
        return document

    def peek(self, depth: int) -> _ToonLine | None:
        """The next line if it stands at this depth. Raises ToonError if it is deeper."""
        if self.at >= len(self.lines):
            return None
        line = self.lines[self.at]
        if line.depth > depth:
            raise ToonError(f"line {line.number}: indented too deeply")
        return line if line.depth == depth else None

    def object(self, depth: int) -> dict[str, object]:
        if depth > _DEPTH:
            raise ToonError(f"more than {_DEPTH} levels deep")
        fields: dict[str, object] = {}
        while (line := self.peek(depth)) is not None:
            self.at += 1
            self.field(line, line.text, fields, depth + 1)
        return fields

    def field(self, line: _ToonLine, text: str, into: dict[str, Any], inside: int) -> None:
        """One `key: value`, `key:` or `key[N]…:`; what belongs to it stands at `inside`."""
        header = _header(_ToonLine(line.number, line.depth, text))
        if header is not None and header.key is not None:
            into[header.key] = self.array(header, line, inside)
            return
        colon = _colon(text)
        if colon < 0:
            raise ToonError(f"line {line.number}: a field needs a colon: `{text[:40]}`")
        key, rest = _name(text[:colon], line), text[colon + 1 :].strip()
        into[key] = _scalar(rest, line) if rest else self.object(inside)

    def array(self, header: _Header, line: _ToonLine, inside: int) -> list[Any]:
        if inside > _DEPTH:
            raise ToonError(f"more than {_DEPTH} levels deep")
        start = self.at
        if header.fields is not None:
            items = self.rows(header, inside)
        elif header.rest:
            items = [_scalar(cell, line) for cell in _split(header.rest, header.delimiter, line)]
        else:
            items = self.items(inside)
        if len(items) != header.count:
            raise ToonError(f"line {line.number}: {header.count} items are announced, {len(items)} are there")
        self.no_blank_lines(start)
        return items

    def no_blank_lines(self, start: int) -> None:
        if self.at - start < 1:
            return
        first, last = self.lines[start].number, self.lines[self.at - 1].number
        blank = next((number for number in self.blank if first < number < last), None)
        if blank is not None:
            raise ToonError(f"line {blank}: a blank line inside an array")

    def rows(self, header: _Header, inside: int) -> list[Any]:
        rows: list[object] = []
        fields = header.fields or []
        while (line := self.peek(inside)) is not None:
            cells_end, colon = _find(line.text, header.delimiter), _colon(line.text)
            if colon >= 0 and (cells_end < 0 or colon < cells_end):
                break  # a field that follows the rows
            self.at += 1
            cells = _split(line.text, header.delimiter, line)
            if len(cells) != len(fields):
                raise ToonError(f"line {line.number}: {len(cells)} values for {len(fields)} fields")
            rows.append(dict(zip(fields, [_scalar(cell, line) for cell in cells], strict=True)))
        return rows

    def items(self, inside: int) -> list[Any]:
        items: list[object] = []
        while (line := self.peek(inside)) is not None and (line.text == "-" or line.text.startswith("- ")):
            self.at += 1
            items.append(self.item(line, line.text[2:].strip(), inside))
        return items

    def item(self, line: _ToonLine, text: str, depth: int) -> Any:
        if not text:
            return self.object(depth + 1)
        header = _header(_ToonLine(line.number, depth, text))
        if header is not None and header.key is None:
            return self.array(header, line, depth + 1)
        if header is None and _colon(text) < 0:
            return _scalar(text, line)
        fields: dict[str, object] = {}
        self.field(line, text, fields, depth + 2)
        fields.update(self.object(depth + 1))
        return fields


def _header(line: _ToonLine) -> _Header | None:
    """The head of an array, None if the line is none."""
    text = line.text
    bracket = _find(text, "[")
    if bracket < 0 or 0 <= _colon(text) < bracket:
        return None
    match = _HEADER.match(text, bracket) if "{" not in text[bracket:] else _with_fields(text, bracket)
    if match is None:
        return None
    count, delimiter, fields = int(match[1]), match[2] or ",", match[3]
    key = _name(text[:bracket], line) if bracket else None
    names = None if fields is None else [_name(name, line) for name in _split(fields[1:-1], delimiter, line)]
    return _Header(key, count, delimiter, names, text[match.end() :].strip())


def _with_fields(text: str, bracket: int) -> re.Match[str] | None:
    """The same where braces follow: up to the first closing one outside of quotes."""
    colon = _colon(text, text.find("]", bracket) + 1)
    return None if colon < 0 else _HEADER.fullmatch(text, bracket, colon + 1) or _HEADER.match(text, bracket)


def _find(text: str, char: str, start: int = 0) -> int:
    """Where a character stands outside of quotes, -1 if nowhere."""
    quoted, at = False, start
    while at < len(text):
        if quoted and text[at] == "\\":
            at += 1
        elif text[at] == '"':
            quoted = not quoted
        elif text[at] == char and not quoted:
            return at
        at += 1
    return -1


def _colon(text: str, start: int = 0) -> int:
    return _find(text, ":", start)


def _split(text: str, delimiter: str, line: _ToonLine) -> list[str]:
    cells: list[str] = []
    start = 0
    while (end := _find(text, delimiter, start)) >= 0:
        cells.append(text[start:end].strip())
        start = end + 1
    cells.append(text[start:].strip())
    return cells


def _name(text: str, line: _ToonLine) -> str:
    text = text.strip()
    return _unquoted(text, line) if text.startswith('"') else text


def _scalar(text: str, line: _ToonLine) -> object:
    if text.startswith('"'):
        return _unquoted(text, line)
    if text in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[text]
    if not NUMERIC.fullmatch(text) or re.match(r"-?0\d", text):
        return text
    value = float(text) if any(char in text for char in ".eE") else int(text)
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def _unquoted(text: str, line: _ToonLine) -> str:
    out: list[str] = []
    at = 1
    while at < len(text):
        char = text[at]
        if char == '"':
            if at != len(text) - 1:
                raise ToonError(f"line {line.number}: text behind a closing quote")
            return "".join(out)
        if char == "\\":
            at += 1
            if text[at : at + 1] not in _UNESCAPE:
                raise ToonError(f"line {line.number}: unknown escape `\\{text[at : at + 1]}`")
            char = _UNESCAPE[text[at]]
        out.append(char)
        at += 1
    raise ToonError(f"line {line.number}: a quote is not closed")
