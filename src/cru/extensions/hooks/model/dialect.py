"""What a dialect is: where its files lie, how an entry is read, when it fires, what it gets and what its output means.

A dialect only translates: an event into stdin and environment, exit status and output into the one answer record. Running, order, trust and
records are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from cru.events.answers import PASS, Answer
from cru.events.stamp import Event
from cru.extensions.hooks.model.entry import DialectName, HookEntry, HookFileProblem, HookSource, Layer


class CommandResult(Struct, frozen=True):
    """What came of a command. exit: its status, negative for a signal, None if it has none (not started: `error` says why; timed out;
    cancelled) · stdout, stderr: decoded, invalid bytes replaced, without a byte order mark · ms: wall clock · note: what was odd about
    running it, for the person (a variable left out, no jq) · left_out: variables that it could not be given ·
    withheld: not run because it is not what a person has trusted any more."""

    exit: int | None
    stdout: str = ""
    stderr: str = ""
    ms: float = 0.0
    timed_out: bool = False
    truncated: bool = False
    error: str = ""
    note: str = ""
    left_out: tuple[str, ...] = ()
    withheld: bool = False


class HookResult(Struct, frozen=True):
    """What a run means: the answer, words for the person (`to_user`), what was odd about the output (`warning`), and why the hook
    counts as failed (`failed`: `on_error` applies; without one it has no say)."""

    answer: Answer = PASS
    to_user: str = ""
    warning: str = ""
    failed: str = ""


class SessionFacts(Struct):
    """The facts of the session that payloads and environments need.

    folder: of the context · transcript: a function that gives the path of a JSONL transcript, written when first asked for · mode: the
    permission mode as cru calls it · env: what hooks inherit · secret_names: variables of it that a project's hooks do not get ·
    blocks: counters of the running user prompt (Claude's cap on Stop), cleared when a new one is received · prompt, turn: its text
    and the id of the log entry that began it · model: the one that was chosen last, "" before that · sits: whether a person sits at a
    chat, and will be asked for the next prompt."""

    session_id: str
    context: str
    folder: Path
    cwd: Path
    root: Path
    home: Path
    user_home: Path
    env: Mapping[str, str]
    mode: Callable[[], str]
    transcript: Callable[[], Path]
    secret_names: frozenset[str] = frozenset()
    blocks: dict[str, int] = {}
    prompt: str = ""
    turn: str = ""
    model: str = ""
    sits: Callable[[], bool] = lambda: True


class EventMapping(Struct, frozen=True):
    """One event of a dialect. event: ours, "" if we have no such moment (`later` says so) · hears: which of ours it means (a cause, a
    trigger) · subject: what the matcher looks at; None = matchers have no effect here · fields: stdin beside the common ones ·
    answer: what a run means · timeout: the dialect's default here, 0 = its usual one."""

    name: str
    event: str = ""
    later: str = ""
    hears: Callable[[Event], bool] | None = None
    subject: Callable[[Event], str] | None = None
    fields: Callable[[Event, SessionFacts], dict[str, Any]] | None = None
    answer: Callable[[HookEntry, Event, CommandResult, SessionFacts], HookResult] | None = None
    timeout: float = 0.0


class Dialect(Protocol):
    """One system's hooks. `moments` by canonical event name; an event that we have several moments for has several rows. `dedups`: of two
    entries that do the same, one runs."""

    name: DialectName
    dedups: bool
    moments: Mapping[str, Sequence[EventMapping]]

    def places(self, about: SessionFacts) -> list[tuple[Layer, Path]]:
        """Where configurations lie, lowest layer first; files need not exist."""
        ...

    def parse(self, source: HookSource) -> tuple[list[HookEntry], list[HookFileProblem]]:
        """The entries of a file in its order. Never raises: what cannot be read is a problem."""
        ...

    def matches(self, entry: HookEntry, event: Event, subject: str) -> bool:
        """Whether the entry's matcher (and its `if`) fits. `subject` is what the moment gave, a tool's name in our words."""
        ...

    def stdin(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> bytes: ...

    def environment(
        self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts
    ) -> Mapping[str, str | None]:
        """What is added to, or replaced in, the inherited environment; None takes a variable away."""
        ...


@runtime_checkable
class Helping(Protocol):
    """A dialect with handlers of its own: in-process, before everybody else's, as long as these entries are active."""

    def helpers(
        self, entries: Sequence[HookEntry], about: SessionFacts
    ) -> list[tuple[str, Callable[[Event], Any]]]: ...
