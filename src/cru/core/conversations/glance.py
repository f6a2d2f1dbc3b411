"""What can be known of a conversation from the ends of its files: many are listed without reading any of them whole."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files.regular import read_range
from cru.core.base.values.messages import MESSAGE, Entry
from cru.core.conversations import open_if_exists
from cru.core.conversations.entries import ARCHIVE, BROKEN, LOG, decode

HEAD, TAIL = 1 << 13, 1 << 15
"""Bytes that are read from the beginning and from the end of a file."""
_CONTENT = re.compile(rb'"content":"((?:[^"\\]|\\.)*)')
_USER = re.compile(rb'"role":"user"|"to":"(?!user")')
_WORDS = 400


class Glance(Struct, frozen=True):
    """The ends of a conversation.

    first: the beginning of its first prompt, "" if none is near the beginning
    tail: the last entries
    is_all: `tail` has all entries of the log
    messages: how many there are; estimated from their size unless `is_exact`
    size: bytes of log and archive
    modified: Unix seconds of the last change to the log, 0: there is none
    """

    first: str = ""
    tail: tuple[Entry, ...] = ()
    is_all: bool = True
    messages: int = 0
    is_exact: bool = True
    size: int = 0
    modified: float = 0.0


def glance(folder: Path) -> Glance:
    """Read the ends of a context's log, and the beginning of its archive. Raises StoreUnreadable."""
    head, _, archived = _ends(folder / ARCHIVE, 0)
    log_head, data, size = _ends(folder / LOG, TAIL)
    is_all = size <= TAIL
    lines = data.split(b"\n")[0 if is_all else 1 :]
    tail = tuple(entry for line in lines if (entry := _decode(line)) is not None)
    messages = sum(entry.entry_type == MESSAGE for entry in tail)
    is_exact = is_all and not archived
    if not is_exact and data:
        messages = round(messages * (size + archived) / len(data))
    return Glance(
        _first_prompt(head) or _first_prompt(log_head), tail, is_all, messages, is_exact, size + archived, _modified(folder / LOG)
    )  # fmt: skip


def _ends(path: Path, tail: int) -> tuple[bytes, bytes, int]:
    """The first HEAD bytes, the last `tail` ones, and the size of a file; nothing if it is not there."""
    fd = open_if_exists(path)
    if fd is None:
        return b"", b"", 0
    try:
        size = os.fstat(fd).st_size
        end = read_range(fd, max(0, size - tail), size) if tail else b""
        return end[:HEAD] if size <= tail else read_range(fd, 0, min(HEAD, size)), end, size
    finally:
        os.close(fd)


def _decode(line: bytes) -> Entry | None:
    try:
        return decode(line) if line.strip() else None
    except BROKEN:
        return None


def _first_prompt(head: bytes) -> str:
    """The beginning of the first message of a user; its line may be longer than what was read."""
    for line in head.split(b"\n"):
        entry = _decode(line)
        if entry is None:
            match = _CONTENT.search(line) if _USER.search(line) else None
            text = _unquoted(match[1]) if match is not None else ""
        else:
            text = entry.content if entry.entry_type == MESSAGE and (entry.role or "user") == "user" else ""
        if text.strip():
            return " ".join(text[: 2 * _WORDS].split())[:_WORDS]
    return ""


def _unquoted(piece: bytes) -> str:
    """A text of JSON whose end may be missing."""
    for cut in range(12):
        try:
            return msgspec.json.decode(b'"' + piece[: len(piece) - cut] + b'"', type=str)
        except BROKEN:
            continue
    return ""


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
