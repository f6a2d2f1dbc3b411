"""A whole folder as it is at one moment: what a person is shown, what is noted as accepted, and what is copied, are the same bytes."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Literal

from msgspec import Struct

from cru.core.base.files.atomic import write_private
from cru.core.base.files.regular import make_private_folder, open_regular
from cru.core.guard import NotAccepted

LIMIT_BYTES = 16 * 1024 * 1024
LIMIT_ITEMS = 2000
LEFT_OUT = "__pycache__"
"""Python makes it anew; it is neither in the digest nor in a copy, so nothing of it is ever run."""


class SnapshotFile(Struct, frozen=True):
    """One thing in a folder; a link is what it leads to.

    kind: file, program (an executable file) or folder
    path: relative to the folder
    content: of a file
    """

    kind: Literal["file", "program", "folder"]
    path: str
    content: bytes = b""


class Snapshot(Struct, frozen=True):
    """A folder and everything below it, sorted by path."""

    folder: Path
    items: tuple[SnapshotFile, ...]

    @property
    def files(self) -> list[SnapshotFile]:
        return [item for item in self.items if item.kind != "folder"]

    @property
    def listing(self) -> bytes:
        """Kind, SHA-256 and path of every item: the same for two folders only if they are the same."""
        return b"".join(
            f"{item.kind} {sha256(item.content).hexdigest()} ".encode() + os.fsencode(item.path) + b"\0"
            for item in self.items
        )

    def copy_to(self, place: Path) -> None:
        """Make the copy, readable by the user alone; it appears as a whole. Raises OSError."""
        whole = place.with_name(f"{place.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
        make_private_folder(whole)
        try:
            for item in self.items:
                target = whole / item.path
                if item.kind == "folder":
                    make_private_folder(target)
                else:
                    write_private(target, item.content, 0o700 if item.kind == "program" else 0o600)
            whole.rename(place)
        except OSError:
            shutil.rmtree(whole, ignore_errors=True)
            raise


def take_snapshot(folder: Path, inside: Path) -> Snapshot:
    """Read a folder whole. Links may lead anywhere inside of `inside`. Raises NotAccepted that names what cannot be in it."""
    reader = _FolderReader(folder, os.path.realpath(inside))
    real = reader.resolve(folder)
    return Snapshot(folder, tuple(sorted(reader.walk(real, "", (real,)), key=lambda item: os.fsencode(item.path))))


class _FolderReader:
    def __init__(self, folder: Path, inside: str) -> None:
        self._folder = folder
        self._inside = inside
        self._bytes = self._count = 0

    def resolve(self, path: str | Path) -> str:
        real = os.path.realpath(path)
        if not real.startswith(self._inside.rstrip(os.sep) + os.sep):
            raise NotAccepted(f"{path} leads out of the project", "put what it leads to into the project, or remove it")
        return real

    def walk(self, real: str, path: str, above: tuple[str, ...]) -> Iterator[SnapshotFile]:
        """`real` is the folder itself, `path` its place in the snapshot, `above` the folders that lead to it."""
        try:
            names = sorted(os.listdir(real))
        except OSError as error:
            raise NotAccepted(f"{self._folder / path} cannot be read: {error.strerror}") from error
        for name in names:
            if name != LEFT_OUT:
                yield from self._read_item(os.path.join(real, name), os.path.join(path, name), above)

    def _read_item(self, place: str, path: str, above: tuple[str, ...]) -> Iterator[SnapshotFile]:
        shown = self._folder / path
        self._count += 1
        self._check_limits()
        real = self.resolve(place) if os.path.islink(place) else place
        try:
            mode = os.stat(real).st_mode
        except FileNotFoundError as error:
            raise NotAccepted(f"{shown} is a link to nothing", "remove it") from error
        except OSError as error:
            raise NotAccepted(f"{shown} cannot be read: {error.strerror}") from error
        if stat.S_ISDIR(mode):
            if real in above:
                raise NotAccepted(f"{shown} leads to a folder that it lies in", "remove it")
            yield SnapshotFile("folder", path)
            yield from self.walk(real, path, (*above, real))
        elif stat.S_ISREG(mode):
            yield SnapshotFile("program" if mode & 0o111 else "file", path, self._read_content(real, shown))
        else:
            raise NotAccepted(f"{shown} is neither a file nor a folder", "remove it")

    def _read_content(self, real: str, shown: Path) -> bytes:
        try:
            with open(open_regular(real), "rb", buffering=0) as file:
                self._bytes += os.fstat(file.fileno()).st_size
                self._check_limits()
                return file.readall()
        except OSError as error:
            raise NotAccepted(f"{shown} cannot be read: {error.strerror or error}") from error

    def _check_limits(self) -> None:
        if self._count > LIMIT_ITEMS or self._bytes > LIMIT_BYTES:
            limits = f"{LIMIT_ITEMS} files and {LIMIT_BYTES // 2**20} MiB"
            raise NotAccepted(f"{self._folder} is too large to be accepted", f"at most {limits}")
