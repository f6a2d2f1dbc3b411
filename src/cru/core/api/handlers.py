"""Handlers of plugins: the event as a table, the context beside it, and the answer in what they return.

Both languages see the same tables and return the same values; a function of Lua gets copies, and so does one of Python.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from inspect import isawaitable

from msgspec import Struct
from msgspec.structs import replace

from cru.core.api.answers import parse
from cru.core.api.answers.values import limit_texts
from cru.core.api.event_table.lazy import LazyDict
from cru.core.api.event_table.table import NOTHING, event_table, sent_fields
from cru.core.api.host import HOST, Host, Object
from cru.core.api.session_view import SessionView
from cru.core.events.answers import Answer
from cru.core.events.payloads import Custom
from cru.core.events.stamp import FRAME, Event

ADDED = "added"
Returned = Answer | Awaitable[Answer | None] | None


class Context(Object):
    """What a handler gets first. `set` and `get` are shared along one dispatch, `emit` raises an event of one's own."""

    METHODS = ("set", "get", "emit")
    FIELDS = (
        "session", "session_id", "is_continuation", "handler_name", "priority",
        "is_sub_agent", "agent_id", "agent_type", "depth", "parent_call_id",
    )  # fmt: skip

    def __init__(self, host: Host, event: Event, name: str, priority: int) -> None:
        self._host = host
        stamp = event.stamp
        self._seq = stamp.dispatch_seq
        self.session_id = stamp.session_id
        self.is_continuation = stamp.is_continuation
        self.is_sub_agent = stamp.is_sub_agent
        self.agent_id = stamp.agent_id
        self.agent_type = stamp.agent_type
        self.depth = stamp.depth
        self.parent_call_id = stamp.parent_call_id
        self.handler_name = name
        self.priority = priority

    @cached_property
    def session(self) -> SessionView:
        return SessionView(self._host)

    def set(self, key: str, value: object = None) -> None:
        self._shared_values()[key] = value

    def get(self, key: str) -> object:
        return self._shared_values().get(key)

    async def emit(self, name: str, payload: object = None) -> None:
        """Raise an event of one's own; those who listen to that name hear it before this returns, the same plugin too. At most 16
        events deep."""
        frame = FRAME.get()
        token = FRAME.set(replace(frame, owners=frame.owners - {self._host.plugin.name}))
        await asyncio.sleep(0)  # however many events raise one another, the loop hears Ctrl-C in between
        try:
            await self._host.session.parts.bus.dispatch(Custom(name, payload))
        finally:
            FRAME.reset(token)

    def _shared_values(self) -> dict[str, object]:
        """What the handlers of this dispatch share."""
        return _values_of_dispatch(self._host, "chain", self._seq)


DISPATCHES_KEPT = 16
"""More are never under way at a time: events are raised that deep at most."""


def _values_of_dispatch(host: Host, kind: str, seq: int) -> dict[str, object]:
    """What handlers of one dispatch leave for those behind them; other dispatches may run in between."""
    dispatches = host.session.family_state(kind, dict[int, dict[str, object]])
    if seq not in dispatches:
        while len(dispatches) >= DISPATCHES_KEPT:
            del dispatches[next(iter(dispatches))]
        dispatches[seq] = {}
    return dispatches[seq]


class HandlerCall(Struct):
    """One call of a handler: what it gets is made when it is needed, once. Lua needs little of it as objects of Python.

    handler: what is called
    event: as the bus has it
    added: what handlers before it put beside the fields of the event
    """

    handler: PluginHandler
    event: Event
    added: Mapping[str, object]
    _context: Context | None = None
    _table: LazyDict | None = None
    _sent: Mapping[str, object] | None = None

    @property
    def context(self) -> Context:
        context = self._context
        if context is None:
            context = self._context = self.handler.context(self.event)
        return context

    @property
    def name(self) -> str:
        """What the handler listens to."""
        return self.handler.name

    @property
    def table(self) -> LazyDict:
        if self._table is None:
            self._table, self._sent = event_table(self.name, self.event, self.added)
        return self._table

    @property
    def sent(self) -> Mapping[str, object]:
        """The data of the event as the handler gets them, which nobody changes."""
        if self._sent is None:
            self._sent = sent_fields(self.name, self.event)
        return self._sent


class PluginHandler:
    """One function of a plugin, as the bus calls it."""

    copies = True

    def __init__(self, host: Host, name: str, function: Callable[..., object], priority: int, label: str) -> None:
        self._host = host
        self.name = name
        self._function = function
        self._priority = priority
        self._label = label
        self._warned: set[str] = set()

    def __call__(self, event: Event) -> Returned:
        if self._is_stopped(event):
            return Answer(note="a handler before it stopped the rest")
        added = self._host.session.shared.get(ADDED, NOTHING).get(event.stamp.dispatch_seq, NOTHING)
        call, plugin = HandlerCall(self, event, added), self._host.plugin
        token = HOST.set(self._host)
        try:
            if plugin.handle is not None:
                result = plugin.handle(self._function, call)
            else:
                result = plugin.invoke(self._function, call.context, call.table)
        finally:
            HOST.reset(token)
        if result is None:
            return None
        if type(result) is not dict and type(result) is not LazyDict and isawaitable(result):
            return self._await_answer(event, result, call)
        return self._read_answer(event, result, call.sent)

    def context(self, event: Event) -> Context:
        """What the function gets first."""
        return Context(self._host, event, self._label, self._priority)

    async def _await_answer(self, event: Event, awaitable: Awaitable[object], call: HandlerCall) -> Answer:
        token = HOST.set(self._host)
        try:
            result = await awaitable
            while isawaitable(result):  # an `async def` that returns another one's call
                result = await self._host.plugin.invoke(_identity, result)
        finally:
            HOST.reset(token)
        return self._read_answer(event, result, call.sent)

    def _read_answer(self, event: Event, result: object, sent: Mapping[str, object]) -> Answer:
        if isinstance(result, Answer):
            return limit_texts(result)
        answer, warnings, added = parse.parse_answer(self.name, event.row, result, sent)
        if added:
            _values_of_dispatch(self._host, ADDED, event.stamp.dispatch_seq).update(added)
        for key, text in warnings.items():
            self._warn_once(key, text)
        if answer.decision == "deny" and not answer.halt and event.row.name == "turn:complete":
            # crucible: only the handlers after it are stopped
            self._host.session.shared["stopped"] = event.stamp.dispatch_seq
            return replace(answer, decision="none", reason="", note=f"stops the rest: {answer.reason}")
        return answer

    def _warn_once(self, key: str, text: str) -> None:
        """Tell once what of its answers does not count."""
        if key in self._warned:
            return
        self._warned.add(key)
        owner = self._host.plugin.name
        place = self._host.plugin.where(self._function) or self._label
        self._host.session.parts.bus.stream.warn(f"{owner} ({place}): {text}", owner)

    def _is_stopped(self, event: Event) -> bool:
        return bool(self._host.session.shared.get("stopped") == event.stamp.dispatch_seq)


def _identity(awaitable: object) -> object:
    return awaitable
