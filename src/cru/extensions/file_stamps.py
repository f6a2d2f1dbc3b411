"""What tells that a plugin has changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cru.extensions.discovery.files import DiscoveredPlugin

SKIPPED = ("__pycache__", "node_modules")
Stamp = tuple[Any, ...]


def stamp_of(found: DiscoveredPlugin) -> Stamp:
    """How it was found, and time and size of each of its files; hidden ones do not count."""
    return (found, *(_state(file) for file in files_of(found)))


def files_of(found: DiscoveredPlugin) -> tuple[Path, ...]:
    """The files of a plugin: all below a folder of its own."""
    own = found.manifest is not None or found.folder.name == found.name
    return tuple(sorted(_below(found.folder))) if own and not found.module else found.files


def _below(folder: Path) -> list[Path]:
    files: list[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.startswith(".")]
        files += [Path(root, name) for name in names if not name.startswith(".")]
    return files


def _state(file: Path) -> tuple[str, int, int]:
    try:
        about = file.stat()
    except OSError:
        return (str(file), 0, 0)
    return (str(file), about.st_mtime_ns, about.st_size)
