"""Append-only JSONL files that are records, not truth: the journal, the trace, what hooks did. Private, bounded, not fsynced.

What is put aside is called `<name>.1`, what was that `<name>.2`, and so on. A kill between two renames leaves a gap in the numbers, which
readers (record_files.py) pass over and the next rotation fills.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files.regular import APPENDING, PRIVATE, missing_newline, open_regular, write_all
from cru.core.conversations import ContextSettings, write_errors
from cru.core.conversations.lock import NO_FLOCK

SHORTEST_SECRET = 8
_MASK = "[secret]"
LOOK_SECONDS = 1.0
"""How often a file that is written to is looked at for what other processes did to it."""
_HEAD = 4096  # bytes in which the oldest line says when it was written
_TIME = b'"time":'
_DIGITS = 10  # of Unix seconds
DAY = 86400
MOST_DIGITS = 3
"""Of the number of a file that was put aside."""


class RecordLimits(Struct, frozen=True):
    """How much of a kind of records is kept.

    bytes: of one file; a single line may have more
    files: the one that is written to included
    seconds: the age of what is oldest; 0: any
    """

    bytes: int = 8 << 20
    files: int = 5
    seconds: int = 90 * DAY

    @classmethod
    def from_settings(cls, settings: ContextSettings) -> RecordLimits:
        return cls(int(settings.record_file_mb * (1 << 20)), settings.record_files, settings.record_max_age_days * DAY)


class LineFile:
    """One such file. Nothing is opened before the first write. Any number of processes may write; not thread safe.

    A write that would make it larger than `limits` allow, or whose oldest line is too old, puts it aside and begins it anew.
    """

    def __init__(
        self, path: Path, limits: RecordLimits = RecordLimits(), redact: Callable[[bytes], bytes] | None = None
    ) -> None:
        self._path = path
        self._limits = limits
        self._redact = redact
        self._fd = -1
        self._size = 0
        self._torn = False
        self._has_old_lines = False
        self._looked = 0.0

    def write(self, lines: bytes) -> bool:
        """Append whole lines with one write; whether the file was begun anew for them. Raises StoreUnwritable."""
        data = self._redact(lines) if self._redact else lines
        with write_errors(self._path):
            if self._fd < 0:
                self._open()
            elif time.monotonic() - self._looked > LOOK_SECONDS:
                self._look()
            is_full = self._size > 0 and self._size + len(data) > self._limits.bytes
            is_new = (is_full or self._has_old_lines) and self._rotate()
            if self._torn:
                data = b"\n" + data
            self._torn = True
            write_all(self._fd, data)
            self._torn = False
        self._size += len(data)
        return is_new

    def close(self) -> None:
        """Give the file back; the next write opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        self._fd = open_regular(self._path, APPENDING, PRIVATE)
        self._size = os.fstat(self._fd).st_size
        self._torn = bool(missing_newline(self._fd))
        self._has_old_lines = self._is_old()
        self._looked = time.monotonic()

    def _look(self) -> None:
        """See what others did to it: what was put aside is no place for new lines, since it goes sooner."""
        try:
            status = self._path.stat()
            is_same = os.path.samestat(status, os.fstat(self._fd))
        except FileNotFoundError:
            is_same = False
        if is_same:
            self._size = status.st_size
            self._has_old_lines = self._is_old()
            self._looked = time.monotonic()
        else:
            self.close()
            self._open()

    def _is_old(self) -> bool:
        """Whether the oldest line has the age at which it is put aside, so that it goes in time with the other files."""
        if not self._size or not self._limits.seconds:
            return False
        _, _, rest = os.pread(self._fd, _HEAD, 0).partition(_TIME)
        written = rest[:_DIGITS]
        return written.isdigit() and time.time() - int(written) > self._limits.seconds / self._limits.files

    def _rotate(self) -> bool:
        """Put the file aside, unless another process is about to or has done so."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in NO_FLOCK:
                raise
        is_ours = self._leads_here()
        if is_ours:
            put_aside(self._path, self._limits)
        self.close()  # and with it the lock
        self._open()
        return is_ours

    def _leads_here(self) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False


def put_aside(path: Path, limits: RecordLimits) -> None:
    """Give the file at `path` the number 1, after those that have one have moved up; remove what is too much or too old. Raises OSError."""
    oldest = time.time() - limits.seconds if limits.seconds else 0.0
    kept: set[int] = set()
    for number in list_numbers(path):
        if number >= limits.files or numbered_path(path, number).stat().st_mtime < oldest:
            numbered_path(path, number).unlink(missing_ok=True)
        else:
            kept.add(number)
    if limits.files < 2:
        path.unlink(missing_ok=True)
        return
    free = next(number for number in range(1, limits.files) if number not in kept or number == limits.files - 1)
    for number in range(free, 0, -1):
        numbered_path(path, number - 1).replace(numbered_path(path, number))


def list_numbers(path: Path) -> list[int]:
    """Of the files that were put aside, in order. A longer number is somebody's own, such as a date."""
    start = f"{path.name}."
    names = (name.removeprefix(start) for name in os.listdir(path.parent) if name.startswith(start))
    return sorted(
        int(number) for number in names if number.isdecimal() and number[0] != "0" and len(number) <= MOST_DIGITS
    )


def numbered_path(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


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
