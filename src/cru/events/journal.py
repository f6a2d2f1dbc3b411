"""The journal: one record a dispatch that had at least one candidate handler (docs/turn.md, `cru trace`)."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from cru.events.answers import PASS, Answer


class Heard(Struct, frozen=True, omit_defaults=True):
    """What became of one candidate: it ran (`ms`, `answer`), was skipped (`skipped` says why) or failed (`error`)."""

    owner: str
    where: str = ""
    handler: int = 0
    ms: float = 0.0
    skipped: str = ""
    error: str = ""
    answer: Answer = PASS
    rejected: tuple[str, ...] = ()


class JournalLine(Struct, frozen=True, omit_defaults=True):
    """One dispatch. `ref` is the log entry that the payload speaks of; `changed` holds only the fields that were changed; `purpose` is
    the stamp's."""

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
    heard: tuple[Heard, ...] = ()
    decision: str = "none"
    reason: str = ""
    changed: dict[str, Any] = {}
    ms: float = 0.0
    v: int = 1
    purpose: str = ""


class JournalSink(Protocol):
    """Where the journal goes."""

    def write(self, line: JournalLine) -> None: ...


class Unjournalled:
    """Keeps nothing (tests, and sessions without a context)."""

    def write(self, line: JournalLine) -> None:
        return None
