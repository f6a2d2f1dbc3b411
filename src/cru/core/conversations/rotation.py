"""Moving what the last anchor left behind from the log to the archive."""

from __future__ import annotations

import os
from pathlib import Path

from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import append_lines, open_regular, read_range
from cru.core.base.values.messages import Entry
from cru.core.conversations import write_errors
from cru.core.conversations.entries import BROKEN, anchor_keeps, decode
from cru.core.conversations.log import Log


def rotate(log: Log, archive: Path) -> int:
    """Move every line before the last anchor to the archive; what the anchor keeps stays in the log as well, so that the archive
    has everything in its order. Returns how many lines the log lost. Raises StoreUnwritable.

    The archive is complete on disk before the log is replaced: a kill in between leaves lines in both, and readers drop the
    second copy by its id. Malformed lines move with their neighbours, byte for byte.
    """
    log.refresh()
    if log.last_anchor is None:
        return 0
    content = log.content()
    before, kept = _split(content, {e.id for e in log.visible})
    moved = len(before) - len(kept)
    if not moved:
        return 0
    data = b"".join(before)
    with write_errors(archive):
        if not _ends_with(archive, data):
            append_lines(archive, data, sync=True)
    with write_errors(log.path):
        replace_file(log.path, b"".join(kept) + content[len(data) :], follow=False, keep_mode=False)
    log.reload()
    return moved


def _split(content: bytes, keep_ids: set[str]) -> tuple[list[bytes], list[bytes]]:
    """The lines before the last anchor, and those among them that it keeps."""
    lines = content.split(b"\n")
    del lines[-1]
    entries = [_decode_or_none(line) for line in lines]
    anchors = [i for i, e in enumerate(entries) if e is not None and anchor_keeps(e) is not None]
    last = anchors[-1] if anchors else 0
    before = [line + b"\n" for line in lines[:last]]
    kept = [
        line
        for line, e in zip(before, entries, strict=False)
        if e is not None and e.id in keep_ids and anchor_keeps(e) is None
    ]
    return before, kept


def _decode_or_none(line: bytes) -> Entry | None:
    try:
        return decode(line)
    except BROKEN:
        return None


def _ends_with(path: Path, data: bytes) -> bool:
    """Whether an earlier rotation, killed half-way, has archived exactly this already."""
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return False
    try:
        size = os.fstat(fd).st_size
        return size >= len(data) and read_range(fd, size - len(data), size) == data
    finally:
        os.close(fd)
