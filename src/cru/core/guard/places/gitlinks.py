"""Submodules of a work tree as its index has them: in each of them `git status` reads settings, and runs what they name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from cru.core.base.files.regular import read_regular
from cru.core.guard.places.git_runs import git_folder

LARGEST = 256 << 20
"""Bytes of an index."""
MOST = 1000
"""Submodules that are looked at."""
_MODE = b"\0\0\xe0\0"
"""160000, in octal."""
_HEAD, _EXTENDED, _LENGTH = 12, 0x4000, 0x0FFF


def find_gitlinks(root: str) -> list[str]:
    """Where submodules are or would be, those in submodules as well; absolute. Raises OSError if an index cannot be read."""
    places: dict[str, None] = {}
    waiting = [root]
    while waiting and len(places) < MOST:
        tree = waiting.pop()
        inner = [os.path.join(tree, name) for name in _names(tree)]
        waiting += [place for place in inner if place not in places]
        places |= dict.fromkeys(inner)
    return list(places)[:MOST]


def is_tracked(root: str, name: str) -> bool:
    """Return whether the index has a file of this name. One that compresses names (version 4) says no."""
    file = os.path.join(git_folder(root), "index")
    try:
        about = os.stat(file)
        return _has_entry(file, name, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    except OSError:
        return False


@lru_cache(maxsize=256)
def _has_entry(path: str, name: str, *stamps: int) -> bool:
    encoded = os.fsencode(name)
    flags = len(encoded).to_bytes(2, "big")  # of a file that is in no conflict
    return flags + encoded + b"\0" in read_regular(path, LARGEST)


def _names(root: str) -> list[str]:
    folder = git_folder(root)
    if not folder or not os.path.isdir(folder):
        return []
    files = [Path(folder, "index"), *Path(folder).glob("sharedindex.*")]
    names: list[str] = []
    for file in files:
        try:
            about = file.stat()
        except FileNotFoundError:
            continue
        names += _names_in(os.fspath(file), about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    return names


@lru_cache(maxsize=64)
def _names_in(path: str, *stamps: int) -> tuple[str, ...]:
    """stamps: by which it is known that the file is as it was"""
    data = read_regular(path, LARGEST)
    if _MODE not in data or data[:4] != b"DIRC":
        return ()
    names: dict[str, None] = {}
    for size in (
        20,
        32,
    ):  # of names of objects; which one it is stands elsewhere, and the other reading finds nothing that is there
        for name in _read_entries(data, size):
            if name and not name.startswith("/") and ".." not in name.split("/"):
                names[name] = None
    return tuple(names)


def _read_entries(data: bytes, object_size: int) -> Iterator[str]:
    """Names of entries that are submodules, as far as the index can be read (gitformat-index of git)."""
    version, number = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    place, name = _HEAD, b""
    for _ in range(number):
        begin = place
        flags_at = begin + 40 + object_size
        flags = int.from_bytes(data[flags_at : flags_at + 2], "big")
        name_at = flags_at + (4 if flags & _EXTENDED and version >= 3 else 2)
        if version == 4:
            drop, name_at = _read_number(data, name_at)
            name = name[: len(name) - drop] if drop <= len(name) else b""
        end = data.find(b"\0", name_at)
        if end < 0 or name_at >= len(data):
            return
        name = name + data[name_at:end] if version == 4 else data[name_at:end]
        if len(name) != flags & _LENGTH and flags & _LENGTH != _LENGTH:  # no entry, or of another size
            return
        if data[begin + 24 : begin + 28] == _MODE:
            yield os.fsdecode(name)
        place = end + 1 if version == 4 else begin + ((end - begin) // 8 + 1) * 8


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    """A number in the writing of packs (offsets), and where it ends."""
    value = 0
    while place < len(data):
        byte = data[place]
        place += 1
        value = (value << 7) | (byte & 0x7F)
        if not byte & 0x80:
            break
        value += 1
    return value, place
