"""What a function of the `cru` namespace may reach: the session it runs in, and the plugin that called it.

Both languages set the host around every call into an extension; outside of one, `host()` raises NoSession.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextvars import ContextVar
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field

from cru.core.base.values.errors import CruError
from cru.core.turn.parts import ACTING, Parts


class NamespaceError(CruError):
    """A call of a name of the namespace failed; in Lua it is an ordinary error that `pcall` catches.

    NamespaceError
    ├── NoSession       called outside of a session
    ├── BadArgument     an argument has the wrong type or value
    └── NotAvailable    the name is known, and not available yet
    """


class NoSession(NamespaceError):
    pass


class BadArgument(NamespaceError):
    pass


class NotAvailable(NamespaceError):
    pass


def invoke(function: Callable[..., object], *args: object) -> object:
    """How a plugin in Python is called: the result, or something to await for it."""
    return function(*args)


class Plugin(Struct):
    """The extension that owns what is registered now.

    folder: where its code lies
    dialect: its language
    config: `[plugins.NAME]`
    invoke: calls one of its functions; gives the result, or something to await
    where: the place that a function was written at, "" if it is not known
    leaving: its own functions to call before it is unloaded
    problems: what was wrong with what it registered
    handle: calls a handler with a `HandlerCall`, for a language that needs no objects of Python for it
    stand_in: what stands at a name of `cru` now, for tests, which put functions of their own there; None: what always does
    replaced: what a test in Python has put at names of `cru`, by name; None: this is no test
    on_wait: hears of each wait on the real clock, in seconds, before it begins, for tests; None: nobody does
    include: runs another file (its path, its source) with the globals of the plugin; None: its language has modules for that
    has_called: it has called a name of cru that reaches its session
    """

    name: str
    folder: Path
    dialect: str
    config: Mapping[str, object] = {}
    invoke: Callable[..., Any] = invoke
    where: Callable[[Callable[..., Any]], str] = lambda function: ""
    leaving: list[Callable[..., Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    handle: Callable[..., Any] | None = None
    stand_in: Callable[[str], Callable[..., Any] | None] | None = None
    replaced: dict[str, object] | None = None
    on_wait: Callable[[float], None] | None = None
    include: Callable[..., Any] | None = None
    has_called: bool = False


class ScriptPrompts:
    """Prompts that plugins have for the agent of the session (a Waker): they come when what runs now is done.

    is_watched: the end of the session tells what was left
    """

    def __init__(self) -> None:
        self.is_watched = False
        self._texts: list[str] = []
        self._changed = asyncio.Event()

    def put(self, text: str) -> None:
        self._texts.append(text)
        self._changed.set()

    def has_report(self) -> bool:
        return bool(self._texts)

    def take_report(self) -> str:
        texts, self._texts = self._texts, []
        self._changed.clear()
        return "\n\n".join(texts)

    async def wait_for_any(self) -> bool:
        await self._changed.wait()
        return True


Undo = Callable[[], Any]
T = TypeVar("T")


class PluginSession(Struct):
    """What all plugins of a session tree share.

    parts: what the session is made of
    home: cru's home folder
    tasks: background tasks with the plugin that started each, cancelled when it is unloaded or the session closes
    shared: what families of names keep for the session, by family (see `family_state`)
    owned: the ledger: how to take back what a plugin registered, by its name and by what it is
    prompts: what plugins have to say to the agent by themselves
    """

    parts: Parts
    home: Path
    tasks: dict[asyncio.Task[Any], str] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    owned: dict[str, dict[Hashable, Undo]] = field(default_factory=dict)
    prompts: ScriptPrompts = field(default_factory=ScriptPrompts)

    def prompt_agent(self, text: str) -> None:
        """Have the agent asked this when what runs now is done."""
        wakers = self.parts.services.tasks.wakers
        if self.prompts not in wakers:
            wakers.append(self.prompts)
        if not self.prompts.is_watched:
            self.prompts.is_watched = True
            self.parts.services.lifecycle.closing.append(self._tell_unasked)
        self.prompts.put(text)

    async def _tell_unasked(self) -> None:
        """Nothing that a plugin has asked for is dropped in silence."""
        if self.prompts.has_report():
            text = " ".join(self.prompts.take_report().split())
            self.parts.bus.stream.warn(f"the session ended before the agent was asked what a plugin sent: {text[:80]}")

    def family_state(self, family: str, make: Callable[[], T]) -> T:
        """What a family of names keeps for the session; made when it is first needed."""
        if family not in self.shared:
            self.shared[family] = make()
        state: T = self.shared[family]
        return state


class Host(Struct, frozen=True):
    """The session and the calling plugin."""

    session: PluginSession
    plugin: Plugin

    @property
    def parts(self) -> Parts:
        """Of the agent in whose call or event the plugin works, with its tools, mode, depth and place; of the main agent for what the
        plugin does by itself (docs/agents.md)."""
        return ACTING.get() or self.session.parts

    def own(self, undo: Undo, key: Hashable = None) -> None:
        """Remember how to take back what the plugin just registered; it is called when the plugin is unloaded, the last one first.
        It may be called when the thing has gone already, and may give something to await. A family of names that can find all that a
        plugin has there records one undo for it, under its `key`: ten thousand handlers are one entry."""
        self.session.owned.setdefault(self.plugin.name, {}).setdefault(undo if key is None else key, undo)

    def listen(self, event: str, call: Callable[..., Any], **fields: Any) -> int:
        """Register a handler with the bus in the plugin's name; its id. Raises EventError. What will have no effect is told at once."""
        registry = self.session.parts.bus.registry
        known = len(registry.problems)
        id = registry.on(event, call, owner=self.plugin.name, **fields)
        self.own(lambda: registry.drop_owner(self.plugin.name), "handlers")
        for text in registry.problems[known:]:
            self.problem(text)
        del registry.problems[known:]
        return id

    def problem(self, text: str) -> None:
        """Tell the person what is odd about the plugin, and keep it for the list of plugins."""
        self.plugin.problems.append(text)
        self.session.parts.bus.stream.warn(f"{self.plugin.name}: {text}", self.plugin.name)


HOST: ContextVar[Host] = ContextVar("cru_host")


def host() -> Host:
    """The host of this call; raises NoSession."""
    try:
        here = HOST.get()
    except LookupError:
        raise NoSession("no session: names of cru work only inside a running session") from None
    here.plugin.has_called = True
    return here


def note_call() -> None:
    """That the plugin has said something that has no effect here, and is no oversight."""
    here = HOST.get(None)
    if here is not None:
        here.plugin.has_called = True


def stand_in(name: str) -> Callable[..., Any] | None:
    """What a test has put in the place of a name of `cru`; None: nothing, or this is no test."""
    here = HOST.get(None)
    return None if here is None or here.plugin.stand_in is None else here.plugin.stand_in(name)


class Values(tuple[Any, ...]):
    """Several return values: (value, nil) or (nil, error) in Lua, a tuple in Python."""


class Object:
    """A value with methods.

    METHODS: those that extensions may call (`obj:method(...)` in Lua)
    FIELDS: what they may read
    """

    __slots__ = ("__weakref__",)
    METHODS: tuple[str, ...] = ()
    FIELDS: tuple[str, ...] = ()

    def as_text(self) -> str | None:
        """What it is where a text is taken; None: it cannot stand there."""
        return None


async def call(function: Callable[..., object], *args: object) -> object:
    """Call a function of an extension, whatever its language, and wait for what it returns."""
    result = function(*args)
    if isawaitable(result):
        awaitable: Awaitable[object] = result
        return await awaitable
    return result
