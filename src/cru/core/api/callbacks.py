"""Functions of extensions that are kept and called later, in the name of the plugin that gave them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.core.api.host import HOST, Host, PluginSession, call, host
from cru.core.base.values.cancellation import Scope, begin
from cru.core.base.values.errors import CruError
from cru.core.events.calling import describe_error
from cru.core.events.cancellable import GRACE
from cru.core.events.stamp import FRAME, TOP

if TYPE_CHECKING:
    import asyncio

MAX_FAILURES = 100
CANCEL_SECONDS = GRACE + 0.5
"""Seconds that a cancelled task may take to end: what a plugin in Python has, and a little more."""

_BACKGROUND_TASK: ContextVar[asyncio.Task[object] | None] = ContextVar("cru_background", default=None)
"""The background task in which this runs."""


class Callback(Struct, frozen=True):
    """A function and the host under which it was registered."""

    function: Callable[..., Any]
    host: Host

    async def call(self, *args: object) -> object:
        """Call it in its owner's name."""
        plugin = self.host.plugin
        # A function of Lua is its own boundary, and may return several values.
        work = (plugin.invoke,) if plugin.dialect == "python" else ()
        token = HOST.set(self.host)
        try:
            return await call(*work, self.function, *args)
        finally:
            HOST.reset(token)

    def detached(self) -> Callback:
        """The same for work that may go on for ever: the waiting of a function of Lua is limited otherwise."""
        return Callback(getattr(self.function, "detached", self.function), self.host)

    async def guarded(self, context: str, *args: object) -> object:
        """Call it; an error is reported and kept, and None comes back."""
        try:
            return await self.call(*args)
        except Exception as error:  # noqa: BLE001  the boundary around code of an extension: reported
            report_failure(self.host, error, context)
            return None


class CallbackFailure(Struct, frozen=True):
    """One error of a plugin; `at` in monotonic seconds."""

    plugin: str
    error: str
    context: str
    at: float


def bind_callback(function: Callable[..., object]) -> Callback:
    return Callback(function, host())


def report_failure(owner: Host, error: BaseException, context: str) -> None:
    """Report an error of a plugin, and keep it for `cru.errors.recent`."""
    text = str(error_value(error)) or describe_error(error)
    recent_failures(owner.session).append(CallbackFailure(owner.plugin.name, text, context, time.monotonic()))
    owner.session.parts.bus.stream.warn(f"{owner.plugin.name}: {context}: {text}", owner.plugin.name)


def recent_failures(session: PluginSession) -> deque[CallbackFailure]:
    """The last errors of the session, the oldest first."""
    return session.family_state("errors", lambda: deque[CallbackFailure](maxlen=MAX_FAILURES))


def error_value(error: BaseException) -> object:
    """What an error is for an extension: the object that its own code raised, else the message."""
    original = getattr(error, "original", None)
    if original is not None:
        return original
    if isinstance(error, CruError):
        return error.message
    return str(error) or type(error).__name__


def run_in_background(owner: Host, work: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> asyncio.Task[Any]:
    """Run `work(*args)` beside everything else until the plugin is unloaded or the session closes. Events that it raises go to
    everybody, its owner too."""

    async def fresh() -> None:
        FRAME.set(TOP)
        _BACKGROUND_TASK.set(task)
        await work(*args)

    session, name = owner.session, owner.plugin.name
    task = begin(fresh(), Scope())
    session.tasks[task] = name
    task.add_done_callback(lambda done: session.tasks.pop(done, None))
    owner.own(lambda: cancel_background(session, name), "tasks")
    return task


async def cancel_background(session: PluginSession, owner: str | None = None) -> None:
    """End the background tasks of a plugin, or of all, and wait for them; not the one that asks for it. One that does not end in time
    is left, with a warning."""
    asking = _BACKGROUND_TASK.get()
    tasks = [task for task, name in session.tasks.items() if owner in (None, name) and task is not asking]
    for task in tasks:
        task.cancel()
    if not tasks:
        return
    _, left = await asyncio.wait(tasks, timeout=CANCEL_SECONDS)
    for task in left:
        name = session.tasks.get(task, "")
        session.parts.bus.stream.warn(f"{name}: a task of it does not end and is left", name)
