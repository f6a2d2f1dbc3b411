"""Messages from other contexts and programs: `inbox.jsonl`, guarded by an exclusive flock on `.inbox.lock` (chibi's protocol)."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct, field

from cru.contexts.atomic import PRIVATE, append_lines
from cru.contexts.entries import BROKEN, Problem, new_id, now, why
from cru.contexts.errors import ContextHeld, unreadable, unwritable, writing

INBOX, GUARD = "inbox.jsonl", ".inbox.lock"
PATIENCE = 10.0


class InboxMessage(Struct, frozen=True):
    """One message, as it stands on disk. `timestamp` is in unix seconds."""

    from_: str = field(name="from")
    to: str
    content: str
    id: str = ""
    timestamp: int = 0


class _Loose(Struct, frozen=True):
    """What foreign writers may leave out."""

    content: str
    from_: str | None = field(name="from", default=None)
    to: str | None = None
    id: str | None = None
    timestamp: float | None = None


_decoder = msgspec.json.Decoder(_Loose)


def message(sender: str, to: str, content: str) -> InboxMessage:
    """A message of this moment with an id of its own."""
    return InboxMessage(sender, to, content, new_id(), now())


def deliver(folder: Path, letter: InboxMessage) -> None:
    """Append to the inbox of the context in `folder`, which is created. Raises StoreUnwritable."""
    line = {"id": letter.id or new_id(), "timestamp": letter.timestamp or now(), "from": letter.from_, "to": letter.to}
    try:
        data = msgspec.json.encode({**line, "content": letter.content})
    except UnicodeEncodeError:
        data = msgspec.json.encode({**line, "content": letter.content.encode("utf-8", "replace").decode()})
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    guard = _guard(folder)
    try:
        with writing(folder / INBOX):
            append_lines(folder / INBOX, data + b"\n")
    finally:
        os.close(guard)


def peek(folder: Path) -> tuple[list[InboxMessage], list[Problem]]:
    """What lies in the inbox now; nothing is locked or changed."""
    try:
        return _parse((folder / INBOX).read_bytes())
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise unreadable(folder / INBOX, error) from error


class InboxReading:
    """`with` it to get the messages; writers wait meanwhile. A clean exit empties the inbox if it held at least one message;
    after an exception everything stays. `problems` names the lines that were no messages; `report` is given them too."""

    def __init__(self, folder: Path, report: Callable[[Iterable[Problem]], object] = tuple) -> None:
        self._folder = folder
        self._report = report
        self._guard_fd = -1
        self._read_any = False
        self.problems: tuple[Problem, ...] = ()

    def __enter__(self) -> list[InboxMessage]:
        self._read_any, self.problems = False, ()
        if not self._filled():
            return []
        self._guard_fd = _guard(self._folder)
        try:
            messages, problems = peek(self._folder)
        except BaseException:
            self._release()
            raise
        self._read_any, self.problems = bool(messages), tuple(problems)
        self._report(problems)
        return messages

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and self._read_any:
                with writing(self._folder / INBOX):
                    os.truncate(self._folder / INBOX, 0)
        finally:
            self._release()

    def _filled(self) -> bool:
        try:
            return (self._folder / INBOX).stat().st_size > 0
        except OSError:
            return False

    def _release(self) -> None:
        if self._guard_fd >= 0:
            os.close(self._guard_fd)
            self._guard_fd = -1


def _parse(data: bytes) -> tuple[list[InboxMessage], list[Problem]]:
    messages: list[InboxMessage] = []
    problems: list[Problem] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line or line.isspace():
            continue
        try:
            m = _decoder.decode(line)
        except BROKEN as error:
            shown = line[:80].decode("utf-8", "replace")
            problems.append(Problem(INBOX, number, f"not a message, skipped: {why(error)}: {shown}"))
        else:
            messages.append(
                InboxMessage(m.from_ or "unknown", m.to or "", m.content, m.id or "", int(m.timestamp or 0))
            )
    return messages, problems


def _guard(folder: Path) -> int:
    """The exclusive lock, as a file descriptor whose closing releases it. A program that never lets go is named."""
    path = folder / GUARD
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        _wait(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _wait(fd: int, path: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > end:
                text = f"another program has held {path} for {PATIENCE:.0f} seconds"
                raise ContextHeld(text, "find it with `fuser` or `lsof`, end it, then try again") from error
        except OSError as error:
            raise unwritable(path, error) from error
        time.sleep(0.002)
