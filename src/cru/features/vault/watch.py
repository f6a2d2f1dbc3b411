"""Tells what changes in the folder while cru runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from msgspec import Struct

from cru.features.vault.notes import NOTE_SUFFIXES

DEBOUNCE_MS = 300
MANY = 200
"""Changes at once from which on the whole folder is looked at instead."""


class FileEvent(Struct, frozen=True):
    """A file below the vault that appeared, changed or went. kind: created, modified, deleted"""

    path: str
    kind: str


async def watch_vault(
    root: Path, stop: asyncio.Event, is_watched: Callable[[str], bool]
) -> AsyncIterator[list[FileEvent]]:
    """Changes, collected until nothing has changed for DEBOUNCE_MS, until `stop`. Uses the system's notifications (`watchfiles`).

    is_watched: by path below the vault
    """
    from watchfiles import Change, awatch

    kinds = {Change.added: "created", Change.modified: "modified", Change.deleted: "deleted"}
    real = root.resolve()
    async for changes in awatch(real, stop_event=stop, debounce=DEBOUNCE_MS * 10, step=DEBOUNCE_MS, watch_filter=None):
        events = []
        for change, path in sorted(changes, key=lambda each: each[1]):
            below = _below(real, path)
            if below and is_watched(below):
                events.append(FileEvent(below, kinds[change]))
        if events:
            yield events


def _below(root: Path, path: str) -> str:
    """ "" for what is hidden or is not below it."""
    try:
        below = Path(path).relative_to(root)
    except ValueError:
        return ""
    return "" if any(part.startswith(".") for part in below.parts) else below.as_posix()


def is_note(path: str) -> bool:
    return path.lower().endswith(NOTE_SUFFIXES)
