"""`cru.fs`: regular files. Paths are relative to the project root; every failure raises, naming the operation and the path. Pipes and
devices are refused: reading or writing one may never end. `cru.include` runs another file of the same plugin."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENXIO
from pathlib import Path
from typing import TYPE_CHECKING

from cru.core.api.arguments import text
from cru.core.api.host import BadArgument, NamespaceError, Values, call, host
from cru.core.base.files import unsynced
from cru.core.base.files.regular import open_regular, write_all

if TYPE_CHECKING:
    from io import RawIOBase

LARGEST = 64 << 20
"""Bytes of a file that is read."""


def read(path: str) -> str | Values:
    """fs.read(path) -> text; (nil, message) if there is no such file. Bytes that are not UTF-8 survive reading and writing back.
    Raises NamespaceError for everything else: also for what is no regular file, and for one of more than 64 MiB.

    Example: cru.fs.read("no such file") --> nil
    """
    with _resolved_path("read", path) as place:
        try:
            with open(open_regular(place), "rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_size <= LARGEST and len(data := _read_limited(file)) <= LARGEST:
                    return data.decode("utf-8", "surrogateescape")
        except (FileNotFoundError, NotADirectoryError) as error:
            return Values((None, f"fs.read {path}: {error.strerror}"))
        raise OSError(f"it is larger than {LARGEST >> 20} MiB")


def write(path: str, content: str) -> None:
    """fs.write(path, text) replaces the file; missing folders are made. Raises NamespaceError.

    Example: cru.fs.write("notes/today.md", "hello") --> nil
    """
    _write_file("write", path, content, "w")


def append(path: str, content: str) -> None:
    """fs.append(path, text); the file and missing folders are made. Raises NamespaceError.

    Example: cru.fs.append("log.txt", "one line\\n") --> nil
    """
    _write_file("append", path, content, "a")


def mkdir(path: str) -> None:
    """fs.mkdir(path) makes a folder and those above it; no error if it is there. Raises NamespaceError.

    Example: cru.fs.mkdir("a/b/c") --> nil
    """
    with _resolved_path("mkdir", path) as place:
        os.makedirs(place, exist_ok=True)


def exists(path: str) -> bool:
    """fs.exists(path) -> bool.

    Example: cru.fs.exists("no such file") --> false
    """
    with _resolved_path("exists", path) as place:
        return os.path.exists(place)


def is_file(path: str) -> bool:
    """fs.is_file(path) -> bool.

    Example: cru.fs.is_file(".") --> false
    """
    with _resolved_path("is_file", path) as place:
        return os.path.isfile(place)


def is_dir(path: str) -> bool:
    """fs.is_dir(path) -> bool.

    Example: cru.fs.is_dir(".") --> true
    """
    with _resolved_path("is_dir", path) as place:
        return os.path.isdir(place)


def remove(path: str) -> None:
    """fs.remove(path): a file, a link, or a folder with everything in it. Raises NamespaceError, also if there is none.

    Example: pcall(cru.fs.remove, "no such file") --> false
    """
    with _resolved_path("remove", path) as place:
        if os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place)
        else:
            os.remove(place)


def list_(path: str = ".") -> list[str]:
    """fs.list(path) -> the names (not paths) of a folder's entries, sorted. Raises NamespaceError.

    Example: #cru.fs.list(".") >= 0 --> true
    """
    with _resolved_path("list", path) as place:
        return sorted(os.listdir(place))


def copy(source: str, target: str) -> None:
    """fs.copy(from, to): one file with its mode. Raises NamespaceError.

    Example: pcall(cru.fs.copy, "no such file", "b") --> false
    """
    with _resolved_path("copy", source) as place:
        os.close(open_regular(place))
    with _resolved_path("copy to", target) as other:
        shutil.copy(place, other)
        copied = os.path.join(other, os.path.basename(place)) if os.path.isdir(other) else other
        unsynced.add(os.path.realpath(copied))


def rename(old: str, new: str) -> None:
    """fs.rename(old, new); a file of the new name is replaced. Raises NamespaceError.

    Example: pcall(cru.fs.rename, "no such file", "b") --> false
    """
    with _resolved_path("rename", old) as place, _resolved_path("rename to", new) as other:
        os.replace(place, other)
        unsynced.add(os.path.realpath(other))


def resolve(path: str) -> str:
    """Where a path leads: relative ones from the project root, in a sub-agent's worktree from there."""
    return os.path.join(host().parts.place.root, path)


def _write_file(action: str, path: str, content: str, mode: str) -> None:
    text(f"cru.fs.{action}", "content", content)
    with _resolved_path(action, path) as place:
        os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if mode == "a" else os.O_TRUNC)
        handle = open_regular(place, flags, 0o666)
        try:
            write_all(handle, content.encode("utf-8", "surrogateescape"))
        finally:
            os.close(handle)
        unsynced.add(os.path.realpath(place))


def _read_limited(file: RawIOBase) -> bytes:
    """A file's content, or a little more than may be read: files of /proc do not tell their size."""
    pieces: list[bytes] = []
    size = 0
    while size <= LARGEST and (piece := file.read(1 << 20)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


@contextmanager
def _resolved_path(action: str, path: str) -> Iterator[str]:
    """The resolved path; what goes wrong with it says what was done and where."""
    text(f"cru.fs.{action.partition(' ')[0]}", "path", path)
    try:
        yield resolve(path)
    except OSError as error:
        why = "it is not a regular file" if error.errno == ENXIO else error.strerror or error
        raise NamespaceError(f"fs.{action} {path}: {why}") from error
    except ValueError as error:  # a NUL in the path, a lone surrogate
        raise NamespaceError(f"fs.{action} {path!r}: {error}") from error


async def include(file: str) -> object:
    """include(file) runs another Lua file with the plugin's globals and gives what it returns; its path is relative to the plugin's folder
    (to cru's home in its init.lua). Raises NamespaceError if it cannot be read, and what the file raises.

    Example: pcall(cru.include, "no such file.lua") --> false
    """
    where = "cru.include"
    here = host()
    path = here.plugin.folder / Path(text(where, "file", file)).expanduser()
    if here.plugin.include is None:
        raise BadArgument(f"{where} is for plugins in Lua", "import it")
    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NamespaceError(f"{where} {file}: {getattr(error, 'strerror', None) or error}") from error
    return await call(here.plugin.include, path, source)
