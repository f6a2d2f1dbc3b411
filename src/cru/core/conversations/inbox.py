"""Messages from other contexts and programs: `inbox.jsonl`, guarded by an exclusive flock on `.inbox.lock` (chibi's protocol).

Each is taken once, whatever kills the run that takes it: a mark with an id is put behind the messages, the log says in the same entry
what was said and which mark it was, and then the inbox is emptied. What stands before a mark that the log knows was taken.
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct, field

from cru.core.base.files.regular import PRIVATE, append_lines, make_private_folder, open_regular
from cru.core.base.values.messages import RESOLVED
from cru.core.conversations import ContextHeld, has_content, read_if_exists, write_error, write_errors
from cru.core.conversations.entries import ARCHIVE, BROKEN, INBOX, LOG, LogProblem, new_id, now, short_error

REJECTED, GUARD = "inbox.rejected.jsonl", ".inbox.lock"
PATIENCE = 10.0
LONGEST_NAME = 100


class InboxMessage(Struct, frozen=True):
    """One message as it stands on disk.

    from_: the sender; read, it is one line of at most 100 characters
    to: the same of the context that it is for
    content: the text
    id: a UUID; "" before it is delivered
    timestamp: unix seconds; 0 before it is delivered
    """

    from_: str = field(name="from")
    to: str
    content: str
    id: str = ""
    timestamp: int = 0


class _ForeignMessage(Struct, frozen=True):
    """A message as other programs write it: only its content is required. `taken`: it is a mark; other programs read it as an empty
    message."""

    content: str
    from_: str | None = field(name="from", default=None)
    to: str | None = None
    id: str | None = None
    timestamp: float | None = None
    taken: bool = False


_decoder = msgspec.json.Decoder(_ForeignMessage)


def make_message(sender: str, to: str, content: str) -> InboxMessage:
    """A message of this moment with an id of its own."""
    return InboxMessage(sender, to, content, new_id(), now())


def deliver(folder: Path, letter: InboxMessage) -> None:
    """Append to the inbox of the context in `folder`, which is created; the message survives a power cut. Raises StoreUnwritable."""
    line = {"id": letter.id or new_id(), "timestamp": letter.timestamp or now(), "from": letter.from_, "to": letter.to}
    try:
        data = msgspec.json.encode({**line, "content": letter.content})
    except UnicodeEncodeError:
        data = msgspec.json.encode({**line, "content": letter.content.encode("utf-8", "replace").decode()})
    with write_errors(folder):
        make_private_folder(folder)
    guard = _lock_inbox(folder)
    try:
        with write_errors(folder / INBOX):
            append_lines(folder / INBOX, data + b"\n", sync=True)
    finally:
        os.close(guard)


def read_inbox(folder: Path) -> tuple[list[InboxMessage], list[LogProblem]]:
    """What lies in the inbox now; nothing is locked or changed."""
    messages, problems, _ = _read(folder)
    return messages, problems


class InboxReading:
    """`with` it to get the messages; writers wait meanwhile. A clean exit empties the inbox, and lines that were no messages
    are then in `inbox.rejected.jsonl`; after an exception everything stays. `problems` names these lines as soon as the block
    begins; `report` is given them too.

    taking: the id that the log must have once the messages are in it, "" if there are none
    sync: makes the log survive a power cut
    """

    def __init__(
        self,
        folder: Path,
        report: Callable[[Iterable[LogProblem]], object] = tuple,
        sync: Callable[[], object] = lambda: None,
    ) -> None:
        self._folder = folder
        self._report = report
        self._sync = sync
        self._guard_fd = -1
        self._rejected = b""
        self.problems: tuple[LogProblem, ...] = ()
        self.taking = ""

    def __enter__(self) -> list[InboxMessage]:
        self._rejected, self.problems, self.taking = b"", (), ""
        path = self._folder / INBOX
        if not has_content(path):
            return []
        if path.is_symlink():  # it could not be emptied
            raise write_error(path, OSError(errno.ELOOP, os.strerror(errno.ELOOP)))
        self._guard_fd = _lock_inbox(self._folder)
        try:
            messages, problems, self._rejected = _read(self._folder)
            if messages:
                self._mark(path)
        except BaseException:
            self._release()
            raise
        self.problems = tuple(problems)
        self._report(problems)
        return messages

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and self._guard_fd >= 0:
                self._empty()
        finally:
            self._release()

    def _mark(self, path: Path) -> None:
        taking = new_id()
        mark = {"id": taking, "timestamp": now(), "from": "cru", "to": self._folder.name, "content": "", "taken": True}
        with write_errors(path):
            append_lines(path, msgspec.json.encode(mark) + b"\n", sync=True)
        self.taking = taking

    def _empty(self) -> None:
        if self._rejected:
            with write_errors(self._folder / REJECTED):
                append_lines(self._folder / REJECTED, self._rejected, sync=True)
        if self.taking:
            self._sync()
        with write_errors(self._folder / INBOX):
            _truncate(self._folder / INBOX)

    def _release(self) -> None:
        if self._guard_fd >= 0:
            os.close(self._guard_fd)
            self._guard_fd = -1


def one_line(name: str) -> str:
    """A name from outside as it may be shown: one line of at most 100 characters, without what cannot be seen."""
    start = name[: 10 * LONGEST_NAME]
    text = " ".join("".join(char if char.isprintable() else " " for char in start).split())
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def _read(folder: Path) -> tuple[list[InboxMessage], list[LogProblem], bytes]:
    """The messages that nobody took, what is wrong, and the lines that are no messages. Raises StoreUnreadable."""
    messages: list[InboxMessage] = []
    problems: list[LogProblem] = []
    rejected: list[bytes] = []
    for number, text in enumerate((read_if_exists(folder / INBOX) or b"").split(b"\n"), 1):
        if not text or text.isspace():
            continue
        try:
            line = _decoder.decode(text)
            message = _message(line)
        except (*BROKEN, OverflowError) as error:
            shown = text[:80].decode("utf-8", "replace")
            problems.append(
                LogProblem(INBOX, number, f"not a message, goes to {REJECTED}: {short_error(error)}: {shown}")
            )
            rejected.append(text + b"\n")
            continue
        if not line.taken:
            messages.append(message)
        elif _was_taken(folder, message.id):
            messages.clear()
    if problems:
        from cru.core.conversations.reported import keep_first

        problems = keep_first(problems)
    return messages, problems, b"".join(rejected)


def _was_taken(folder: Path, taking: str) -> bool:
    """Whether the log or the archive has the messages before this mark."""
    from cru.core.conversations.log_tail import newest_entries

    entries = (entry for name in (LOG, ARCHIVE) for entry in newest_entries(folder / name, [], taking.encode()))
    return any(entry.entry_type == RESOLVED and entry.metadata.get("inbox") == taking for entry in entries)


def _message(line: _ForeignMessage) -> InboxMessage:
    sender, to = one_line(line.from_ or "") or "unknown", one_line(line.to or "")
    return InboxMessage(sender, to, line.content, line.id or "", int(line.timestamp or 0))


def _truncate(path: Path) -> None:
    fd = open_regular(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def _lock_inbox(folder: Path) -> int:
    """The exclusive lock, as a file descriptor whose closing releases it. A program that never lets go is named."""
    path = folder / GUARD
    try:
        fd = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
    except OSError as error:
        raise write_error(path, error) from error
    try:
        _wait_for_lock(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _wait_for_lock(fd: int, path: Path) -> None:
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
            raise write_error(path, error) from error
        time.sleep(0.002)
