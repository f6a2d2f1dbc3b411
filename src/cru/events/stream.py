"""What faces read: every event after its chain, raw deltas, and notices. Nothing else drives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

from cru.events.answers import PASS, Answer
from cru.events.stamp import PayloadT, Stamp

P = TypeVar("P", bound=Struct)


class Published(Struct, Generic[PayloadT], frozen=True):
    """One event after its chain: the final payload and the folded answer. `stamp` is None for raw deltas."""

    stamp: Stamp | None
    payload: PayloadT
    answer: Answer = PASS


class Notice(Struct, frozen=True):
    """Something a person should know, from anywhere: a warning, a failing handler, a skipped line."""

    level: Literal["info", "warning", "error"]
    text: str
    owner: str = ""


class ToolOutput(Struct, frozen=True):
    """A piece of a running tool's output, raw."""

    call_id: str
    text: str


class CommandSaid(Struct, frozen=True):
    """What a command shows to the person who typed it; `is_error` for what went wrong."""

    command: str
    text: str
    is_error: bool = False


class StatusChanged(Struct, frozen=True):
    """What a plugin says about itself; an empty text takes it back.

    progress: 0 to 1; None: it gives none
    place: "status" or "statusline"
    """

    owner: str
    key: str
    text: str
    level: str = "info"
    progress: float | None = None
    place: str = "status"


class FactPublished(Struct, frozen=True):
    """A fact that a plugin tells faces, with its JSON value; None takes it back."""

    owner: str
    key: str
    value: Any


class StateChanged(Struct, frozen=True):
    """The leg went from one state to another (docs/turn.md)."""

    old: str
    new: str


class EntryLogged(Struct, frozen=True):
    """Log entries are on disk: a kill cannot lose them any more."""

    ids: tuple[str, ...]


StreamListener: TypeAlias = Callable[[Published[Any]], None]
"""Reads what it has subscribed to; of which types that is, `subscribe` checks."""


class Stream:
    """Readers by payload type; a reader registered with no types gets everything."""

    def __init__(self) -> None:
        self._all: tuple[StreamListener, ...] = ()
        self._some: dict[type[Struct], tuple[StreamListener, ...]] = {}

    def subscribe(self, reader: Callable[[Published[P]], None], *payloads: type[P]) -> None:
        if not payloads:
            self._all = (*self._all, reader)
        for payload in payloads:
            self._some[payload] = (*self._some.get(payload, ()), reader)

    def wants(self, payload: type[Struct]) -> bool:
        return bool(self._all) or payload in self._some

    def publish(self, item: Published) -> None:
        for reader in self._some.get(type(item.payload), ()):
            reader(item)
        for reader in self._all:
            reader(item)

    def tell(self, payload: Struct) -> None:
        """Publish something that is not an event of the catalog (a notice, a raw delta)."""
        if self._all or type(payload) in self._some:
            self.publish(Published(None, payload))

    def warn(self, text: str, owner: str = "") -> None:
        self.tell(Notice("warning", text, owner))
