"""Contexts that destroy themselves: at a time, or after a time without use.

The marks are chibi's `destroy_at` (Unix seconds) and `destroy_after_seconds_inactive`. They stand in the context's
context_meta.json, whose name is then listed under `expiring` in session.json; in a home whose state.json lists objects, as chibi's
does, they stand there, with the session id of the context that is meant. A start that finds neither reads no context's files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct

from cru.core.conversations import ContextError, ContextHeld
from cru.core.conversations.entries import format_time, now
from cru.core.conversations.home import Home
from cru.core.conversations.identity import META, ensure_session_id, known_session_id, read_meta, update_meta
from cru.core.conversations.state import (
    AFTER,
    AT,
    CONTEXTS,
    OWNER,
    add_object,
    forget_mark,
    has_objects,
    list_expiring,
    listed_context,
    update_state,
)

# A write to one of these is use of a context: what is said, what is sent to it, and the mark itself.
USED = ("context.jsonl", "inbox.jsonl", META)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


class ExpiryMark(Struct, frozen=True):
    """When a context destroys itself; 0: not because of that.

    at: unix seconds
    after: seconds without use
    last_use: unix seconds
    """

    at: int = 0
    after: int = 0
    last_use: int = 0

    @property
    def is_due(self) -> bool:
        moment = now()
        return bool(self.at and moment >= self.at) or bool(self.after and moment - self.last_use >= self.after)

    def describe(self) -> str:
        """ "on 2030-01-01 00:00:00, or after 30d without use"; "" if it stays."""
        parts = [f"on {format_time(self.at)}"] if self.at else []
        parts += [f"after {format_duration(self.after)} without use"] if self.after else []
        return ", or ".join(parts)


def read_mark(home: Path, folder: Path) -> ExpiryMark:
    """The mark of the context in `folder`. Raises StoreUnreadable."""
    listed = listed_context(home, folder.name)
    if listed is not None and _is_of_another_context(listed, folder):
        return ExpiryMark()
    values = read_meta(folder) if listed is None else listed
    stamps = [*map(_modified_at, (folder / name for name in USED)), _as_seconds(values.get("last_activity_at"))]
    return ExpiryMark(_as_seconds(values.get(AT)), _as_seconds(values.get(AFTER)), max(stamps) or _modified_at(folder))


def set_mark(home: Path, folder: Path, *, at: int | None = None, after: int | None = None) -> None:
    """Change the mark of a context that is there; 0 takes a part of it away. Raises StoreUnwritable, StoreUnreadable."""
    new = {key: value for key, value in ((AT, at), (AFTER, after)) if value is not None}

    def edit(state: dict[str, object], session: dict[str, object]) -> None:
        if has_objects(state):
            listed = add_object(state, folder.name)
            if _is_of_another_context(listed, folder):
                forget_mark(state, session, folder.name)
            listed.update({**new, OWNER: ensure_session_id(folder)[0]})
            return
        update_meta(folder, new)
        left = read_meta(folder)
        stays = _as_seconds(left.get(AT)) or _as_seconds(left.get(AFTER))
        list_expiring(session, *(("", folder.name) if stays else (folder.name, "")))

    update_state(home, edit)


def destroy_due(home: Home, spare: Collection[str]) -> list[str]:
    """Destroy what is due, without those in `spare` and those that somebody works on; a sentence for each one that went or could
    not go."""
    sentences = [_destroy(home, name) for name in home.expiring if name not in spare]
    return [*filter(None, sentences), *home.failed_removals]


def _destroy(home: Home, name: str) -> str:
    folder = home.path / CONTEXTS / name
    try:
        listed = listed_context(home.path, name)
        if not home.exists(name) or (listed is not None and _is_of_another_context(listed, folder)):
            update_state(home.path, lambda state, session: forget_mark(state, session, name))
            return ""
        mark = read_mark(home.path, folder)
        if mark.is_due and home.delete(name, only_if=lambda: read_mark(home.path, folder).is_due):
            return f"the context {name} has destroyed itself, as it was to: {mark.describe()}"
    except ContextHeld:
        return ""  # it is in use, or somebody has it open
    except ContextError as error:
        return f"the context {name} was to destroy itself and cannot: {error.message}"
    return ""


def _is_of_another_context(listed: Mapping[str, object], folder: Path) -> bool:
    """Whether the mark in state.json is that of an earlier context of this name."""
    return bool(listed.get(OWNER)) and listed[OWNER] != known_session_id(folder)


def format_duration(seconds: int) -> str:
    """30d, 12h, 90s: in the largest unit that fits."""
    unit = next(u for u, size in reversed(UNITS.items()) if not seconds % size and u != "w")
    return f"{seconds // UNITS[unit]}{unit}"


def _modified_at(path: Path) -> int:
    try:
        return int(os.stat(path).st_mtime)
    except OSError:
        return 0


def _as_seconds(value: object) -> int:
    """Seconds as somebody may have written them; anything else is no mark."""
    return int(value) if isinstance(value, int | float) and value is not True and 0 < value < 1 << 62 else 0
