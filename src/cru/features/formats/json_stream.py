"""A stream of JSON texts, cut between its documents as the bytes come. What a document holds is not judged here."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_START = re.compile(rb"\s*+(?:([{\[])|" + _STRING + rb'|([^\s"{}\[\]]++)|(["}\]]))', re.S)
"""How a document begins: with a bracket, as a string, as a word, or with what is none."""
_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:' + _STRING + rb'[^"{}\[\]]*+)*+([{}\[\]"]?)', re.S)
"""Up to the next bracket outside of strings, or to a string whose end has not come yet."""
_BOM = b"\xef\xbb\xbf"


class JsonText(Struct, frozen=True):
    """The bytes of a document, and the line and column (from 1, in characters) where they begin."""

    data: bytes
    line: int = 1
    column: int = 1

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a byte of it."""
        before = self.data[:offset]
        line = before.count(b"\n")
        column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
        return self.line + line, column if line else self.column + column - 1


class JsonSplitter:
    """Takes bytes and gives documents as soon as they are whole."""

    def __init__(self) -> None:
        self._bytes = b""
        self._begin = self._at = 0  # where the open document begins, and how far it has been looked at
        self._depth = 0
        self._line = self._column = 1  # of the first byte that is kept
        self._is_first = True

    def feed(self, data: bytes) -> Iterator[JsonText]:
        """The documents that these bytes complete."""
        self._bytes = self._bytes[self._begin :] + data
        self._at -= self._begin
        self._begin = 0
        if self._is_first and len(self._bytes) < len(_BOM):
            return
        if self._is_first:
            self._is_first = False
            self._bytes = self._bytes.removeprefix(_BOM)
        yield from self._documents(is_end=False)

    def end(self) -> Iterator[JsonText]:
        """What is left when nothing follows: a word, or a document without its end."""
        yield from self._documents(is_end=True)
        rest = self._bytes[self._begin :]
        if rest.strip():
            yield self._take(len(self._bytes))

    def _documents(self, is_end: bool) -> Iterator[JsonText]:
        while self._open_next(is_end) and self._close():
            yield self._take(self._at)

    def _open_next(self, is_end: bool) -> bool:
        """Go to where a document begins, if none is open; False if what there is does not suffice."""
        if self._depth:
            return True
        match = _START.match(self._bytes, self._at)
        if match is None:
            return False
        bracket, word, other = match.groups()
        if other == b'"' or (word and not is_end and match.end() == len(self._bytes)):
            return False  # it may go on
        self._skip(match.end() - len(match[0].lstrip()))
        self._at, self._depth = match.end(), 1 if bracket else 0
        return True

    def _close(self) -> bool:
        """Go to the end of the open document; False if it has not come yet."""
        while self._depth:
            match = _BRACKET.match(self._bytes, self._at)
            assert match is not None  # it matches nothing, too
            mark = match[1]
            if mark in (b"", b'"'):
                self._at = match.start(1)
                return False
            self._depth += 1 if mark in (b"{", b"[") else -1
            self._at = match.end()
        return True

    def _take(self, end: int) -> JsonText:
        document = JsonText(self._bytes[self._begin : end], self._line, self._column)
        self._skip(end)
        self._at, self._depth = end, 0
        return document

    def _skip(self, to: int) -> None:
        """What lies before has been dealt with."""
        self._line, self._column = JsonText(self._bytes[self._begin : to], self._line, self._column).place(
            to - self._begin
        )
        self._begin = to
