"""The version of a plugin that was loaded last, kept in memory: what holds on when its files cannot be loaded as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from cru.extensions.discovery.files import DiscoveredPlugin
from cru.extensions.file_stamps import files_of

CODE = (".lua", ".py", ".json", ".toml", ".yaml", ".yml")
FileCopy = Mapping[Path, bytes]


def copy_of(found: DiscoveredPlugin) -> FileCopy:
    """The files that a plugin may be made of; of an installed package nothing, nor of a program, which is run where it lies."""
    made: dict[Path, bytes] = {}
    for file in () if found.module or found.kind == "executable" else files_of(found):
        if file.suffix in CODE or file in found.files:
            try:
                made[file] = file.read_bytes()
            except OSError:  # it goes just now: whoever loads it says so
                continue
    return made


def write_copy(found: DiscoveredPlugin, copy: FileCopy, folder: Path) -> DiscoveredPlugin:
    """The same plugin, below another folder. Raises OSError."""
    moved = {file: folder / found.folder.name / file.relative_to(found.folder) for file in copy}
    for file, to in moved.items():
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(copy[file])
    return replace(found, folder=folder / found.folder.name, files=tuple(moved[file] for file in found.files))


def has_empty_files(found: DiscoveredPlugin) -> bool:
    """Whether nothing stands in its files: somebody is writing them just now."""
    return all(not content.strip() for file, content in copy_of(found).items() if file in found.files)
