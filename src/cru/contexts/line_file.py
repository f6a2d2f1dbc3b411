"""Append-only JSONL files that are records, not truth: the journal and the trace. Private, bounded, not fsynced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import msgspec

from cru.contexts import write_errors
from cru.files.regular import APPENDING, PRIVATE, missing_newline, open_regular, write_all

SHORTEST_SECRET = 8
_MASK = "[secret]"


class LineFile:
    """One such file. Nothing is opened before the first write. Not thread safe.

    When a write would make it longer than `limit_bytes`, it becomes `<name>.1`, that `<name>.2`, and so on; `keep` files in all.
    """

    def __init__(
        self,
        path: Path,
        *,
        limit_bytes: int | None = 8 << 20,
        keep: int = 5,
        redact: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._path = path
        self._limit = limit_bytes
        self._keep = keep
        self._redact = redact
        self._fd = -1
        self._size = 0
        self._torn = False

    def write(self, lines: bytes) -> None:
        """Append whole lines with one write. Raises StoreUnwritable."""
        data = self._redact(lines) if self._redact else lines
        with write_errors(self._path):
            if self._fd < 0:
                self._open()
            if self._limit is not None and self._size > 0 and self._size + len(data) > self._limit:
                self._rotate()
            if self._torn:
                data = b"\n" + data
            self._torn = True
            write_all(self._fd, data)
            self._torn = False
        self._size += len(data)

    def close(self) -> None:
        """Give the file back; the next write opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        self._fd = open_regular(self._path, APPENDING, PRIVATE)
        self._size = os.fstat(self._fd).st_size
        self._torn = bool(missing_newline(self._fd))

    def _rotate(self) -> None:
        ours = os.fstat(self._fd).st_ino
        self.close()
        if self._path.exists() and self._path.stat().st_ino == ours:  # else another process has just done it
            names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._keep))]
            for old, new in reversed(list(pairwise(names))):
                if old.exists():
                    old.replace(new)
            if self._keep <= 1:
                self._path.unlink()
        self._open()


def make_redactor(secrets: Iterable[str]) -> Callable[[bytes], bytes]:
    """A function that replaces every given secret of at least 8 characters in JSON lines by "[secret]".

    Secrets inside JSON text that is itself a JSON string (a tool call's arguments) are found too. Lines stay valid JSON.
    """
    texts = sorted({v for s in secrets if len(s) >= SHORTEST_SECRET for v in _spellings(s)}, key=len, reverse=True)
    needles = {v.encode("utf-8", "replace") for t in texts for v in _spellings(t)}

    def redact(data: bytes) -> bytes:
        if not any(n in data for n in needles):
            return data
        return b"\n".join([_redact_line(line, texts) for line in data.split(b"\n")])

    return redact


def _spellings(text: str) -> set[str]:
    """The text, and how JSON writes it inside quotes, with and without non-ASCII characters."""
    import json

    return {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}


def _redact_line(line: bytes, texts: list[str]) -> bytes:
    if not line.strip():
        return line
    try:
        return msgspec.json.encode(_redact_value(msgspec.json.decode(line), texts))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        for text in texts:
            line = line.replace(text.encode("utf-8", "replace"), _MASK.encode())
        return line


def _redact_value(value: object, texts: list[str]) -> object:
    if isinstance(value, str):
        for text in texts:
            value = value.replace(text, _MASK)
        return value
    if isinstance(value, dict):
        return {_redact_value(k, texts): _redact_value(v, texts) for k, v in value.items()}
    if isinstance(value, list):
        return [_redact_value(v, texts) for v in value]
    return _MASK if type(value) in (int, float) and str(value) in texts else value
