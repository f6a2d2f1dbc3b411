"""The vault of a session: opened, indexed and asked in threads, the first time that somebody needs it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cru.vault import VaultSettings
from cru.vault.index.changes import ChangeKind, NoteChange

if TYPE_CHECKING:
    from cru.vault.vault import Vault

T = TypeVar("T")
FRESH_SECONDS = 2.0
"""So long after a look at the folder nobody looks again because of a question."""


async def _tell_nobody(changes: Sequence[NoteChange]) -> None:
    pass


class LiveVault:
    """root: the folder; name: what scripts call it
    tell: hears what has changed in it; of what changed before it was opened, only what is gone
    """

    def __init__(self, settings: VaultSettings, home: Path) -> None:
        self.root = Path(settings.path).expanduser()
        self.name = settings.name or self.root.name
        self.tell: Callable[[Sequence[NoteChange]], Awaitable[None]] = _tell_nobody
        self._settings = settings
        self._home = home
        self._vault: Vault | None = None
        self._looked = 0.0
        self._untold: list[NoteChange] = []
        self._lock = threading.RLock()

    @property
    def is_open(self) -> bool:
        return self._vault is not None

    async def run(self, work: Callable[[Vault], T]) -> T:
        """What `work` gives for a vault that is up to date; what it changed is told. Raises what `work` does, NoVault, BadGlob,
        IndexUnusable."""
        try:
            return await asyncio.to_thread(self._run, work)
        finally:
            await self._tell()

    async def refresh(self, paths: Sequence[str] = ()) -> None:
        """Read these notes again, or look at the whole folder, and tell what has changed. Raises as `run`."""

        def look(vault: Vault) -> None:
            if paths:
                vault.update_notes(paths)
            else:
                vault.update()

        await self.run(look)

    async def close(self) -> None:
        if self._vault is not None:
            await asyncio.to_thread(self._vault.close)

    def _run(self, work: Callable[[Vault], T]) -> T:
        with self._lock:
            vault = self._opened()
            if time.monotonic() - self._looked > FRESH_SECONDS:
                vault.update()
                self._looked = time.monotonic()
            try:
                return work(vault)
            finally:
                self._untold += vault.take_changes()

    def _opened(self) -> Vault:
        if self._vault is None:
            from cru.vault.vault import find_vault

            vault = find_vault(self._settings, self._home)
            vault.update()
            self._looked = time.monotonic()
            self._untold += [change for change in vault.take_changes() if change.kind is ChangeKind.DELETED]
            self._vault = vault
        return self._vault

    async def _tell(self) -> None:
        with self._lock:
            untold, self._untold = self._untold, []
        if untold:
            await self.tell(untold)
