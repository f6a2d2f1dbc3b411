"""Who listens: handlers by event, in the order in which they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from cru.events.answers import Answer
from cru.events.catalog import ALIASES, BY_NAME, Row
from cru.events.errors import BadHandler, UnknownEvent
from cru.events.stamp import Event

Lane = Literal["inline", "commands", "executables"]
Call: TypeAlias = Callable[[Event], "Answer | Awaitable[Answer | None] | None"]
LANES: dict[str, int] = {"inline": 0, "commands": 1, "executables": 2}


class Handler(Struct, frozen=True):
    """Code that listens to one event.

    owner: who registered it (plugin name); where: file and line for messages; priority: ascending, default 100;
    lane: in-process, or a group that runs in parallel; pattern: glob on the event's identifier ("" = all);
    scope: main, tree, or "" for the event's default; on_error: pass, deny, or "" for the event's default;
    limit: seconds, 0 = the lane's default; hold: keep deltas back, faces show `display`; thread: run plain code in a
    thread that is abandoned at the limit; chain: members of its group run one after another.
    """

    id: int
    event: str
    call: Call
    owner: str
    where: str = ""
    priority: int = 100
    lane: Lane = "inline"
    pattern: str = ""
    scope: Literal["", "main", "tree"] = ""
    once: bool = False
    on_error: Literal["", "pass", "deny"] = ""
    limit: float = 0.0
    hold: bool = False
    thread: bool = False
    chain: bool = False

    @property
    def order(self) -> tuple[int, int, int]:
        return (self.priority, LANES[self.lane], self.id)


_FIELDS = frozenset(Handler.__struct_fields__) - {"id", "event", "call", "owner"}


class Registry:
    """All handlers of a session tree. Lists are replaced, never changed, so a running dispatch keeps its own."""

    def __init__(self) -> None:
        self.by_event: dict[str, tuple[Handler, ...]] = {}
        self._by_id: dict[int, Handler] = {}
        self._next = 1
        self.problems: list[str] = []

    def on(self, event: str, call: Call, *, owner: str, **fields: Any) -> int:
        """Register a handler; returns its id. Raises UnknownEvent or BadHandler, each with the closest known name."""
        row, pattern = find(event)
        for name in fields:
            if name not in _FIELDS:
                raise BadHandler(f"unknown handler field `{name}`", _did_you_mean(name, _FIELDS))
        if pattern and not fields.get("pattern"):
            fields["pattern"] = pattern
        handler = Handler(self._next, row.name, call, owner, **fields)
        if handler.lane not in LANES:
            raise BadHandler(f"unknown lane `{handler.lane}`", f"one of {', '.join(LANES)}")
        if not row.live:
            self.problems.append(f"{handler.where or owner}: event `{event}` is not available yet")
        self._next += 1
        self._by_id[handler.id] = handler
        self.by_event[row.name] = tuple(sorted((*self.by_event.get(row.name, ()), handler), key=lambda h: h.order))
        return handler.id

    def off(self, handler_id: int) -> bool:
        """Remove a handler; False if it was not there (a `once` handler goes before its call)."""
        handler = self._by_id.pop(handler_id, None)
        if handler is None:
            return False
        rest = tuple(h for h in self.by_event[handler.event] if h.id != handler_id)
        if rest:
            self.by_event[handler.event] = rest
        else:
            del self.by_event[handler.event]
        return True

    def has(self, handler_id: int) -> bool:
        return handler_id in self._by_id

    def drop_owner(self, owner: str) -> int:
        """Remove everything that an owner registered; returns how many."""
        mine = [h.id for h in self._by_id.values() if h.owner == owner]
        return sum(self.off(handler_id) for handler_id in mine)

    def holds_deltas(self) -> bool:
        return any(h.hold for h in self.by_event.get("agent:responded", ()))


def find(event: str) -> tuple[Row, str]:
    """The catalog row of a name or alias, and the identifier that an alias narrows to."""
    name, ident = ALIASES.get(event, (event, ""))
    row = BY_NAME.get(name)
    if row is None:
        raise UnknownEvent(f"unknown event `{event}`", _did_you_mean(event, [*BY_NAME, *ALIASES]))
    return row, ident


def _did_you_mean(word: str, known: Any) -> str:
    from cru.config.closest import closest

    found = closest(word, known)
    return f"did you mean `{found}`?" if found else f"known: {', '.join(sorted(known))}"
