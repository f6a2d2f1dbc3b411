"""Who listens: handlers by event, in the order in which they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import Any, Literal, TypeAlias, TypeVar, overload

from msgspec import Struct

from cru.core.events import BadHandler, UnknownEvent
from cru.core.events.answers import Answer
from cru.core.events.catalog import ALIASES, BY_NAME, BY_TYPE, EventRow
from cru.core.events.journal import SkipReason
from cru.core.events.stamp import Event

Lane = Literal["inline", "commands", "executables"]
P = TypeVar("P", bound=Struct)
HandlerResult: TypeAlias = "Answer | Awaitable[Answer | None] | None"
HandlerFunction: TypeAlias = Callable[[Event[Any]], HandlerResult]
LANES: dict[str, int] = {"inline": 0, "commands": 1, "executables": 2}
Group: TypeAlias = "tuple[int, str, int]"


class Handler(Struct, frozen=True):
    """Code that listens to one event.

    owner: who registered it (plugin name); where: file and line for messages; priority: ascending, default 100;
    lane: in-process, or a group that runs in parallel; pattern: glob on the event's identifier ("" = all);
    scope: main, tree, or "" for the event's default; on_error: pass, deny, ask, or "" for the event's default;
    limit: seconds of waiting (an own limit of a command or a dialog goes here), 0 = 60; hold: keep deltas back, faces show
    `display`; thread: run plain code in a thread that is abandoned at the limit; chain: in its group it runs after the one
    before it, and sees what that changed; hook: what a plugin that is a program calls the event. A `call` with a method
    `declines(event)` returns there why it does not want this event (a `SkipReason`; None: it does), and is skipped.
    owners: the owner alone, as a set; copies: the call makes copies of payloads itself; declines: that method of the call;
    ahead: it judges all calls of a reply before any of them runs.
    """

    id: int
    event: str
    call: HandlerFunction
    owner: str
    where: str = ""
    priority: int = 100
    lane: Lane = "inline"
    pattern: str = ""
    scope: Literal["", "main", "tree"] = ""
    once: bool = False
    on_error: Literal["", "pass", "deny", "ask"] = ""
    limit: float = 0.0
    hold: bool = False
    thread: bool = False
    chain: bool = False
    hook: str = ""
    owners: frozenset[str] = frozenset()
    copies: bool = False
    declines: Callable[[Event], SkipReason | None] | None = None
    ahead: bool = False

    @property
    def order(self) -> tuple[int, int, str, int]:
        """Executables run in name order, whenever each was loaded; the others as they registered."""
        return (self.priority, LANES[self.lane], self.owner if self.lane == "executables" else "", self.id)

    def hears(self, depth: int) -> bool:
        """Whether its scope (the event's own, if it has none) covers the agent at this depth; 0 is the main agent."""
        return not depth or (self.scope or BY_NAME[self.event].scope) == "tree"

    @property
    def group(self) -> Group:
        """In-process handlers are groups of one; the others of one lane and priority belong together."""
        return (self.priority, self.lane, self.id if self.lane == "inline" else 0)


_FIELDS: dict[str, Any] = dict(zip(Handler.__struct_fields__[4:-4], Handler.__struct_defaults__[:-4], strict=True))
"""What may be given, and its defaults: all but what is read of the call."""
_CHOICES: dict[str, tuple[str, ...]] = {
    "lane": tuple(LANES),
    "scope": ("", "main", "tree"),
    "on_error": ("", "pass", "deny", "ask"),
}


class HandlerRegistry:
    """All handlers of a session tree. Lists are replaced, never changed, so a running dispatch keeps its own; they are put in order when
    somebody looks, not at each of ten thousand registrations."""

    def __init__(self) -> None:
        self._by_event: dict[str, tuple[Handler, ...]] = {}
        self._groups: dict[str, tuple[tuple[Handler, ...], ...]] = {}
        self._of: dict[str, dict[int, Handler]] = {}
        self._stale: set[str] = set()
        self._by_id: dict[int, Handler] = {}
        self._next = 1
        self.problems: list[str] = []

    @property
    def by_event(self) -> dict[str, tuple[Handler, ...]]:
        """The handlers of each event, in order."""
        if self._stale:
            self._settle()
        return self._by_event

    @property
    def groups(self) -> dict[str, tuple[tuple[Handler, ...], ...]]:
        """`by_event` cut where one group ends and the next begins; members of a chain stand alone."""
        if self._stale:
            self._settle()
        return self._groups

    @overload
    def on(self, event: type[P], call: Callable[[Event[P]], HandlerResult], *, owner: str, **fields: Any) -> int: ...
    @overload
    def on(self, event: str, call: HandlerFunction, *, owner: str, **fields: Any) -> int: ...
    def on(self, event: str | type[Struct], call: HandlerFunction, *, owner: str, **fields: Any) -> int:
        """Register a handler of an event, known by its payload or its name; returns its id. Raises UnknownEvent or BadHandler, each with
        the closest known name."""
        event = event if isinstance(event, str) else BY_TYPE[event].name
        row, narrowed = find(event)
        if not owner or not callable(call):
            raise BadHandler(f"a handler of `{event}` needs an owner and something to call", "give both")
        for name, value in fields.items():
            _check(name, value)
        pattern = fields.get("pattern", "")
        if narrowed and pattern not in ("", narrowed):
            raise BadHandler(f"`{event}` has its own pattern `{narrowed}`", f"listen to `{row.name}` to give another")
        fields["pattern"] = pattern or narrowed
        if fields["pattern"]:
            _check_pattern(fields["pattern"])
        handler = Handler(
            self._next, row.name, call, owner, **fields, owners=frozenset((owner,)),
            copies=getattr(call, "copies", False), declines=getattr(call, "declines", None), ahead=getattr(call, "ahead", False),
        )  # fmt: skip
        self._warn(row, event, handler)
        self._next += 1
        self._by_id[handler.id] = self._of.setdefault(row.name, {})[handler.id] = handler
        self._stale.add(row.name)
        return handler.id

    def _warn(self, row: EventRow, event: str, handler: Handler) -> None:
        """What will have no effect."""
        place = handler.where or handler.owner
        if not row.live:
            self.problems.append(f"{place}: event `{event}` is not available yet")
        if handler.pattern not in ("", "*") and not row.ident:
            self.problems.append(f"{place}: `{event}` has nothing that pattern `{handler.pattern}` could match")
        if handler.hold and row.name != HELD:
            self.problems.append(f"{place}: hold has no effect on `{event}`, only on `{HELD}`")
        if handler.on_error in ("deny", "ask") and row.kind != "gate":
            self.problems.append(f"{place}: `{event}` cannot be denied, on_error has no effect")

    def _settle(self) -> None:
        while self._stale:
            event = self._stale.pop()
            handlers = self._of.get(event)
            if not handlers:
                for table in (self._of, self._by_event, self._groups):
                    table.pop(event, None)
                continue
            self._by_event[event] = tuple(sorted(handlers.values(), key=lambda h: h.order))
            cut = groupby(self._by_event[event], key=lambda h: (h.group, h.id if h.chain else 0))
            self._groups[event] = tuple(tuple(group) for _, group in cut)

    def off(self, handler_id: int) -> bool:
        """Remove a handler; False if it was not there (a `once` handler goes before its call)."""
        handler = self._by_id.pop(handler_id, None)
        if handler is None:
            return False
        self._forget(handler)
        return True

    def _forget(self, handler: Handler) -> None:
        del self._of[handler.event][handler.id]
        self._stale.add(handler.event)

    def has(self, handler_id: int) -> bool:
        return handler_id in self._by_id

    def owner(self, handler_id: int) -> str:
        """Who registered a handler; "" if it is not there."""
        handler = self._by_id.get(handler_id)
        return "" if handler is None else handler.owner

    def drop_owner(self, owner: str) -> int:
        """Remove everything that an owner registered; returns how many."""
        handlers = [h for h in self._by_id.values() if h.owner == owner]
        for handler in handlers:
            del self._by_id[handler.id]
            self._forget(handler)
        return len(handlers)

    def looks_ahead(self, event: str, other: str) -> bool:
        """Return whether the event has handlers, and all of them and of the other one judge the calls of a reply ahead."""
        handlers = self.by_event.get(event)
        return handlers is not None and all([handler.ahead for handler in (*handlers, *self.by_event.get(other, ()))])

    def holds_deltas(self, depth: int = 0) -> bool:
        """Whether a handler shows `display` instead of raw deltas to the faces of the agent at this depth."""
        handlers = self.by_event.get(HELD)
        return handlers is not None and any(h.hold and h.hears(depth) for h in handlers)


def find(event: str) -> tuple[EventRow, str]:
    """The catalog row of a name or alias, and the identifier that an alias narrows to."""
    name, ident = ALIASES.get(event, (event, ""))
    row = BY_NAME.get(name)
    if row is None:
        raise UnknownEvent(f"unknown event `{event}`", _did_you_mean(event, [*BY_NAME, *ALIASES]))
    return row, ident


def _check_pattern(pattern: str) -> None:
    """Raises BadHandler."""
    from cru.core.base.files.glob import BadGlob, compile_identifier_glob

    try:
        compile_identifier_glob(pattern)
    except BadGlob as error:
        raise BadHandler(error.message, error.hint) from error


def _check(name: str, value: Any) -> None:
    """One keyword of `on`: a known name, a value of its type. Raises BadHandler."""
    if name not in _FIELDS:
        raise BadHandler(f"unknown handler field `{name}`", _did_you_mean(name, _FIELDS))
    choices = _CHOICES.get(name)
    if choices is not None:
        if value not in choices:
            hint = _did_you_mean(str(value), [c for c in choices if c])
            raise BadHandler(f"unknown {name} `{value}`", hint)
        return
    kind = type(_FIELDS[name])
    fits = type(value) in (int, float) and value >= 0 if kind is float else type(value) is kind
    if not fits:
        raise BadHandler(f"handler field `{name}` is {value!r}", f"give a {_WORDS[kind]}")


_WORDS = {str: "text", int: "whole number", bool: "true or false", float: "number of seconds, 0 or more"}
HELD = "agent:responded"


def _did_you_mean(word: str, known: Any) -> str:
    from cru.core.base.config.closest import closest

    near = closest(word, known)
    return f"did you mean `{near}`?" if near else f"known: {', '.join(sorted(known))}"
