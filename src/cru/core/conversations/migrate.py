"""The old format of a conversation: one `context.json` with all messages. It becomes `context.jsonl`; nothing is deleted."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files import read_json
from cru.core.base.files.atomic import create_file
from cru.core.base.files.regular import read_regular
from cru.core.base.values.messages import MESSAGE, Entry
from cru.core.conversations import MigrationFailed, read_error, write_errors
from cru.core.conversations.entries import (
    BROKEN,
    LogProblem,
    decode_lines,
    encode,
    format_uuid,
    replace_surrogates,
    short_error,
)

OLD, LOG = "context.json", "context.jsonl"


class _OldMessage(Struct, frozen=True):
    role: str
    content: str | None = None
    id: str | None = None


class _OldContext(Struct, frozen=True):
    messages: list[_OldMessage]
    name: str = ""
    created_at: float = 0
    updated_at: float = 0


def migrate(folder: Path) -> tuple[LogProblem, ...]:
    """Convert `context.json` in `folder`, which must exist; it is then called `context.json.migrated`.

    The new file is complete on disk before the old one is renamed, and a second call finishes what a kill left undone. If a
    conversation of its own stands in `context.jsonl`, nothing is touched and a problem returned. Raises MigrationFailed,
    StoreUnwritable.
    """
    old, log = folder / OLD, folder / LOG
    entries = _entries(_read(old), folder.name)
    with write_errors(log):
        if not log.exists():
            create_file(log, b"".join([encode(replace_surrogates(e)) for e in entries]))
    if not _starts_with(log, entries):
        text = (
            f"ignored, since {LOG} holds another conversation; move it away, or give it a folder of its own to load it"
        )
        return (LogProblem(OLD, 0, text),)
    with write_errors(old):
        try:
            old.rename(_free_name(old))
        except FileNotFoundError:
            pass  # another process has just finished the same migration
    return ()


def _read(path: Path) -> _OldContext:
    try:
        return msgspec.convert(read_json(path, dict[str, object], limit_bytes=0), _OldContext, strict=False)
    except OSError as error:
        raise read_error(path, error) from error
    except BROKEN as error:
        hint = f"repair it, or move it away to start without it: mv '{path}' '{path}.bad'"
        raise MigrationFailed(f"{path} is not a conversation: {short_error(error)}", hint) from error


def _entries(old: _OldContext, name: str) -> list[Entry]:
    return [_entry(m, number, name, int(old.created_at)) for number, m in enumerate(old.messages)]


def _entry(message: _OldMessage, number: int, name: str, timestamp: int) -> Entry:
    """Ids that are missing are derived from the message, so that repeating a migration gives the same log."""
    content = message.content or ""
    key = message.id or _derived_id(f"{name}\n{number}\n{message.role}\n{content}")
    if message.role == "assistant":
        return Entry(key, timestamp, name, "user", content, MESSAGE, "agent")
    if message.role == "system":
        return Entry(key, timestamp, "system", name, content, "system_prompt_changed", "system")
    return Entry(key, timestamp, "user", name, content, MESSAGE, message.role)


def _derived_id(text: str) -> str:
    return format_uuid(sha256(text.encode("utf-8", "replace")).hexdigest(), "a")


def _starts_with(log: Path, entries: list[Entry]) -> bool:
    try:
        logged, _ = decode_lines(read_regular(log), 1)
    except OSError as error:
        raise read_error(log, error) from error
    return [e.id for e in logged[: len(entries)]] == [e.id for e in entries]


def _free_name(old: Path) -> Path:
    target, number = old.with_name(f"{OLD}.migrated"), 2
    while target.exists():
        target, number = old.with_name(f"{OLD}.migrated-{number}"), number + 1
    return target
