"""What commands change: the work tree is taken in before the first command of a turn, and looked at behind each of them, while the model
answers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from cru.revisions import StoreFailed
from cru.revisions.records import (
    ANY_MODE,
    ChangeOrigin,
    CommandLook,
    FileChange,
    FileKind,
    PathState,
    make_change,
)
from cru.revisions.store import RevisionStore
from cru.revisions.work_tree import IndexedFile, LookFailed, PrivateIndex, read_head

MOST_FILES = 1000
SHOWN = 200
LINK = 0o120000


class CommandWatcher:
    """Of one session. What cannot be found out is written down with its reason, and `/undo` names it."""

    def __init__(self, store: RevisionStore, index: PrivateIndex, warn: Callable[[StoreFailed], object]) -> None:
        self._store = store
        self._index = index
        self._warn = warn
        self._prompt: str | None = None
        self._why = ""
        self._head = ""
        self._since = 0.0
        self._running = 0
        self._is_stale = True
        self._look: asyncio.Task[None] | None = None

    @property
    def is_looking(self) -> bool:
        return self._look is not None and not self._look.done()

    async def before(self, prompt: str) -> None:
        """A command is about to run; what lies there now is what it is compared with."""
        await self.settle()
        is_first = self._prompt != prompt and not self._running
        self._running += 1
        if not is_first or self._is_given_up:
            return
        self._prompt = prompt
        await self._take_in()

    def after(self, origin: ChangeOrigin, command: str, why: str = "") -> None:
        """It has ended. why: it may change things yet, or nobody can say what it did"""
        self._running -= 1
        self._look = asyncio.create_task(self._look_behind(self._look, CommandLook(origin, command[:SHOWN], why)))

    async def settle(self) -> None:
        """Wait until all that ran has been looked at, what ends meanwhile, too."""
        while (look := self._look) is not None and not look.done():
            await asyncio.wait([look])
            if not look.cancelled():
                look.result()  # what raises there is a defect, and must not be lost

    async def close(self) -> None:
        await self.settle()
        self._index.remove()

    @property
    def _is_given_up(self) -> bool:
        """What took too long once is not tried again: each first command of a turn would wait for it."""
        return bool(self._why)

    async def _take_in(self) -> None:
        try:
            self._head = read_head(self._index.places)
            self._since = time.time()
            await self._index.take_in()
        except LookFailed as error:
            self._why = error.message
            self._index.remove()

    async def _look_behind(self, earlier: asyncio.Task[None] | None, look: CommandLook) -> None:
        if earlier is not None and not earlier.done():
            await asyncio.wait([earlier])
        has_moved = bool(self._head) and self._head != read_head(self._index.places)
        try:
            changes, why = await self._try_to_find(look.origin)
            look = replace(look, why=look.why or why, moved_head=has_moved, time=round(time.time(), 3))
            with self._store.writing():
                self._store.record(*changes)
                self._store.record_look(look)
        except StoreFailed as error:
            self._warn(error)
        if not self._is_given_up and (self._is_stale or has_moved):
            await self._take_in()

    async def _try_to_find(self, origin: ChangeOrigin) -> tuple[list[FileChange], str]:
        """What was changed, and why not all of that is known."""
        if self._is_given_up:
            return [], self._why
        try:
            return await self._find_changes(origin), ""
        except LookFailed as error:
            return [], error.message

    async def _find_changes(self, origin: ChangeOrigin) -> list[FileChange]:
        """What is not as it was taken in, or as a tool has written it since. Raises LookFailed, StoreFailed."""
        self._is_stale = True
        files = await self._index.changed()
        if len(files) > MOST_FILES:
            raise LookFailed(f"{len(files):,} files were changed")
        contents = await self._index.contents(files, self._store.settings.max_total_mb << 19)
        self._is_stale = bool(files)
        return await asyncio.to_thread(self._compare, files, contents, origin)

    def _compare(
        self, files: Sequence[IndexedFile], contents: Mapping[str, bytes], origin: ChangeOrigin
    ) -> list[FileChange]:
        """Beside the model's answer, in a thread: there may be many files. Raises StoreFailed."""
        written = {c.file: c.after for c in self._store.changes() if c.time >= self._since}
        by_name = {file.file: file for file in files}
        changes = []
        with self._store.writing():
            for name in (*by_name, *(name for name in written if name not in by_name)):
                after = self._store.keep(name)
                before = written.get(name) or self._before(by_name[name], contents, after)
                if not before.is_same(after):
                    changes.append(make_change(name, before, after, origin))
        return changes

    def _before(self, file: IndexedFile, contents: Mapping[str, bytes], after: PathState) -> PathState:
        if not file.object:
            return PathState(FileKind.MISSING, folders=file.folders)
        data = contents.get(file.object)
        if data is None:  # git has it in another form, or it is gone
            return PathState(FileKind.FILE)
        if file.mode == LINK:
            return replace(self._store.keep_data(data, ANY_MODE), kind=FileKind.LINK)
        return self._store.keep_data(data, _mode_before(file.mode, after))


def _mode_before(indexed: int, after: PathState) -> int:
    """git knows no more of the permission bits than whether a file can be executed."""
    is_program = bool(indexed & 0o111)
    if after.kind is not FileKind.FILE:
        return 0o755 if is_program else ANY_MODE
    bits = after.mode | (after.mode & 0o444) >> 2 if is_program else after.mode & ~0o111
    return after.mode if is_program == bool(after.mode & 0o111) else bits


def make_watcher(
    store: RevisionStore, root: os.PathLike[str], path: str, warn: Callable[[StoreFailed], object]
) -> CommandWatcher | None:
    """None if commands are not to be looked at, or the project is in no git work tree."""
    from pathlib import Path

    from cru.revisions.work_tree import find_git

    places = find_git(Path(root)) if store.settings.commands else None
    if places is None:
        return None
    return CommandWatcher(
        store, PrivateIndex(places, Path(root), store.folder, path, store.settings.command_seconds), warn
    )
