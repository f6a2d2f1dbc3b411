"""One context: its log, lock, inbox and texts. ContextStore is the port, FileContext keeps them in a folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain, dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from cru.core.base.values.messages import ANCHOR, Entry
from cru.core.conversations import (
    ContextError,
    ContextSettings,
    NoSuchContext,
    StoreUnwritable,
    has_content,
    os_error_text,
    read_if_exists,
    write_errors,
)
from cru.core.conversations.entries import (
    ARCHIVE,
    INBOX,
    LOG,
    LogProblem,
    anchor_keeps,
    decode_lines,
    lost_lines,
    new_id,
    now,
    summary_of,
)
from cru.core.conversations.identity import ensure_session_id, find_context, read_meta
from cru.core.conversations.lock import ContextLock, clamp_heartbeat
from cru.core.conversations.log import Log

if TYPE_CHECKING:
    from cru.core.conversations.copied import CopyLink
    from cru.core.conversations.inbox import InboxReading
    from cru.core.conversations.line_file import RecordLimits
    from cru.core.conversations.log_tail import LogTail
    from cru.core.conversations.presence import Presence

OLD, SUMMARY = "context.json", "summary.md"
ANCHOR_VERSION = 1
AnchorKind = Literal["compaction", "archive", "undo", "redo"]
LINKABLE = ("system_prompt.md",)  # texts that only the user writes, and may keep elsewhere


class ContextStore(Protocol):
    """A conversation. Whoever changes it holds the lock meanwhile; reading needs none. Lists are live: do not change them."""

    keeps_transcript: bool
    """Whether each finished turn is appended to the transcript (setting `transcript`)."""

    @property
    def name(self) -> str: ...

    @property
    def folder(self) -> Path: ...

    @property
    def session_id(self) -> str: ...

    @property
    def record_limits(self) -> RecordLimits:
        """How much of each kind of records is kept in the folder."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether this object holds the context's lock."""
        ...

    def lock(self, command: str) -> AbstractContextManager[None]:
        """Hold the context for the block; `command` is shown to those who find it held. Raises ContextHeld."""
        ...

    def refresh(self) -> tuple[LogProblem, ...]:
        """Read what others appended since; every problem found since the last call."""
        ...

    def new_problems(self) -> Sequence[LogProblem]:
        """Refresh; the problems that no run has told of yet. Whoever asks tells them."""
        ...

    def append(self, *entries: Entry) -> None:
        """Log entries. They survive a kill when this returns. Raises StoreUnwritable; then none, or the first few, are logged."""
        ...

    def sync(self) -> None:
        """Wait until they survive a power cut too, and the files in `unsynced` before. May run in a thread. Raises StoreUnwritable."""
        ...

    def entries(self) -> list[Entry]:
        """What counts, in the order of the log: what the last anchor keeps, that anchor, and all after it."""
        ...

    def visible(self) -> list[Entry]:
        """What counts now: of the entries visible before the last anchor those that it keeps, and all after it; no anchors."""
        ...

    def summary(self) -> str:
        """The last anchor's summary, "" if there is none."""
        ...

    def anchor(self, kind: AnchorKind, summary: str, keep: Sequence[str], more: Mapping[str, object] = {}) -> Entry:
        """Log an anchor that keeps the visible entries with these ids; other ids have no effect. summary.md gets its summary, for people
        and programs: what counts is the log. `more` joins its metadata."""
        ...

    def undone(self) -> dict[str, list[Entry]]:
        """What was visible before each undo that may be redone now, by its anchor's id, the last undo last."""
        ...

    def everything(self) -> Iterator[Entry]:
        """All entries that were ever logged, the oldest first, each id once."""
        ...

    def rotate(self) -> int:
        """Move the lines that the last anchor left behind out of the log, for the holder of the lock; how many."""
        ...

    def has_mail(self) -> bool: ...

    def inbox(self) -> InboxReading:
        """`with` it to read the messages; a clean exit empties the inbox. The next refresh reports lines that were none. A resolved
        prompt in the log that has its `taking` as metadata `inbox` is what says that they were taken."""
        ...

    def read_text(self, name: str) -> str:
        """A text beside the log (todos.md, goals.md, system_prompt.md, ...); "" if there is none."""
        ...

    def write_text(self, name: str, text: str) -> None:
        """Replace such a text as a whole; an empty summary.md is removed. Raises StoreUnwritable, for a link, too, unless the text is
        only the user's."""
        ...

    def transcript(self, entries: Iterable[Entry]) -> None:
        """Append the messages among the entries to the transcript for people, without system messages. If it is kept, tool calls are
        appended as well. Entries that it has are left out."""
        ...


