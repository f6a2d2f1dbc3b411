"""What a function of the `cru` namespace may reach: the session it runs in, and the plugin that called it.

Both languages set the host around every call into an extension; outside of one, `host()` raises NoSession.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from inspect import isawaitable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from cru.engine.parts import Parts
from cru.values.errors import CruError


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


def invoke(function: Callable[..., Any], *args: Any) -> Any:
    """How a plugin in Python is called: the result, or something to await for it."""
    return function(*args)


class Plugin(Struct):
    """The extension that owns what is registered now. `folder` is where its code lies; `config` is `[plugins.NAME]`; `invoke` calls one
    of its functions and gives the result, or something to await; `where` names the place that a function was written at."""

    name: str
    folder: Path
    dialect: str
    config: Mapping[str, Any] = {}
    invoke: Callable[..., Any] = invoke
    where: Callable[[Callable[..., Any]], str] = lambda function: ""


class Session(Struct):
    """What all plugins of a session tree share. `tasks` are background tasks, cancelled when the session closes; `shared` holds what
    families of names keep for the session, by family; `owned` says how to take back what a plugin registered there, by its name."""

    parts: Parts
    home: Path
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    shared: dict[str, Any] = field(default_factory=dict)
    owned: dict[str, list[Callable[[], Any]]] = field(default_factory=dict)


class Host(Struct, frozen=True):
    """The session and the calling plugin."""

    session: Session
    plugin: Plugin

    def own(self, undo: Callable[[], Any]) -> None:
        """Remember how to take back what the plugin just registered; it is called when the plugin is unloaded, the last one first.
        It may be called when the thing has gone already."""
        self.session.owned.setdefault(self.plugin.name, []).append(undo)


HOST: ContextVar[Host] = ContextVar("cru_host")


def host() -> Host:
    """The host of this call; raises NoSession."""
    try:
        return HOST.get()
    except LookupError:
        raise NoSession("no session: names of cru work only inside a running session") from None


class Values(tuple[Any, ...]):
    """Several return values: (value, nil) or (nil, error) in Lua, a tuple in Python."""


class Object:
    """A value with methods. `METHODS` are the ones that extensions may call (`obj:method(...)` in Lua), `FIELDS` what they may read."""

    METHODS: tuple[str, ...] = ()
    FIELDS: tuple[str, ...] = ()


async def call(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of an extension, whatever its language, and wait for what it returns."""
    result = function(*args)
    if isawaitable(result):
        waiting: Awaitable[Any] = result
        return await waiting
    return result
