"""transcript.md: the conversation as text for people, and a record beside it of what it has, so that no entry is written twice."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import append_lines
from cru.core.base.values.messages import MESSAGE, TOOL_CALL, Entry
from cru.core.conversations import read_if_exists, write_errors
from cru.core.conversations.entries import role_of

TRANSCRIPT, RECORD = "transcript.md", ".transcript.json"
SHORT_ARGUMENTS = 100


class _Record(Struct, frozen=True):
    """What transcript.md has.

    written: ids of entries in it that may be offered again
    appended: ids of the last append. It did not happen if the file is still as long as `size`: a kill came between
    size: of the file before the last append, in bytes
    """

    written: tuple[str, ...] = ()
    appended: tuple[str, ...] = ()
    size: int = -1


def append_entries(folder: Path, entries: Iterable[Entry], remaining: Iterable[Entry], *, is_running: bool) -> None:
    """Append those of the entries that the transcript lacks. Raises StoreUnwritable and StoreUnreadable; then nothing is appended.

    remaining: what may be offered again later
    is_running: each turn is appended (setting `transcript`), with its calls; otherwise what leaves the conversation is
    """
    path = folder / TRANSCRIPT
    record = _read_record(folder)
    size = path.stat().st_size if path.is_file() else 0
    written = _written(record, size)
    new = [(entry.id, text) for entry in entries if entry.id not in written and (text := _block(entry, is_running))]
    if not new:
        return
    with write_errors(path):
        if is_running or record is not None:
            known = tuple(entry.id for entry in remaining if entry.id in written)
            data = msgspec.json.encode(_Record(known, tuple(key for key, _ in new), size))
            replace_file(folder / RECORD, data, follow=False, keep_mode=False)
        try:
            append_lines(path, "".join(text for _, text in new).encode("utf-8", "replace"), sync=True)
        except OSError:  # the file may have another length when the next append looks at it
            _keep_record(folder, record)
            raise


def _read_record(folder: Path) -> _Record | None:
    """Return None if there is no record, and an empty one if it is damaged: entries written twice are better than none."""
    data = read_if_exists(folder / RECORD)
    if data is None:
        return None
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(data, type=_Record)
    return _Record()


def _keep_record(folder: Path, record: _Record | None) -> None:
    with suppress(OSError):  # of a full disk: then the size tells
        if record is None:
            (folder / RECORD).unlink(missing_ok=True)
        else:
            replace_file(folder / RECORD, msgspec.json.encode(record), follow=False, keep_mode=False)


def _written(record: _Record | None, size: int) -> frozenset[str]:
    if record is None:
        return frozenset()
    return frozenset(record.written if record.size == size else record.written + record.appended)


def _block(entry: Entry, with_calls: bool) -> str:
    """Return the text of an entry, "" if people are not shown it."""
    if entry.entry_type == TOOL_CALL and with_calls:
        arguments = " ".join(entry.content[: SHORT_ARGUMENTS + 1].split())
        cut = arguments[:SHORT_ARGUMENTS] + "..." if len(entry.content) > SHORT_ARGUMENTS else arguments
        return f"[TOOL CALL: {entry.to}] {cut}\n\n"
    role = role_of(entry)
    return f"[{role.upper()}]: {entry.content}\n\n" if entry.entry_type == MESSAGE and role != "system" else ""
