"""Replacing a file's content: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cru.files.atomic import replace_file
from cru.tools.paths import failed
from cru.tools.protocol import ToolError


def encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the content holds half a surrogate pair, which no file can hold as UTF-8") from error


def store(path: Path, text: str, data: bytes) -> bool:
    """Write `data` to `path` (resolved; `text` is what the model called it); True if the file is new.

    Makes missing folders, keeps mode and owner of an existing file. Raises ToolError; the file is then unchanged, unless it
    could only be written in place.
    """
    try:
        old = _replaceable(path, text)
        replace_file(path, data, new_mode=0o666, make_folders=True, in_place=True, sync=False)
    except OSError as error:
        raise failed("write", text, error) from error
    return old is None


def _replaceable(path: Path, text: str) -> os.stat_result | None:
    """The status of the existing file, None if there is none."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(old.st_mode):
        raise ToolError(f"`{text}` is a folder")
    if not stat.S_ISREG(old.st_mode):
        raise ToolError(f"`{text}` is not a regular file")
    if not os.access(path, os.W_OK):  # the rename would not ask
        raise ToolError(f"cannot write `{text}`: it is read-only")
    return old
