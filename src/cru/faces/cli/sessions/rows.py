"""What a list of conversations says of each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from cru.core.base.values.messages import LEG_ENDED, MESSAGE, Entry
from cru.core.base.values.visible import visible
from cru.core.conversations import ContextError
from cru.core.conversations.entries import role_of
from cru.core.conversations.glance import Glance, glance
from cru.core.conversations.home import Home
from cru.core.conversations.identity import known_origin
from cru.core.conversations.state import CONTEXTS
from cru.core.turn.prompts import RETRY, describe_unfinished
from cru.faces.cli.console import one_line

PREVIEWED, PREVIEW_CHARACTERS = 4, 300
FIRST_WORDS = 200


class SessionRow(Struct, frozen=True):
    """One conversation.

    project: the root that it began in, "" = none
    used: Unix seconds of its last entry, 0: it has none
    first: the beginning of its first prompt
    messages: estimated from the size unless `is_exact`
    size: bytes of its log and archive
    unfinished: its last turn has not ended well; `cru --resume` goes on with it
    held: who works on it now: "" = nobody
    preview: the last messages, (role, beginning)
    problem: why it cannot be read
    """

    name: str
    project: str = ""
    used: float = 0
    first: str = ""
    messages: int = 0
    is_exact: bool = True
    size: int = 0
    unfinished: bool = False
    held: str = ""
    is_current: bool = False
    preview: tuple[tuple[str, str], ...] = ()
    problem: str = ""

    def matches(self, words: Sequence[str]) -> bool:
        """Whether every word stands in what is known of it."""
        text = " ".join((self.name, self.project, self.first, *(text for _, text in self.preview))).casefold()
        return all(word.casefold() in text for word in words)

    def counted(self) -> str:
        mark = "" if self.is_exact else "~"
        return f"{mark}{self.messages:,} message{'' if self.messages == 1 else 's'}, {size_text(self.size)}"

    def state(self) -> str:
        """What is special about it, "" = nothing."""
        parts = ["held" if self.held else "", "unfinished" if self.unfinished else "", self.problem]
        return ", ".join(part for part in parts if part)


def read_rows(home: Home) -> list[SessionRow]:
    """All conversations of a home, the one that was used last first."""
    rows = [_read_row(home, name) for name in home.names()]
    return sorted(rows, key=lambda row: (-row.used, row.name))


def is_here(row: SessionRow, home: Home) -> bool:
    """Whether it belongs to the project that the user stands in, or to none where they stand in none."""
    return row.project == home.project or row.is_current


def is_unfinished(home: Home, name: str) -> bool:
    """Whether its last turn has not ended well, and no process works on it."""
    return _read_row(home, name).unfinished


def _read_row(home: Home, name: str) -> SessionRow:
    folder, is_current = home.path / CONTEXTS / name, name == home.current
    try:
        seen = glance(folder)
        is_held = home.status(name) == "active"
    except ContextError as error:
        return SessionRow(name, known_origin(folder), is_current=is_current, problem=one_line(visible(error.message)))
    return SessionRow(
        name, known_origin(folder), _used(seen), visible(seen.first[:FIRST_WORDS]), seen.messages, seen.is_exact, seen.size,
        not is_held and _is_unfinished(seen), _holder(home, name) if is_held else "", is_current, _preview(seen.tail),
    )  # fmt: skip


def _used(seen: Glance) -> float:
    return seen.tail[-1].timestamp if seen.tail else seen.modified


def _is_unfinished(seen: Glance) -> bool:
    """Whether the last prompt's leg has not ended, or ended by an error or an interruption."""
    ends = [at for at, entry in enumerate(seen.tail) if entry.entry_type == LEG_ENDED]
    asked = [at for at, entry in enumerate(seen.tail) if entry.entry_type == MESSAGE and role_of(entry) == "user"]
    if ends and (not asked or ends[-1] > asked[-1]):
        return seen.tail[ends[-1]].metadata.get("cause") in RETRY
    if asked:
        return bool(describe_unfinished(seen.tail))
    return not seen.is_all and bool(seen.tail)


def _holder(home: Home, name: str) -> str:
    holder = home.holder(name) or {}
    return visible(f"process {holder['pid']}: {holder.get('command', '')}") if "pid" in holder else "another program"


def _preview(entries: Sequence[Entry]) -> tuple[tuple[str, str], ...]:
    messages = [e for e in entries if e.entry_type == MESSAGE and e.content.strip()][-PREVIEWED:]
    return tuple(
        (role_of(e), visible(" ".join(e.content[: 2 * PREVIEW_CHARACTERS].split())[:PREVIEW_CHARACTERS]))
        for e in messages
    )


def size_text(size: int) -> str:
    return f"{size} B" if size < 1000 else f"{size / 1000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def when_text(seconds: float) -> str:
    """A date and time of day; the year only if it is another one."""
    if not seconds:
        return "never"
    try:
        then, today = time.localtime(seconds), time.localtime()
    except (OverflowError, ValueError, OSError):
        return "?"
    return time.strftime("%b %d %H:%M" if then.tm_year == today.tm_year else "%Y-%m-%d", then)
