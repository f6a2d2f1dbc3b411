"""Work that ends early: it is asked to (a turn, a handler, a background task and all that they began), or its time is over."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context
from math import inf
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Scope:
    """One piece of work, and what it is part of. Tasks that are begun inside belong to it, too."""

    __slots__ = ("_around", "_ended", "_left")

    def __init__(self, around: Scope | None = None) -> None:
        self._around = around
        self._ended = self._left = False

    @property
    def over(self) -> bool:
        """Whether it was asked to end: it may clean up, and begin nothing."""
        return self._ended or (self._around is not None and self._around.over)

    @property
    def left(self) -> bool:
        """Whether it did not end in time: no step of it is taken any more."""
        return self._left or (self._around is not None and self._around.left)

    def end(self) -> None:
        self._ended = True

    def leave(self) -> None:
        self._ended = self._left = True


SCOPE: ContextVar[Scope | None] = ContextVar("cru_scope", default=None)


def begin(work: Coroutine[Any, Any, T], scope: Scope) -> asyncio.Task[T]:
    """A task for this work, in its scope."""
    context = copy_context()
    context.run(SCOPE.set, scope)
    return asyncio.get_running_loop().create_task(work, context=context)


def is_over() -> bool:
    """Whether what runs now was asked to end."""
    scope = SCOPE.get()
    return scope is not None and scope.over


def is_interrupted() -> bool:
    """Whether a signal that ends what runs waits for the event loop, which is kept from it by what runs now (faces/cli/event_loop.py)."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return False
    return bool(getattr(loop, "is_interrupted", False))


def check() -> None:
    """Raise CancelledError if what runs now was asked to end. Whatever begins something calls it: a dispatch, a tool call, a request, a
    process."""
    scope = SCOPE.get()
    if scope is not None and scope.over:
        raise asyncio.CancelledError


def from_outside(raised: BaseException) -> bool:
    """Whether the work is being ended (Ctrl-C, a cancelled task, a closed coroutine), rather than other people's code having raised
    this by hand."""
    if isinstance(raised, asyncio.CancelledError):
        return _is_cancelled()
    if isinstance(raised, GeneratorExit):  # thrown in where the coroutine waits, and by hand further down
        return raised.__traceback__ is None or raised.__traceback__.tb_next is None
    return isinstance(raised, KeyboardInterrupt) and _is_pressed()


def running_task() -> asyncio.Task[Any] | None:
    """The task that runs now; None outside of any."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop
        return None


def cancels() -> int:
    """How often the running task was asked to end; 0 outside of any."""
    task = running_task()
    return 0 if task is None else task.cancelling()


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0 or is_over()


def _is_pressed() -> bool:
    """Whether Ctrl-C may raise something: while a session runs the loop hears of the signal instead."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


class TimeLimit:
    """Cancels the running task after so many seconds, and raises TimeoutError at the end of its `with` block.

    It behaves like `asyncio.timeout`. That one starts and cancels a timer at each use, which takes 25 Python calls and three system
    calls, and requests pass here in every round; all limits of an event loop share one timer, which is moved only when a limit ends
    earlier than the timer.

    seconds: None for no limit; 0 or less ends the block at its first wait.
    """

    __slots__ = ("_cancelling", "_is_over", "_seconds", "_task", "_timer", "when")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = inf if seconds is None else seconds
        self._is_over = False

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("TimeLimit must be used in a task")
        self._task, self._cancelling = task, task.cancelling()
        timer = self._timer = _last[0] if _last[0].loop is loop else _new_timer(loop)
        if self._seconds < inf:
            timer.limits.add(self)
            self.when = loop.time() + self._seconds
            if self.when < timer.due:
                timer.set(self.when)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.limits.discard(self)
        if self._is_over and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancel the task; its block raises TimeoutError, unless someone else has cancelled the task as well."""
        self._is_over = True
        self._task.cancel()


class _SharedTimer:
    """The one timer of a loop. It is due at the earliest end of `limits`, or before: then it is set again."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.limits: set[TimeLimit] = set()
        self.due = inf
        self._handle: asyncio.TimerHandle | None = None

    def set(self, when: float) -> None:
        """Let it be due at this time of the loop's clock."""
        if self._handle is not None:
            self._handle.cancel()
        assert self.loop is not None
        self.due, self._handle = when, self.loop.call_at(when, self._ring)

    def _ring(self) -> None:
        assert self.loop is not None
        self.due, self._handle = inf, None
        now = self.loop.time()
        for limit in [limit for limit in self.limits if limit.when <= now]:
            self.limits.discard(limit)
            limit.expire()
        if self.limits:
            self.set(min(limit.when for limit in self.limits))


_last = [_SharedTimer(None)]
"""The timer that was used last. A loop that takes turns with another one has several timers, which is only less thrifty."""


def _new_timer(loop: asyncio.AbstractEventLoop) -> _SharedTimer:
    _last[0] = _SharedTimer(loop)
    return _last[0]
