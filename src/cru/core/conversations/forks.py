"""A context that begins as a copy of another one: it appears whole or not at all, and keeps what it was forked from."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files.regular import PRIVATE, make_private_folder, write_all
from cru.core.base.values.messages import Entry
from cru.core.conversations import NameTaken, write_errors
from cru.core.conversations.entries import ARCHIVE, LOG, REDO, UNDO, anchor_keeps, encode, new_id, now
from cru.core.conversations.identity import FORKING, META, ORIGIN, VERSION, check_name, known_origin, read_meta
from cru.core.conversations.log import Log
from cru.core.conversations.rotation import rotate
from cru.core.conversations.state import CONTEXTS, add_context, load_state

PARENT = "forked_from"
KEPT_WITH_MESSAGES = ("images", "tool_cache", "local.toml", "system_prompt.md")
"""What messages refer to, and how the context answers."""
KEPT_OF_NOW = ("todos.md", "goals.md")
"""What belongs to the end of the conversation."""
_LONGEST_STEM = 180
_AT_ONCE = 1000
"""Entries that are written with one call."""


class ForkOrigin(Struct, frozen=True):
    """What a context was forked from.

    session_id: the other context's
    name: what that was called then
    turn: the last turn that was copied, from 1
    prompt: the id of that turn's prompt
    """

    session_id: str
    name: str
    turn: int
    prompt: str = ""


def read_origin(folder: Path) -> ForkOrigin | None:
    """What the context in `folder` was forked from; None if it was not, or if that cannot be understood. Raises StoreUnreadable."""
    try:
        return msgspec.convert(read_meta(folder).get(PARENT), ForkOrigin)
    except msgspec.ValidationError:
        return None


def create_fork(
    home: Path, parent: Path, name: str, origin: ForkOrigin, entries: Iterable[Entry], *, is_whole: bool
) -> str:
    """Make the context `name` ("" = one after its parent) out of these entries. Returns its name. is_whole: it goes as far as its parent
    does. Who calls it holds the parent's lock. Raises BadName, NameTaken, StoreUnwritable, StoreUnreadable."""
    _refuse_taken(home, name)
    sweep_forks(home)
    with _staging_folder(home) as folder:
        with write_errors(folder):
            _write_log(folder, list(entries))
            for file in (*KEPT_WITH_MESSAGES, *(KEPT_OF_NOW if is_whole else ())):
                _copy(parent / file, folder / file)
            _write_meta(folder, parent, origin)
        name = _appear(home, folder, name, parent.name)
    add_context(home, name, load_state(home).outside)
    return name


def sweep_forks(home: Path) -> None:
    """Delete what a kill left of a fork that was under way."""
    for folder in (home / CONTEXTS).glob(f"{FORKING}*"):
        with suppress(OSError):  # it is being made, or another process is at the same
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(fd)


@contextmanager
def _staging_folder(home: Path) -> Iterator[Path]:
    """A folder that nobody takes for a context; the lock says that it is being made. It is gone afterwards, unless it got a name."""
    folder = home / CONTEXTS / f"{FORKING}{os.urandom(4).hex()}"
    with write_errors(folder):
        make_private_folder(folder)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(fd)
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_taken(home: Path, name: str) -> None:
    if name and os.path.lexists(home / CONTEXTS / check_name(name)):
        raise NameTaken(f"there is a context '{name}' already", "choose another name, or delete that one first")


def _appear(home: Path, folder: Path, name: str, parent: str) -> str:
    """The one step that makes a context of it. A name that nobody chose is the next one that is free."""
    listed = load_state(home).names

    def is_free(candidate: str) -> bool:
        return candidate not in listed and not os.path.lexists(home / CONTEXTS / candidate)

    for candidate in (name,) if name else filter(is_free, _names(parent)):
        _refuse_taken(home, candidate)
        with write_errors(home / CONTEXTS / candidate):
            folder.rename(home / CONTEXTS / candidate)
            _sync(home / CONTEXTS)
        return candidate
    raise AssertionError("there are names without end")


def _names(parent: str) -> Iterator[str]:
    stem = parent[:_LONGEST_STEM]
    head, _, number = stem.rpartition("-fork")
    if head and (not number or number.removeprefix("-").isdigit()):
        stem = head
    yield f"{stem}-fork"
    yield from (f"{stem}-fork-{number}" for number in count(2))


def _write_log(folder: Path, entries: list[Entry]) -> None:
    """What the last archiving or compaction left behind goes into the archive, as it would have done there."""
    last = next((at for at in range(len(entries) - 1, -1, -1) if _sets_aside(entries[at])), -1)
    if last >= 0:
        _append(folder / LOG, entries[: last + 1])
        log = Log(folder / LOG)
        rotate(log, folder / ARCHIVE)
        log.close()
    _append(folder / LOG, entries[last + 1 :])


def _sets_aside(entry: Entry) -> bool:
    return anchor_keeps(entry) is not None and entry.metadata.get("kind") not in (UNDO, REDO)


def _append(path: Path, entries: list[Entry]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
    try:
        for first in range(0, len(entries), _AT_ONCE):
            write_all(fd, b"".join([encode(entry) for entry in entries[first : first + _AT_ONCE]]))
        os.fsync(fd)
    finally:
        os.close(fd)


def _copy(source: Path, target: Path) -> None:
    """What is not there is left out; a link stays one."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    elif os.path.lexists(source):
        shutil.copy2(source, target, follow_symlinks=False)


def _write_meta(folder: Path, parent: Path, origin: ForkOrigin) -> None:
    meta: dict[str, object] = {"created_at": now(), "session_id": new_id(), "version": VERSION}
    if project := known_origin(parent):
        meta[ORIGIN] = project
    data = msgspec.json.encode({**meta, PARENT: msgspec.to_builtins(origin)})
    fd = os.open(folder / META, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # not every file system can
            os.fsync(fd)
    finally:
        os.close(fd)
