"""The journal: one record a dispatch that had at least one candidate handler (docs/turn.md, `cru trace`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from cru.core.events.answers import PASS, Answer

LOOKS_ON = "(looks on)"
"""Ends the place of a handler that only sees what others need to know."""


class SkipKind(StrEnum):
    """Why a candidate was not called. The values stand in the journal."""

    STOPPED = "stopped"
    REMOVED = "removed"
    OWN_EVENT = "own event"
    MAIN_AGENT_ONLY = "main agent only"
    PATTERN = "pattern"
    OTHER_EVENT = "other event"
    MISMATCH = "mismatch"
    ONCE = "once"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> SkipKind:
        """A line of a later version stays readable."""
        return cls.UNKNOWN


_SKIP_TEXTS = {
    SkipKind.STOPPED: "cancelled by {}",
    SkipKind.REMOVED: "removed",
    SkipKind.OWN_EVENT: "raised by itself",
    SkipKind.MAIN_AGENT_ONLY: "main agent only",
    SkipKind.PATTERN: "pattern {}",
    SkipKind.OTHER_EVENT: "not a {}",
    SkipKind.MISMATCH: "does not match {}",
    SkipKind.ONCE: "ran once already",
    SkipKind.DUPLICATE: "the same command as {}",
}


class SkipReason(Struct, frozen=True, omit_defaults=True):
    """Why a candidate was not called.

    detail: who stopped the chain, the pattern, the event as the handler's system calls it, what its matcher was tried on, or the id of the
        hook that runs in its place
    """

    kind: SkipKind
    detail: str = ""

    @property
    def text(self) -> str:
        return _SKIP_TEXTS[self.kind].format(self.detail)


class HandlerRecord(Struct, frozen=True, omit_defaults=True):
    """What became of one candidate: it ran (`ms`, `answer`), was skipped or failed.

    error: why it failed, in words
    skipped: why it was not called, in words
    skip: the same as a record; older lines have none
    hook: what a plugin that is a program calls the event; "" of all other handlers, and in older lines
    failed: it came to nothing; older lines only have `error`
    """

    owner: str
    where: str = ""
    handler: int = 0
    ms: float = 0.0
    skipped: str = ""
    error: str = ""
    answer: Answer = PASS
    rejected: tuple[str, ...] = ()
    skip: SkipReason | None = None
    hook: str = ""
    failed: bool = False

    @property
    def has_failed(self) -> bool:
        return self.failed or self.error != ""


class JournalLine(Struct, frozen=True, omit_defaults=True):
    """One dispatch. `ref` is the log entry that the payload speaks of; `changed` holds only the fields that were changed; `purpose` and
    `agent_type` are the stamp's, `agent` is its `agent_id`."""

    seq: int
    time: float
    event: str
    session: str
    run: str
    agent: str = "main"
    parent: int = 0
    ident: str = ""
    ref: str = ""
    call: str = ""
    heard: tuple[HandlerRecord, ...] = ()
    decision: str = "none"
    reason: str = ""
    changed: dict[str, Any] = {}
    ms: float = 0.0
    v: int = 1
    purpose: str = ""
    agent_type: str = ""


class JournalSink(Protocol):
    """Where the journal goes."""

    def write(self, line: JournalLine) -> None: ...


class Unjournalled:
    """Keeps nothing (tests, and sessions without a context)."""

    def write(self, line: JournalLine) -> None:
        return None