class FileContext:
    """A ContextStore in a folder that exists. Nothing but the session id is read before it is asked for."""

    def __init__(self, folder: Path, settings: ContextSettings | None = None, project: str = "") -> None:
        """project: the root of the project that it begins in, if it is new. Raises StoreUnreadable, and what a migration raises (see
        migrate.py)."""
        self.folder = folder
        self.name = folder.name
        self._settings = settings or ContextSettings()
        self.keeps_transcript = self._settings.transcript
        self._heartbeat = clamp_heartbeat(self._settings.lock_heartbeat_seconds)
        self._lock: ContextLock | None = None
        self._seat: Presence | None = None
        self._loaded = False
        self._refreshed_under: ContextLock | None = None
        self._copy: CopyLink | None = None
        self._log = Log(folder / LOG, lambda: self.is_held and self._refreshed_under is self._lock)
        self.session_id, problems = ensure_session_id(folder, project)
        self._log.problems += problems
        if (folder / OLD).exists():
            from cru.core.conversations.migrate import migrate

            self._log.problems += migrate(folder)

    @property
    def record_limits(self) -> RecordLimits:
        from cru.core.conversations.line_file import RecordLimits

        return RecordLimits.from_settings(self._settings)

    @property
    def is_held(self) -> bool:
        """Whether this object holds the context's lock."""
        return self._lock is not None and self._lock.is_held

    def lock(self, command: str) -> ContextLock:
        """Raises NoSuchContext, too, if the context was renamed since it was opened: another may have its name by now."""
        if not self.is_held:
            self._refuse_moved()
            self._lock = ContextLock(self.folder, command, self._heartbeat, check=self._refuse_moved)
        assert self._lock is not None
        return self._lock

    def attend(self, command: str) -> None:
        """Be there until `close`: the context is neither removed nor does it destroy itself meanwhile (see presence.py)."""
        from cru.core.conversations.presence import Presence

        try:
            self._seat = self._seat or Presence(self.folder, command)
        except OSError as error:
            text = f"cannot be written ({os_error_text(error)}); nothing keeps another process from deleting this context meanwhile"
            self._log.problems.append(LogProblem(".seat", 0, text))

    def refresh(self) -> tuple[LogProblem, ...]:
        self._loaded = True
        self._log.refresh()
        self._refreshed_under = self._lock if self.is_held else None
        problems = tuple(self._log.problems)
        self._log.problems.clear()
        return problems

    def new_problems(self) -> Sequence[LogProblem]:
        problems = self.refresh()
        if not problems:
            return problems
        from cru.core.conversations.reported import report_once

        return report_once(self.folder, problems)

    def append(self, *entries: Entry) -> None:
        self._log.append(entries)
        self._loaded = True
        if self._copy is not None:
            self._copy.copy()

    def copy_through(self, path: str) -> None:
        """From now on an entry counts as logged when a copy elsewhere has it, too. Raises StoreUnwritable."""
        from cru.core.conversations.copied import CopyLink

        self._copy = CopyLink(path)

    def sync(self) -> None:
        self._log.sync()

    def entries(self) -> list[Entry]:
        self._load()
        return self._log.entries

    def visible(self) -> list[Entry]:
        self._load()
        return self._log.visible

    def logged(self) -> list[Entry]:
        """Everything in the log that was not rotated away, as it is in the file now."""
        from cru.core.conversations.log_tail import oldest_entries

        with oldest_entries(self.folder / LOG) as entries:
            return list(entries)

    def tail(self, count: int, kinds: Collection[str]) -> LogTail:
        """The end of the log, with the last `count` entries of these kinds, and every problem found since the last refresh."""
        from cru.core.conversations.log_tail import read_tail

        tail = read_tail(self.folder / LOG, count, kinds)
        tail.problems[:0] = self._log.problems
        self._log.problems.clear()
        return tail

    def archived(self) -> Iterator[Entry]:
        """What was rotated away, the newest first."""
        from cru.core.conversations.log_tail import newest_entries

        return newest_entries(self.folder / ARCHIVE, self._log.problems)

    def entries_between(self, first: str, until: str) -> list[Entry]:
        """What `everything` gives from the entry with the one id to before that with the other ("" = to the end); nothing else is kept.
        Only the end of the log is read where that is enough."""
        from cru.core.conversations.log_tail import newest_entries

        entries: list[Entry] = []
        is_behind = bool(until)
        for entry in newest_entries(self.folder / LOG, self._log.problems):
            if not is_behind:
                entries.append(entry)
            if entry.id == first and not is_behind:
                return entries[::-1]
            if anchor_keeps(entry) is not None or entry.id == first:
                break  # what an anchor keeps stands in the archive, in its order
            is_behind = is_behind and entry.id != until
        from_first = dropwhile(lambda entry: entry.id != first, self.streamed())
        return list(takewhile(lambda entry: not until or entry.id != until, from_first))

    def streamed(self) -> Iterator[Entry]:
        """What `everything` gives, read while it is asked for; nothing of it is kept, and lines that are no entries are passed over."""
        from cru.core.conversations.log_tail import oldest_entries

        # The log is opened first: a rotation in between only adds to the archive what stands in it.
        with oldest_entries(self.folder / LOG) as logged, oldest_entries(self.folder / ARCHIVE) as archived:
            seen: set[str] = set()
            for entry in chain(archived, logged):
                if entry.id not in seen:
                    seen.add(entry.id)
                    yield entry

    def summary(self) -> str:
        self._load()
        text = summary_of(self._log.last_anchor) if self._log.last_anchor else None
        return self.read_text(SUMMARY) if text is None else text

    def anchor(self, kind: AnchorKind, summary: str, keep: Sequence[str], more: Mapping[str, object] = {}) -> Entry:
        metadata = {"kind": kind, "keep": list(keep), "version": ANCHOR_VERSION, **more}
        entry = Entry(new_id(), now(), "system", self.name, summary, ANCHOR, "system", metadata=metadata)
        self.append(entry)
        try:
            self.write_text(SUMMARY, summary)
        except StoreUnwritable as error:  # the log has it, and counts
            self._log.problems.append(LogProblem(SUMMARY, 0, error.message))
        return entry

    def undone(self) -> dict[str, list[Entry]]:
        self._load()
        return self._log.undone

    def everything(self) -> Iterator[Entry]:
        self._log.refresh()
        self._loaded = True
        # The log first: a rotation in between only adds to the archive what is already in hand.
        logged = self.logged()
        data = self._bytes(ARCHIVE)
        archived, problems = decode_lines(data, 1, ARCHIVE)
        self._log.problems += lost_lines(problems, data, self._log.content())
        seen: set[str] = set()
        for entry in (*archived, *logged):
            if entry.id not in seen:
                seen.add(entry.id)
                yield entry

    def rotate(self) -> int:
        if not self.is_held:
            raise ContextError(
                "only the holder of a context's lock may rotate its log", "take the lock around rotate()"
            )
        from cru.core.conversations.rotation import rotate

        self._loaded = True
        return rotate(self._log, self.folder / ARCHIVE)

    def has_mail(self) -> bool:
        return has_content(self.folder / INBOX)

    def inbox(self) -> InboxReading:
        from cru.core.conversations.inbox import InboxReading  # most prompts find no message

        return InboxReading(self.folder, self._log.problems.extend, self._log.sync)

    def read_text(self, name: str) -> str:
        return self._bytes(_check_text_name(name)).decode("utf-8", "replace")

    def write_text(self, name: str, text: str) -> None:
        from cru.core.base.files.atomic import replace_file

        path = self.folder / _check_text_name(name)
        with write_errors(path):
            if name == SUMMARY and not text:
                path.unlink(missing_ok=True)
            else:
                replace_file(path, text.encode("utf-8", "replace"), follow=name in LINKABLE, keep_mode=False)

    def transcript(self, entries: Iterable[Entry]) -> None:
        from cru.core.conversations.transcript import append_entries

        remaining = chain(self.visible(), *self.undone().values())
        append_entries(self.folder, entries, remaining, is_running=self.keeps_transcript)

    def close(self) -> None:
        """Give the log's file back, which the next use opens again, and the seat."""
        if self._seat is not None:
            self._seat.leave()
            self._seat = None
        if self._copy is not None:
            self._copy.close()
        self._log.close()
        self._loaded = False

    def current_name(self) -> str:
        """What it is called by now: another name if it was renamed since it was opened, "" if it was deleted."""
        here = read_meta(self.folder).get("session_id", self.session_id) if self.folder.is_dir() else ""
        return self.name if here == self.session_id else find_context(self.folder.parent, self.session_id)

    def _refuse_moved(self) -> None:
        now = self.current_name()
        if now == self.name:
            return
        hint = (
            f"it is called {now} now: cru -C {now} goes on there"
            if now
            else "it was deleted; cru -L lists those there are"
        )
        raise NoSuchContext(f"there is no context '{self.name}' any more", hint)

    def _load(self) -> None:
        if not self._loaded:
            self._log.refresh()
            self._loaded = True

    def _bytes(self, name: str) -> bytes:
        return read_if_exists(self.folder / name) or b""


def _check_text_name(name: str) -> str:
    """A file name without folders. Raises ContextError."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise ContextError(f"not the name of a text in a context: {name!r}", "use a plain file name such as todos.md")
    return name
