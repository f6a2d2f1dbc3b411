"""The conversation of a task in the database of the queue, so that a worker of any machine goes on with it
(docs/decisions/fleet.md). The files of the context's folder are where a run works; this is their copy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from msgspec import Struct

from cru.core.base.files.atomic import free_name, replace_file
from cru.core.base.files.regular import make_private_folder, read_regular
from cru.core.conversations.entries import LOG
from cru.core.conversations.lock import ContextLock
from cru.features.fleet import FleetError
from cru.features.fleet.database import Database, Run
from cru.features.fleet.records import QueuedTask

RECORDS = ("trace.jsonl", "journal.jsonl", "hooks.jsonl", "inbox")
"""Beginnings of names that stay where they are: what a machine did, and messages to it."""
SETTINGS = "local.toml"
"""Stays, too: whoever writes to the queue gives no machine a mode, or programs to start."""
RECORD_FOLDERS = ("spans",)
PART = 4 << 20
"""Bytes of one row."""
MOST_PARTS = 64
"""Rows of one file, after which it is written anew at the end of a run."""
HEARTBEAT = 30


class CopyRefused(FleetError):
    """Another worker has the task by now."""


class FileState(Struct, frozen=True):
    """A file as it was copied. inode, changed: which file it was, and its mtime in ns; size: bytes; parts: rows."""

    inode: int
    changed: int
    size: int
    parts: int


class Restored(Enum):
    """What became of the files here when the copy was brought."""

    KEPT = "kept"
    BROUGHT = "brought"
    DIVERGED = "diverged"


class ContextCopy:
    """The copy of one context. All methods belong to the thread of the queue."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder
        self._context = folder.name
        self._states: dict[str, FileState] = {}

    def restore(self) -> Restored:
        """Bring what other machines did, under the context's lock. What only this machine has of the conversation stays if it goes on from
        the copy; if it goes on from something else, it is put aside. Raises ContextHeld, StoreUnwritable, QueueUnavailable."""
        with self._database.transaction() as run:
            copies = self._read(run)
        if not copies:
            return Restored.KEPT
        make_private_folder(self._folder)
        with ContextLock(self._folder, "bring its copy", HEARTBEAT):
            outcome = self._compare(b"".join(copies.get(LOG, [])))
            if outcome is Restored.DIVERGED:
                (self._folder / LOG).rename(free_name(self._folder / LOG, "diverged"))
            if outcome is not Restored.KEPT:
                for name, parts in copies.items():
                    replace_file(self._folder / name, b"".join(parts), keep_mode=False, follow=False, make_folders=True)
            self._states = {name: state for name, parts in copies.items() if (state := self._state_of(name, parts))}
        return outcome

    def copy(self, task: QueuedTask | None, worker: int, is_last: bool = False) -> None:
        """Copy what has changed since, as long as the worker has the task; None: nobody has it. Raises CopyRefused, QueueUnavailable,
        OSError."""
        states = dict(self._states)
        with self._database.transaction() as run:
            if task is not None:
                self._check_owner(run, task, worker)
            names = set(self._names())
            for name in sorted(names):
                try:
                    states[name] = self._copy_file(run, name, states.get(name), is_last)
                except FileNotFoundError:
                    names.discard(name)  # gone meanwhile
            for name in states.keys() - names:
                run(
                    "DELETE FROM cru_files WHERE context = %(context)s AND path = %(path)s",
                    context=self._context,
                    path=name,
                )
                del states[name]
        self._states = states

    def copy_first(self) -> None:
        """Copy a conversation that was here before there was a copy. Raises QueueUnavailable, OSError."""
        with self._database.transaction() as run:
            rows = run("SELECT 1 FROM cru_files WHERE context = %(context)s LIMIT 1", context=self._context)
        if not rows and (self._folder / LOG).exists():
            self.copy(None, 0)

    def _check_owner(self, run: Run, task: QueuedTask, worker: int) -> None:
        rows = run(
            "SELECT 1 FROM procrastinate_jobs WHERE id = %(job)s AND worker_id = %(worker)s AND status = 'doing' FOR UPDATE",
            job=task.job,
            worker=worker,
        )
        if not rows:
            raise CopyRefused("another worker has this task by now")

    def _copy_file(self, run: Run, name: str, before: FileState | None, is_last: bool) -> FileState:
        path = self._folder / name
        status = path.stat()
        if before is not None and (status.st_ino, status.st_mtime_ns, status.st_size) == (
            before.inode,
            before.changed,
            before.size,
        ):
            return before
        grows = before is not None and name.endswith(".jsonl") and status.st_ino == before.inode
        if before is None or not grows or status.st_size < before.size or (is_last and before.parts > MOST_PARTS):
            run(
                "DELETE FROM cru_files WHERE context = %(context)s AND path = %(path)s",
                context=self._context,
                path=name,
            )
            before = FileState(status.st_ino, 0, 0, 0)
        size, parts = before.size, before.parts
        with path.open("rb") as file:
            file.seek(size)
            while (data := file.read(PART)) or not parts:
                run(
                    "INSERT INTO cru_files VALUES (%(context)s, %(path)s, %(part)s, %(data)s) "
                    "ON CONFLICT (context, path, part) DO UPDATE SET data = excluded.data",
                    context=self._context,
                    path=name,
                    part=parts,
                    data=data,
                )
                size, parts = size + len(data), parts + 1
        return FileState(status.st_ino, status.st_mtime_ns, size, parts)

    def _names(self) -> Iterator[str]:
        """Of the files of the conversation, those of its sub-agents too, from the context's folder."""
        for at, folders, files in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith(".") and name not in RECORD_FOLDERS]
            for name in files:
                path = Path(at, name)
                inner = path.relative_to(self._folder)
                if _is_carried(inner) and _is_utf8(str(path)) and path.is_file() and not path.is_symlink():
                    yield str(inner)

    def _read(self, run: Run) -> dict[str, list[bytes]]:
        """The parts of each file that may come from another machine. Raises FleetError for a name that leads out of the folder."""
        rows = run(
            "SELECT path, data FROM cru_files WHERE context = %(context)s ORDER BY path, part", context=self._context
        )
        copies: dict[str, list[bytes]] = {}
        for path, data in rows:
            if os.path.isabs(path) or ".." in Path(path).parts:
                raise FleetError(f"the copy of {self._context} has a file {path!r}, which leads out of it")
            if _is_carried(Path(path)):
                copies.setdefault(path, []).append(bytes(data))
        return copies

    def _compare(self, copy: bytes) -> Restored:
        try:
            own = read_regular(self._folder / LOG)
        except FileNotFoundError:
            own = b""
        if own.startswith(copy):
            return Restored.KEPT
        return Restored.BROUGHT if copy.startswith(own) else Restored.DIVERGED

    def _state_of(self, name: str, parts: list[bytes]) -> FileState | None:
        """Of a file whose beginning here is its copy; None: it is copied anew."""
        try:
            status, data = (self._folder / name).stat(), read_regular(self._folder / name)
        except FileNotFoundError:
            return FileState(0, 0, 0, 0)  # gone here: its rows go, too
        copy = b"".join(parts)
        if not data.startswith(copy):
            return None
        changed = status.st_mtime_ns if len(data) == len(copy) else 0
        return FileState(status.st_ino, changed, len(copy), len(parts))


def _is_carried(path: Path) -> bool:
    """Whether a file of the context's folder goes to other machines."""
    *folders, name = path.parts
    stays = any(folder.startswith(".") or folder in RECORD_FOLDERS for folder in folders)
    return not stays and name.casefold() != SETTINGS and not name.startswith((".", *RECORDS))


def _is_utf8(path: str) -> bool:
    """No text of a database can hold another name; cru gives none."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
