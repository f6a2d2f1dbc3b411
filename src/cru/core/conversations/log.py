"""The log of one context: append-only lines, read incrementally, with what the last anchor leaves visible."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from cru.core.base.files import unsynced
from cru.core.base.files.regular import APPENDING, PRIVATE, append_lines, open_regular, read_range, write_all
from cru.core.base.values.messages import MESSAGE, Entry
from cru.core.conversations import LogLost, read_error, write_error, write_errors
from cru.core.conversations.entries import (
    ANCHORS,
    BROKEN,
    TORN,
    LogProblem,
    anchor_keeps,
    apply_anchor,
    decode,
    decode_lines,
    encode,
    line_key,
    replace_surrogates,
)

_TAIL = 64
_BLOCK = 1 << 18
_fdatasync = getattr(os, "fdatasync", os.fsync)


class Log:
    """One JSONL file. It may be missing, and other processes may append to it or replace it at any time.

    `visible` is what counts; `entries` is that in the order of the log, with the last anchor behind what it keeps. They are live lists:
    they grow, and they are replaced when the file is replaced or an anchor comes. What an anchor left behind is not held in memory.
    Not thread safe, except that `sync` may run beside everything else.

    is_ours: whether nobody else may replace the file now; that it happened all the same is LogLost, and what was read and is still to be
        appended goes into a file beside it
    """

    def __init__(self, path: Path, is_ours: Callable[[], bool] = lambda: False) -> None:
        self.path, self._name = path, os.fspath(path)
        self._is_ours = is_ours
        self._guard = Lock()
        self._fd = -1
        self._writable = False
        self._identity = (0, 0)
        self.problems: list[LogProblem] = []
        self._clear()

    def _clear(self) -> None:
        self.entries: list[Entry] = []
        self.visible: list[Entry] = []
        self.last_anchor: Entry | None = None
        self.undone: dict[str, list[Entry]] = {}  # what a redo makes visible again, by the anchor of its undo
        self._offset = 0  # bytes that were understood
        self._lines = 0  # lines among them
        self._tail = b""  # the last of these bytes, to notice a file rewritten in place
        self._rest = b""  # an incomplete last line after them
        self._unended = False  # the last understood line has no newline yet
        self._torn_line = 0  # the incomplete line that was reported
        self._rescue: Path | None = None  # what took the entries of a log that was lost

    def refresh(self) -> None:
        """Read what was added since; problems are collected. Raises StoreUnreadable, LogLost."""
        try:
            self._refresh()
        except FileNotFoundError:
            self.close()
            self._clear()
        except OSError as error:
            raise read_error(self.path, error) from error

    def reload(self) -> None:
        """Read the file that is there now, whatever became of the one before."""
        self.close()
        self.refresh()

    def _refresh(self) -> None:
        try:
            status = os.stat(self._name)
        except FileNotFoundError:
            self._refuse("deleted")
            raise
        fresh = (status.st_dev, status.st_ino) != self._identity
        if fresh:
            self._refuse("replaced")
            self._open()
            status = os.fstat(self._fd)
        size = status.st_size
        known = self._offset + len(self._rest)
        if size == known:
            if self._rest:
                self._report_torn()
            return
        tail = read_range(self._fd, self._offset - len(self._tail), self._offset) if self._tail else b""
        if size < known or tail != self._tail:
            self._refuse("rewritten")
            self._clear()
            fresh = True
        if size - self._offset <= _BLOCK:
            self._read_lines(read_range(self._fd, self._offset, size))
        else:
            from cru.core.conversations.log_tail import blocks_forward

            for block in blocks_forward(self._fd, self._offset, size):
                self._read_lines(block)
        # An incomplete line may be another process in the middle of its write: it is reported when it has not grown.
        if self._rest and fresh:
            self._report_torn()

    def _refuse(self, what: str) -> None:
        """Raises LogLost, once what was read is in a file of its own, if nobody may change the log now."""
        if not self._offset or not self._is_ours():
            return
        from cru.core.base.files.atomic import free_name

        with write_errors(self.path):
            if self._rescue is None:
                rescue = free_name(self.path, "rescued")
                append_lines(rescue, self._read_before(), sync=True)
                self._rescue = rescue
        text = f"{self.path} was {what} while a turn ran on it"
        raise LogLost(text, f"what was said is in {self._rescue}: move it to {self.path}, or go on without it")

    def _read_before(self) -> bytes:
        """What was read: its bytes, if the file that is open still has them, else the entries that are held."""
        data = read_range(self._fd, 0, self._offset)
        if len(data) == self._offset and data.endswith(self._tail):
            return data
        return b"".join([encode(e) for e in self.entries])

    def _open(self) -> None:
        """Open the file that is there now; for reading only if it must be."""
        try:
            fd, writable = open_regular(self.path, APPENDING & ~os.O_CREAT), True
        except OSError:
            fd, writable = open_regular(self.path), False
        self._replace_fd(fd, writable)

    def _replace_fd(self, fd: int, writable: bool) -> None:
        with self._guard:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd, self._writable = fd, writable
            status = os.fstat(fd) if fd >= 0 else None
        self._identity = (status.st_dev, status.st_ino) if status else (0, 0)
        self._clear()

    def _read_lines(self, data: bytes) -> None:
        """Understand bytes that follow the offset."""
        if self._unended and data.startswith(b"\n"):
            self._advance(b"\n", 0)
            data = data[1:]
        body, newline, rest = data.rpartition(b"\n")
        body += newline
        entries, problems = decode_lines(body, self._lines + 1, self.path.name)
        self.problems += [p for p in problems if p.line != self._torn_line]
        self._advance(body, body.count(b"\n"))
        self._add(entries)
        self._rest = rest
        if rest:
            self._read_unended_line(rest)

    def _read_unended_line(self, rest: bytes) -> None:
        """A last line that lacks only its newline is whole: no beginning of an entry is an entry."""
        try:
            entry = decode(rest)
        except BROKEN:
            return
        self._add([entry])
        self._advance(rest, 1)
        self._rest, self._unended = b"", True

    def _advance(self, taken: bytes, lines: int) -> None:
        if taken:
            self._offset += len(taken)
            self._lines += lines
            self._tail = (self._tail + taken[-_TAIL:])[-_TAIL:]
            self._unended = False

    def _report_torn(self) -> None:
        number = self._lines + 1
        if self._torn_line != number:
            self._torn_line = number
            self.problems.append(LogProblem(self.path.name, number, TORN, line_key(self._rest)))

    def _add(self, entries: list[Entry] | tuple[Entry, ...]) -> None:
        start = 0
        for at in [n for n, entry in enumerate(entries) if entry.entry_type in ANCHORS]:
            keep = anchor_keeps(entries[at])
            if keep is not None:
                self.last_anchor = entries[at]
                self._end_redo(entries[start:at])
                self.visible = apply_anchor(entries[at], keep, [*self.visible, *entries[start:at]], self.undone)
                self.entries = [*self.visible, entries[at]]
                start = at + 1
        self._end_redo(entries[start:])
        self.visible += entries[start:]
        self.entries += entries[start:]

    def _end_redo(self, following: Sequence[Entry]) -> None:
        """What was said since an undo takes the place of what it has undone, which is not held any more then."""
        if self.undone and any(entry.entry_type == MESSAGE for entry in following):
            self.undone.clear()

    def append(self, entries: tuple[Entry, ...]) -> None:
        """Write all entries with one call. They are the operating system's when this returns. Raises StoreUnwritable, LogLost."""
        if not entries:
            return
        try:
            data = b"".join([encode(e) for e in entries])
        except UnicodeEncodeError:
            entries = tuple(replace_surrogates(e) for e in entries)
            data = b"".join([encode(e) for e in entries])
        try:
            self.refresh()
        except LogLost:
            if self._rescue is not None:
                with write_errors(self._rescue):
                    append_lines(self._rescue, data, sync=True)
            raise
        with write_errors(self.path):
            if not self._writable:
                self._replace_fd(open_regular(self.path, APPENDING, PRIVATE), True)
                self._refresh()
            start = self._offset
            torn = bool(self._rest)
            if torn or self._unended:
                data = b"\n" + data
            write_all(self._fd, data)
        if torn or os.lseek(self._fd, 0, os.SEEK_CUR) != start + len(data):
            self.refresh()
        else:
            self._advance(data, len(entries))
            self._add(entries)

    def content(self) -> bytes:
        """The whole file, as far as it was read."""
        return read_range(self._fd, 0, self._offset + len(self._rest)) if self._fd >= 0 else b""

    def sync(self) -> None:
        """Wait until a power cut loses nothing of what was appended so far, and no file in `unsynced`, which entries may name. May run in a
        thread. Raises StoreUnwritable."""
        if unsynced:
            from cru.core.base.files.atomic import sync_files

            try:
                sync_files()
            except OSError as error:
                raise write_error(error.filename, error) from error
        with self._guard:
            if self._fd < 0:
                return
            fd = os.dup(self._fd)
        try:
            with write_errors(self.path):
                _fdatasync(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Give the file back; the next use opens it again."""
        if self._fd >= 0:
            self._replace_fd(-1, False)
