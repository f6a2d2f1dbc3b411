"""Whether there may be command hooks at all, told without loading their room: a start looks at a few files and goes on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from cru.core.base.files import MAX_BYTES, decode_json
from cru.core.base.files.regular import read_regular
from cru.core.hooks import HOOKS_FILE, MAX_CONFIG_BYTES, HookLocations
from cru.core.hooks.dialects import FOOTPRINTS

if TYPE_CHECKING:
    from cru.core.hooks.model.entry import Layer

HookPolicy = Literal["trusted", "none", "all"]
POLICIES: tuple[HookPolicy, ...] = ("trusted", "none", "all")
FilesStamp = tuple[tuple[str, int, int, int], ...]
"""Of each file that is there: path, time, size and number."""

WORDS = (
    b"hook", b"pretooluse", b"notify", b"permissions", b'"env"', b'"exclude"', b"excludetools", b'"core"', b"coretools", b"\\u", b"\0",
)  # fmt: skip
"""A file without any of these holds no hooks and no rules: their names, letters written as numbers, and encodings that are not UTF-8. So a
broken file without them is its own program's affair."""
_TABLE = re.compile(rb"^[ \t]*\[+[ \t]*[\"']?(\w+)", re.MULTILINE)
"""The first name of a table in TOML."""

SECTIONS = ("hooks", "permissions")
"""Keys of a file under which guards stand, in any dialect."""


def find_places(where: HookLocations) -> Iterator[tuple[str, Layer, Path]]:
    """(dialect, layer, path) of every file that may hold hooks, whether it is there or not."""
    for dialect, footprint in FOOTPRINTS.items():
        for layer, path in footprint.places(where):
            yield dialect, layer, path


def stamp_files(where: HookLocations) -> FilesStamp:
    """The files that are there, and what tells that one has changed."""
    stamps = []
    for path in map(os.fspath, (*(path for _, _, path in find_places(where)), where.home / "trust.json")):
        try:
            status = os.stat(path)
        except OSError as error:
            if _is_meant(path, error):  # who reads it says what is wrong
                stamps.append((path, 0, 0, 0))
            continue
        stamps.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(stamps)


def _is_meant(path: str, error: OSError) -> bool:
    """Whether a file that nobody can look at is one that somebody meant to be there: a link to nothing, in such a folder, or locked up."""
    return isinstance(error, PermissionError) or os.path.lexists(path) or is_dead_link(os.path.dirname(path))


def is_dead_link(folder: str | Path) -> bool:
    """Whether a folder is a link to what is not there (not mounted, moved away)."""
    return os.path.islink(folder) and not os.path.exists(folder)


def find_dialects(where: HookLocations, stamp: FilesStamp) -> list[str]:
    """Whose files are there and may hold hooks, or held some that a person accepted."""
    present = {path for path, *_ in stamp}
    places = [(name, os.fspath(path)) for name, _, path in find_places(where)]
    dialects = [name for name, path in places if path in present and _may_hold(path)]
    return list(dict.fromkeys([*dialects, *_accepted(where)]))


def _accepted(where: HookLocations) -> list[str]:
    """Dialects of which trust.json names a file of this project."""
    try:
        data = read_regular(where.home / "trust.json", MAX_BYTES)
    except OSError:
        return []  # who reads it properly says what is wrong
    if b'"accepted"' not in data:
        return []
    return [
        name
        for name, layer, path in find_places(where)
        if layer == "project" and any(_quoted(file) in data for file in (os.path.realpath(path), _standing(path)))
    ]


def _standing(path: Path) -> str:
    """The file by its real folder and its own name."""
    return os.path.join(os.path.realpath(path.parent), path.name)


def _quoted(path: str) -> bytes:
    return msgspec.json.encode(path.encode("utf-8", "replace").decode())


def _may_hold(path: str) -> bool:
    """Never False for a file that a reader would find hooks in, or could not read."""
    try:
        data = read_regular(path, MAX_CONFIG_BYTES).lower()
    except OSError:
        return True  # who reads it properly says what is wrong
    if any(word in data for word in WORDS) or path.endswith(HOOKS_FILE):
        return True
    return _is_odd(data) if path.endswith(".json") else _has_misprint(data)


def _has_misprint(data: bytes) -> bool:
    """Return whether a table of a TOML file may be a misspelt `hooks`."""
    names = set(_TABLE.findall(data))
    if not names:
        return False
    from cru.core.base.config.closest import (
        is_misprint,  # at a start: most files have no table, or one that is read anyway
    )

    return any(is_misprint(name.decode("utf-8", "replace"), "hooks") for name in names)


def _is_odd(data: bytes) -> bool:
    """Whether it is no plain JSON object, or has a key that may be a misspelt one of hooks or rules."""
    from cru.core.base.config.closest import is_misprint

    try:
        keys = decode_json(data, dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return True
    return any(is_misprint(key, name) for key in keys for name in SECTIONS)
