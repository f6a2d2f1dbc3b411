"""Work that cru may end: a turn, a handler's call. Once it is ended nothing new begins in it, whoever swallows the cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context
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


def check() -> None:
    """The door of everything that begins something: a dispatch, a tool call, a request, a process. Raises CancelledError if what runs
    now was asked to end."""
    if is_over():
        raise asyncio.CancelledError
