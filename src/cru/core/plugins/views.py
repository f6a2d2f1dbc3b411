"""Views that plugins bring, whatever their language: a person opens one by its name, and its keys are its own while it is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from cru.core.api.host import HOST, Host, NamespaceError, Object, PluginSession, call
from cru.core.plugins.errors import ExtensionError
from cru.core.plugins.tools import spec_entries

if TYPE_CHECKING:
    from cru.core.base.values.oil.model import OilNode

VIEW_KEYS = ("desc", "fn", "handler")
SECONDS = 5.0
"""For one drawing, and for one key."""


class ViewFailed(ExtensionError):
    """A view could not be drawn, or its handler failed: it is closed."""


class PluginView(Struct, frozen=True):
    """One view.

    host: whose it is
    draw: fn(ctx) gives a node of `cru.oil`
    handler: fn(key, ctx), None: it has no keys of its own
    """

    name: str
    description: str
    host: Host
    draw: Callable[..., Any]
    handler: Callable[..., Any] | None = None


class Views(Struct):
    """All views of a session, by name. handlers: those that an annotation gave, with the name of the plugin"""

    views: dict[str, PluginView] = field(default_factory=dict)
    handlers: dict[tuple[str, str], Callable[..., Any]] = field(default_factory=dict)

    def drop(self, owner: str) -> None:
        self.views = {name: view for name, view in self.views.items() if view.host.plugin.name != owner}
        self.handlers = {key: work for key, work in self.handlers.items() if key[0] != owner}

    def handler(self, view: PluginView) -> Callable[..., Any] | None:
        return view.handler or self.handlers.get((view.host.plugin.name, view.name))


def views_of(session: PluginSession) -> Views:
    return session.family_state("views", Views)


def add_views(host: Host, views: object) -> None:
    """The views of a plugin's table: name → {desc, fn, handler}. Raises PluginFailed."""
    for entry in spec_entries(host, "views", views, VIEW_KEYS):
        handler = entry.spec.get("handler")
        if handler is not None and not callable(handler):
            host.problem(f"{entry.label}: `handler` must be a function fn(key, ctx)")
            handler = None
        add_view(host, entry.name, entry.description, entry.function, handler)


def add_view(
    host: Host, name: str, description: str, draw: Callable[..., Any], handler: Callable[..., Any] | None = None
) -> None:
    """Let a person open `/view name`. A name that is taken stays with whom it belongs to, and the plugin is told."""
    known = views_of(host.session)
    taken = known.views.get(name)
    if taken is not None:
        host.problem(f"the view {name} is left out: {taken.host.plugin.name} has a view of that name")
        return
    known.views[name] = PluginView(name, description, host, draw, handler)
    host.own(lambda: known.drop(host.plugin.name), "views")


def add_handler(host: Host, name: str, handler: Callable[..., Any]) -> None:
    """The keys of the view of that name of the same plugin."""
    known = views_of(host.session)
    known.handlers[host.plugin.name, name] = handler
    host.own(lambda: known.drop(host.plugin.name), "views")


class ViewContext(Object):
    """What a view's functions get. ctx.width, ctx.height: columns and rows there are; ctx:set(key, value), ctx:get(key): kept while it is
    open; ctx:redraw(): draw it anew, from anywhere; ctx:close_view()."""

    METHODS = ("close_view", "redraw", "set", "get")
    FIELDS = ("width", "height", "name")

    def __init__(self, name: str, changed: Callable[[], None]) -> None:
        self.name = name
        self.width, self.height = 80, 24
        self.is_closed = False
        self._values: dict[str, object] = {}
        self._changed = changed

    def close_view(self) -> None:
        self.is_closed = True
        self._changed()

    def redraw(self) -> None:
        self._changed()

    def set(self, key: str, value: object = None) -> None:
        self._values[key] = value

    def get(self, key: str) -> object:
        return self._values.get(key)


class OpenView:
    """A view while it is open. changed: called when it closes itself, or wants to be drawn"""

    def __init__(self, view: PluginView) -> None:
        self.view = view
        self.changed: Callable[[], None] = _nothing
        self._context = ViewContext(view.name, lambda: self.changed())
        self._handler = views_of(view.host.session).handler(view)

    @property
    def label(self) -> str:
        return f"the view {self.view.name} of {self.view.host.plugin.name}"

    @property
    def is_closed(self) -> bool:
        return self._context.is_closed

    async def draw(self, columns: int, rows: int) -> OilNode:
        """What it shows now. Raises ViewFailed."""
        from cru.core.api.oil.nodes import to_node
        from cru.core.api.oil.view import view_of

        self._context.width, self._context.height = columns, rows
        value = await self._call(self.view.draw, self._context)
        try:
            return view_of(to_node(self.label, value))
        except NamespaceError as error:
            raise ViewFailed(f"{error.message}; it is closed", error.hint) from error

    async def press(self, key: str) -> bool:
        """Let it have a key; whether it says that it took it. Raises ViewFailed."""
        return self._handler is not None and await self._call(self._handler, key, self._context) is True

    async def _call(self, function: Callable[..., Any], *args: object) -> object:
        token = HOST.set(self.view.host)
        try:
            async with asyncio.timeout(SECONDS) as clock:
                return await call(self.view.host.plugin.invoke, function, *args)
        except NamespaceError as error:
            raise ViewFailed(f"{self.label} failed and is closed: {error.message}", error.hint) from error
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise ViewFailed(f"{self.label} took longer than {SECONDS:g} s and is closed") from error
        finally:
            HOST.reset(token)


def _nothing() -> None:
    """Nobody draws it."""
