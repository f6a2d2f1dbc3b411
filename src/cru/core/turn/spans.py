"""The texts of requests in `spans/`: those that were not used for the longest time go when there are too many, or when they are too old."""

from __future__ import annotations

import os
import time
from pathlib import Path

from cru.core.conversations.line_file import RecordLimits

HALF_WRITTEN = 60.0
"""Seconds after which nobody writes a text any more: a kill has left it half-written."""


def sweep_spans(folder: Path, limits: RecordLimits) -> None:
    """Remove what is too old, then the least recently used until three quarters of what the records may have are left. Raises OSError."""
    now = time.time()
    room = limits.bytes * limits.files
    oldest = now - limits.seconds if limits.seconds else 0.0
    files = _list_files(folder)
    if sum(size for _, size, _ in files) > room:
        room = room * 3 // 4
    for used, size, name in files:
        is_part = "." in name
        room -= size
        if room < 0 or used < oldest or (is_part and used < now - HALF_WRITTEN):
            (folder / name).unlink(missing_ok=True)


def _list_files(folder: Path) -> list[tuple[float, int, str]]:
    """When each was used, its bytes and its name, the last used first."""
    files: list[tuple[float, int, str]] = []
    for name in os.listdir(folder) if folder.is_dir() else ():
        try:
            status = os.stat(folder / name)
        except FileNotFoundError:
            continue  # another process makes room at the same time
        files.append((status.st_mtime, status.st_size, name))
    return sorted(files, reverse=True)
