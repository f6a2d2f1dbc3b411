"""Keeps files just before a session changes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cru.core.base.files import unsynced
from cru.core.revisions import StoreFailed
from cru.core.revisions.records import ANY_MODE, UNKNOWN, ChangeOrigin, FileChange, FileKind, make_change
from cru.core.revisions.store import RevisionStore

LEAST = 1024
"""Bytes that a change counts for at least."""

if TYPE_CHECKING:
    from cru.core.revisions.commands import CommandWatcher


class ChangeKeeper:
    """What one session changes. What cannot be kept is told once, and does not keep anybody from changing it: `/undo` names it.

    watcher: looks behind commands, once one has run
    """

    def __init__(self, store: RevisionStore, warn: Callable[[str], object]) -> None:
        self.store = store
        self._warn = warn
        self.watcher: CommandWatcher | None = None
        self._is_told = False
        self._wrote = 0
        if self.store.is_overfull():
            self.clean()

    def keep(self, path: str, data: bytes, origin: ChangeOrigin) -> None:
        """A file is about to have exactly this content: that and how it is now are kept before it is touched."""
        try:
            with self.store.writing():
                before = self.store.keep(path)
                mode = before.mode if before.kind is FileKind.FILE else ANY_MODE
                after = self.store.keep_data(data, mode)
                self.store.record(make_change(path, before, after, origin))
        except StoreFailed as error:
            self._tell(error)
        else:
            self._count(before.size + len(data))

    def begin(self, paths: Sequence[str], origin: ChangeOrigin) -> list[FileChange]:
        """Files that something may change; `end` says what became of them."""
        try:
            with self.store.writing():
                begun = [make_change(path, self.store.keep(path), UNKNOWN, origin) for path in paths]
                self.store.record(*begun)
        except StoreFailed as error:
            self._tell(error)
            return []
        self._count(sum(change.before.size for change in begun))
        return begun

    def end(self, begun: Sequence[FileChange]) -> None:
        try:
            with self.store.writing():
                ended = [replace(change, after=self.store.keep(change.file)) for change in begun]
                self.store.record(*ended)
        except StoreFailed as error:
            self._tell(error)
            return
        unsynced.update(change.file for change in ended)
        self._count(sum(change.after.size for change in ended))

    def _count(self, size: int) -> None:
        """A long session cleans up before its end."""
        self._wrote += max(size, LEAST)
        if self._wrote > self.store.settings.max_total_mb << 18:
            self.clean()

    def watch_commands(self, root: Path, path: str) -> CommandWatcher | None:
        """What looks behind commands; None if that cannot be. path: where git is looked for"""
        if self.watcher is None:
            from cru.core.revisions.commands import make_watcher

            self.watcher = make_watcher(self.store, root, path, self._tell)
        return self.watcher

    @property
    def has_failed(self) -> bool:
        """Whether something could not be recorded in this session."""
        return self._is_told

    @property
    def is_looking(self) -> bool:
        """Whether it is not known yet what a command changed."""
        return self.watcher is not None and self.watcher.is_looking

    def begin_look(self) -> None:
        """Look behind the commands that have ended now: the turn is over."""
        if self.watcher is not None:
            self.watcher.begin_look()

    async def settle(self) -> None:
        """Wait until all that ran has been looked at."""
        if self.watcher is not None:
            await self.watcher.settle()

    async def close(self) -> None:
        """What is too old or too much goes."""
        if self.watcher is not None:
            await self.watcher.close()
        self.clean()

    def clean(self) -> None:
        self._wrote = 0
        try:
            self.store.clean(time.time())
        except StoreFailed as error:
            self._tell(error)

    def _tell(self, error: StoreFailed) -> None:
        if not self._is_told:
            self._is_told = True
            self._warn(f"what is changed from now on may not be taken back by /undo: {error.message}")
