"""The vault of a session: opened, indexed and asked in threads, the first time that somebody needs it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cru.core.turn.parts import SessionServices
from cru.features.vault import IndexUnusable, NoEmbeddings, VaultSettings
from cru.features.vault.index.changes import ChangeKind, NoteChange
from cru.features.vault.search.modes import SearchMode, SearchResult
from cru.features.vault.vault import find_vault

if TYPE_CHECKING:
    from cru.features.vault.semantic.store import Coverage
    from cru.features.vault.vault import Vault

T = TypeVar("T")
FRESH_SECONDS = 2.0
"""So long after a look at the folder nobody looks again because of a question."""
EMBED_SECONDS = 3.0
"""So long the first search by meaning waits for notes to be embedded; then it answers, and the rest follows while nobody waits."""
PIECE_SECONDS = 0.2
"""The end of a session waits for one piece at most."""


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
        self._is_closing = False
        self._embedding: asyncio.Task[None] | None = None

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

    async def search(
        self, text: str, limit: int, mode: SearchMode | None = None, may_show: Callable[[str], bool] | None = None
    ) -> SearchResult:
        """As Vault.search_notes, once notes have had some time to be embedded. Raises as `run`, BadQuery, NoEmbeddings."""

        def look(vault: Vault) -> SearchResult:
            if (mode or vault.default_mode()) is not SearchMode.TEXT:
                self._embed(vault, EMBED_SECONDS, is_asked=mode is not None)
            return vault.search_notes(text, limit, mode, may_show)

        result = await self.run(look)
        if result.mode is not SearchMode.TEXT:
            self.embed_rest()
        return result

    def embed_rest(self) -> None:
        """Embed what is not embedded yet, in pieces, as long as the session goes on."""
        if not self._is_closing and (self._embedding is None or self._embedding.done()):
            self._embedding = asyncio.create_task(self._embed_rest(), name="cru: embed notes")

    async def refresh(self, paths: Sequence[str] = ()) -> None:
        """Read these notes again, or look at the whole folder, and tell what has changed. Raises as `run`."""

        def look(vault: Vault) -> None:
            if paths:
                vault.update_notes(paths)
            else:
                vault.update()

        await self.run(look)

    async def close(self) -> None:
        self._is_closing = True
        if self._embedding is not None:
            await asyncio.wait({self._embedding})
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

    def _embed(self, vault: Vault, seconds: float, *, is_asked: bool) -> Coverage | None:
        """None if it cannot be, as on a full disk: a search says by itself how far it goes, unless it was asked to go by meaning, which
        raises NoEmbeddings, IndexUnusable."""
        try:
            return vault.embed(seconds, stop=lambda: self._is_closing)
        except (NoEmbeddings, IndexUnusable):
            if is_asked:
                raise
            return None

    async def _embed_rest(self) -> None:
        """Ends when all is embedded, or a piece brings nothing new: notes that cannot be read wait for the next search."""
        before, vault = -1, self._vault
        while vault is not None and not self._is_closing:
            state = await asyncio.to_thread(self._embed, vault, PIECE_SECONDS, is_asked=False)
            if state is None or state.is_complete or state.embedded == before:
                return
            before = state.embedded

    def _opened(self) -> Vault:
        if self._vault is None:
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


def live_vault(services: SessionServices) -> LiveVault | None:
    """The vault of a session, if one is configured."""
    live = services.features.get("vault")
    return live if isinstance(live, LiveVault) else None
