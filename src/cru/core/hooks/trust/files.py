"""Reading the files that hooks name, and how much is looked at in one session, at most: their words are a stranger's, and a start must
not wait for them."""

from __future__ import annotations

import os
from collections.abc import Collection
from hashlib import sha256

from msgspec import Struct, field

from cru.core.base.files.regular import open_regular

LOOKUPS = 20_000
"""Questions to the file system; a usual hook needs about ten."""
BYTES = 64 << 20
"""Of the files that hooks name."""
KEPT_BYTES = 1 << 20
"""Bytes of a file that are kept to be shown."""
LARGEST = 64 << 20
"""Bytes of a file that is read; of a larger one its size and times count."""


class ReferencedFile(Struct, frozen=True):
    """A file that a hook names.

    digest: SHA-256 of its content, "" if it cannot be read
    size: bytes
    content: its beginning
    """

    path: str
    digest: str
    size: int
    content: bytes = b""

    def unseen(self) -> str:
        """What of it a person cannot be shown; "" if there is nothing."""
        if not self.digest:
            return f"{self.path} cannot be read"
        if b"\0" in self.content:
            return f"{self.path} is not a text"
        return f"{self.path} is shown up to byte {len(self.content)} only" if self.size > len(self.content) else ""


class LookupBudget(Struct):
    """What is left.

    size: bytes
    read: files by path and times, so that one that several hooks name is read once
    """

    lookups: int = LOOKUPS
    size: int = BYTES
    read: dict[tuple[str, tuple[int, ...]], ReferencedFile] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return self.lookups < 0 or self.size < 0

    def spend(self, lookups: int) -> bool:
        """Whether there is enough for these."""
        self.lookups -= lookups
        return not self.over

    def is_dir(self, path: str) -> bool:
        return self.spend(1) and os.path.isdir(path)

    def is_file(self, path: str) -> bool:
        return self.spend(1) and os.path.isfile(path)

    def read_file(self, path: str, status: tuple[int, ...]) -> ReferencedFile:
        """The file that has this status, see `stat`."""
        size = status[2]
        if size > LARGEST:
            return ReferencedFile(path, sha256(repr(status).encode()).hexdigest(), size)
        if (path, status) not in self.read:
            self.read[path, status] = self._read_now(path)
        return self.read[path, status]

    def _read_now(self, path: str) -> ReferencedFile:
        digest, size, beginning = sha256(), 0, b""
        try:
            with open(open_regular(path), "rb", buffering=0) as file:
                while not self.over and (piece := file.read(1 << 20)):
                    beginning = beginning or piece[:KEPT_BYTES]
                    size += len(piece)
                    self.size -= len(piece)
                    digest.update(piece)
        except OSError:
            return ReferencedFile(path, "", 0)
        return ReferencedFile(path, digest.hexdigest(), size, beginning)


def stat(path: str) -> tuple[int, ...]:
    """What tells that a file or folder has changed; () if there is none."""
    from stat import S_ISDIR, S_ISREG

    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    if not (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def is_plain_file(path: str, suffixes: Collection[str]) -> bool:
    """Whether its suffix is one of these, and it cannot be run as it is."""
    if os.path.splitext(path)[1].lower() not in suffixes or os.access(path, os.X_OK):
        return False
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            return file.read(2) != b"#!"
    except OSError:
        return False
