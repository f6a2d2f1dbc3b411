"""Copies of the scripts that a person has accepted, so that a review can show what has changed since: `trust/` in cru's home, by digest."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable
from hashlib import sha256
from pathlib import Path

from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import make_private_folder, read_regular
from cru.core.guard import NotStored
from cru.core.hooks.trust.files import ReferencedFile

LARGEST_COPY = 64 << 10
"""Bytes of a file that is kept."""
YOUNG = 3600.0
"""Seconds in which a copy is not swept away: somebody else may be about to note that it is accepted."""


def keep_copies(home: Path, files: Iterable[ReferencedFile]) -> None:
    """Of texts that are small enough. Raises NotStored."""
    folder = home / "trust"
    try:
        make_private_folder(folder)
        for file in files:
            is_small_text = (
                file.digest != "" and len(file.content) == file.size <= LARGEST_COPY and b"\0" not in file.content
            )
            if is_small_text and not (folder / file.digest).exists():
                replace_file(folder / file.digest, file.content)
    except OSError as error:
        raise NotStored(f"{folder} cannot be written: {error.strerror}", "check the folder's permissions") from error


def read_copy(home: Path, digest: str) -> bytes | None:
    """What was accepted under this digest; None if there is no copy, or it is not that any more."""
    if len(digest) != 64 or not digest.isalnum():
        return None
    try:
        content = read_regular(home / "trust" / digest, LARGEST_COPY)
    except OSError:
        return None
    return content if sha256(content).hexdigest() == digest else None


def sweep_copies(home: Path, needed: Collection[str]) -> None:
    """Copies that nothing accepted needs any more go."""
    try:
        with os.scandir(home / "trust") as files:
            for file in files:
                if file.name not in needed and time.time() - file.stat(follow_symlinks=False).st_mtime > YOUNG:
                    os.unlink(file.path)
    except OSError:
        return  # the next sweep finds them
