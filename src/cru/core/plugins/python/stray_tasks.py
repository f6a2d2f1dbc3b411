"""What plugins in Python leave on the event loop by themselves (`asyncio.create_task`, `call_soon`), in threads and to finalizers: if it
fails, it is told whose it is; their tasks end with them.

What `cru.spawn` runs is reported by itself."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import cru
from cru.core.api.callbacks import CANCEL_SECONDS
from cru.core.api.host import HOST, Host, Plugin
from cru.core.events import NotYours
from cru.core.events.calling import describe_error
from cru.core.events.stream import Stream
from cru.core.plugins.effects import TASKS

OURS = os.path.dirname(cru.__file__) + os.sep
AT_ONCE = (SystemExit, KeyboardInterrupt)
"""The loop raises them as soon as they leave a task, and whoever runs the loop tells them here."""


class StrayTasks:
    """The exception handler of a loop, and the factory of its tasks.

    paths: files and folders of plugins, with the plugin's name
    tasks: those that a plugin's code began, with the plugin
    """

    def __init__(self, stream: Stream) -> None:
        self.paths: dict[str, str] = {}
        self.tasks: WeakKeyDictionary[asyncio.Task[object], Plugin] = WeakKeyDictionary()
        self._stream = stream

    @staticmethod
    def watch(host: Host, files: tuple[Path, ...], folder: Path) -> None:
        """From now on for this plugin, too; also when it is unloaded, for what it left may still run."""
        loop, stream = asyncio.get_running_loop(), host.session.parts.bus.stream
        handler = loop.get_exception_handler()
        if not isinstance(handler, StrayTasks) or handler._stream is not stream:
            handler = StrayTasks(stream)
            loop.set_exception_handler(handler)
            loop.set_task_factory(handler.begin)
            threading.excepthook = partial(handler.thread_failed, loop)
            sys.unraisablehook = partial(handler.finalizer_failed, loop)
        handler.paths.update(dict.fromkeys([str(folder), *map(str, files)], host.plugin.name))
        host.own(partial(handler.end, host.plugin), TASKS)

    def begin(self, loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        """A task of the loop. What runs cru's own code in it ends with the call that it belongs to."""
        task = asyncio.Task(work, loop=loop, **more)
        here = HOST.get(None)
        if here is not None and here.plugin.dialect == "python":
            code = getattr(work, "cr_code", None)
            if code is None or not code.co_filename.startswith(OURS):
                self.tasks[task] = here.plugin
        return task

    async def end(self, plugin: Plugin) -> None:
        """Cancel its tasks; one that does not end within two seconds is left, with a warning."""
        asking = asyncio.current_task()
        tasks = [
            task for task, whose in self.tasks.items() if whose is plugin and task is not asking and not task.done()
        ]
        for task in tasks:
            task.cancel()
        for task in (await asyncio.wait(tasks, timeout=CANCEL_SECONDS))[1] if tasks else ():
            code = getattr(task.get_coro(), "cr_code", None)
            place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
            self._stream.warn(f"{plugin.name}{place}: a task of its own does not end and is left", plugin.name)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A defect of cru goes on to the loop's own handler."""
        error = context.get("exception")
        if isinstance(error, AT_ONCE) and "future" in context:
            return  # it was told when the loop raised it
        owner, place = self._find_owner(error) if error is not None else ("", "")
        if error is None or not (owner or isinstance(error, (*AT_ONCE, NotYours)) or _is_foreign(error)):
            loop.default_exception_handler(context)
            return
        who = f"{owner} ({place})" if owner else "a plugin"
        self._stream.warn(f"{who}: a task of its own failed: {describe_error(error)}", owner)

    def thread_failed(self, loop: asyncio.AbstractEventLoop, failed: threading.ExceptHookArgs) -> None:
        """The hook of threads. That one ends itself (`sys.exit`) is no failure."""
        error = failed.exc_value
        if (
            error is None
            or isinstance(error, SystemExit)
            or not self._tell_later(loop, error, "a thread of its own failed")
        ):
            threading.__excepthook__(failed)

    def finalizer_failed(self, loop: asyncio.AbstractEventLoop, failed: sys.UnraisableHookArgs) -> None:
        """The hook of what nobody can catch, such as errors of `__del__`."""
        error = failed.exc_value
        if error is None or not self._tell_later(loop, error, "what it left was cleared away and failed"):
            sys.__unraisablehook__(failed)

    def _tell_later(self, loop: asyncio.AbstractEventLoop, error: BaseException, what: str) -> bool:
        """From any thread; False if it is no plugin's."""
        owner, place = self._find_owner(error)
        if not owner or loop.is_closed():
            return False
        text = f"{owner} ({place}): {what}: {describe_error(error)}"
        loop.call_soon_threadsafe(self._stream.warn, text, owner)
        return True

    def _find_owner(self, error: BaseException) -> tuple[str, str]:
        """The plugin, and its last line on the way to the error; ("", "") if none is on it."""
        plugin = ("", "")
        for file, line in _frames(error):
            near = max((path for path in self.paths if file.startswith(path)), key=len, default="")
            if near:
                plugin = self.paths[near], f"{file}:{line}"
        return plugin


def _is_foreign(error: BaseException) -> bool:
    return not any(file.startswith(OURS) for file, _ in _frames(error))


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    """File and line of each frame on the way to the error."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
