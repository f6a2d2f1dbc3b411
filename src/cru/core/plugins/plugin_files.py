"""The files of a plugin: what tells that it has changed, and a copy of the version that was loaded last.

The copy is kept in memory: it is what holds on when the files cannot be loaded as they are now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from cru.core.base.files import MAX_BYTES
from cru.core.base.files.atomic import write_private
from cru.core.base.files.regular import make_private_folder, read_regular
from cru.core.plugins.discovery.files import DiscoveredPlugin

SKIPPED = ("__pycache__", "node_modules")
CODE = (".lua", ".fnl", ".py", ".json", ".toml", ".yaml", ".yml")
FileStamp = tuple[str, int, int]
"""Path, modification time in nanoseconds, size in bytes."""
Stamp = tuple[DiscoveredPlugin | FileStamp, ...]
FileCopy = Mapping[Path, bytes]


def stamp_of(plugin: DiscoveredPlugin) -> Stamp:
    """How it was found, and time and size of each of its files; hidden ones do not count."""
    return (plugin, *(_file_stamp(file) for file in files_of(plugin)))


def files_of(plugin: DiscoveredPlugin) -> tuple[Path, ...]:
    """The files of a plugin: all below a folder of its own."""
    has_folder = plugin.manifest is not None or plugin.folder.name == plugin.name
    return tuple(sorted(_files_below(plugin.folder))) if has_folder and not plugin.module else plugin.files


def copy_of(plugin: DiscoveredPlugin) -> FileCopy:
    """The files that a plugin may be made of; of an installed package nothing, nor of a program, which is run where it lies."""
    copy: dict[Path, bytes] = {}
    for file in () if plugin.module or plugin.kind == "executable" else files_of(plugin):
        if file in plugin.files or file.suffix in CODE:
            try:
                copy[file] = read_regular(file, MAX_BYTES)
            except OSError:  # it goes just now: whoever loads it says so
                continue
    return copy


def write_copy(plugin: DiscoveredPlugin, copy: FileCopy, folder: Path) -> DiscoveredPlugin:
    """The same plugin, below another folder. Raises OSError."""
    moved = {file: folder / plugin.folder.name / file.relative_to(plugin.folder) for file in copy}
    for file, target in moved.items():
        make_private_folder(target.parent)
        write_private(target, copy[file])
    return replace(plugin, folder=folder / plugin.folder.name, files=tuple(moved[file] for file in plugin.files))


def has_empty_files(plugin: DiscoveredPlugin) -> bool:
    """Whether nothing stands in its files: somebody is writing them just now."""
    return all(not content.strip() for file, content in copy_of(plugin).items() if file in plugin.files)


def describe_encoding(error: UnicodeDecodeError) -> str:
    """Where a file is no UTF-8."""
    line = error.object.count(b"\n", 0, error.start) + 1
    return f"line {line}: not UTF-8 (byte 0x{error.object[error.start]:02x}); save the file as UTF-8"


def _files_below(folder: Path) -> list[Path]:
    files: list[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.startswith(".")]
        files += [Path(root, name) for name in names if not name.startswith(".")]
    return files


def _file_stamp(file: Path) -> FileStamp:
    try:
        status = file.stat()
    except OSError:
        return (str(file), 0, 0)
    return (str(file), status.st_mtime_ns, status.st_size)
