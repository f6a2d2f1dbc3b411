"""What a dialect is: where its files lie, how an entry is read, when it fires, what it gets and what its output means.

A dialect only translates: an event into stdin and environment, exit status and output into the one answer record. Running, order, trust and
records are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from cru.events.stamp import Event
from cru.extensions.hooks.model.entry import DialectName, HookEntry, HookFileProblem, HookSource, Layer
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.result import CommandResult, HookResult


class EventMapping(Struct, frozen=True):
    """What an event of a dialect is among ours.

    name: in the dialect's spelling
    event: ours, "" if there is none
    unavailable: why there is none
    accepts: which firings of ours are meant (a cause, a source); None: all
    subject: what a matcher looks at; None: matchers have no effect
    fields: what stdin has beside the common fields
    answer: what a run of a hook means
    """

    name: str
    event: str = ""
    unavailable: str = ""
    accepts: Callable[[Event[Any]], bool] | None = None
    subject: Callable[[Event[Any]], str] | None = None
    fields: Callable[[Event[Any], SessionFacts], dict[str, Any]] | None = None
    answer: Callable[[HookEntry, Event, CommandResult, SessionFacts], HookResult] | None = None


class Dialect(Protocol):
    """The hooks of one system.

    events: by canonical name; an event that is several of ours has several mappings
    runs_equal_once: of two entries that do the same, one runs
    """

    name: DialectName
    runs_equal_once: bool
    events: Mapping[str, Sequence[EventMapping]]

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
