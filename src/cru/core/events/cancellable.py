"""Other people's coroutines: each runs in a task of its own, step by step, so that a cancel comes out whatever the code does with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from time import perf_counter
from typing import Any, TypeAlias

from cru.core.base.values.cancellation import SCOPE, Scope, begin, cancels, from_outside
from cru.core.events import CancelledItself
from cru.core.events.calling import SLOW, LastSlowStep

GRACE = 1.5
"""Seconds in which cancelled code may clean up."""
Tell: TypeAlias = Callable[[str, str], None]
"""Hears what code did that it should not, and where it waits ("" if that does not matter)."""
_KEPT: list[object] = []
"""Coroutines that do not let themselves be closed: Python would complain when it collects them."""


async def run_cancellable(work: Awaitable[Any], tell: Tell) -> Any:
    """Await `work` and give its result. `tell` hears once of a step that is too long, and if `work` does not end. Raises what it raises,
    and CancelledItself if its task is cancelled by anybody but us.

    When we are cancelled, so is `work`; the cancel goes on once it has ended, whatever it returns, or after GRACE: then no step of
    it is taken any more. A second cancel does not wait.
    """
    scope, before = Scope(SCOPE.get()), cancels()
    steps = _Steps(work, scope, tell)
    task = begin(_carried(steps), scope)
    try:
        value, raised = await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.done() and cancels() == before and not scope.over:
            raise CancelledItself from None
        await _ended(task, steps, scope, tell)
        raise
    if raised is not None:
        raise raised
    return value


async def _ended(task: asyncio.Task[Any], steps: _Steps, scope: Scope, tell: Tell) -> None:
    task.cancel()
    try:
        await asyncio.wait([task], timeout=GRACE)
    finally:
        if not task.done():
            tell("it swallowed the interrupt, did not end and is left", steps.where)
            scope.leave()
            task.cancel()  # its last step, if it can still be woken


async def _carried(steps: _Steps) -> tuple[Any, BaseException | None]:
    """Errors as values: some would end the loop when they leave a task."""
    try:
        return await steps, None
    except BaseException as raised:  # carried to who awaits the task, and raised or reported there
        if not isinstance(raised, KeyboardInterrupt) and from_outside(raised):
            raise
        return None, raised


class _Steps:
    """Awaits `work`, until it has ended or is left."""

    __slots__ = ("_scope", "_tell", "_told", "_work")

    def __init__(self, work: Awaitable[Any], scope: Scope, tell: Tell) -> None:
        self._work = work
        self._scope = scope
        self._tell = tell
        self._told = False

    @property
    def where(self) -> str:
        """The place at which it waits."""
        frame = getattr(self._work, "cr_frame", None)
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""

    def __await__(self) -> Generator[Any, Any, Any]:
        work = self._work.__await__()
        thrown: BaseException | None = None
        while True:
            began = perf_counter()
            try:
                waiting = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as end:
                return end.value
            finally:
                self._timed(began)
            try:
                thrown = None
                yield waiting
            except BaseException as raised:  # noqa: BLE001  handed on to the work: it is for it to deal with
                thrown = raised
            if self._scope.left:
                self._close(work)
                raise asyncio.CancelledError

    def _close(self, work: Any) -> None:
        try:
            work.close()
        except BaseException:  # noqa: BLE001  that it did not end is told
            _KEPT.extend((work, self._work))

    def _timed(self, began: float) -> None:
        now = perf_counter()
        if now - began > SLOW and not self._told and LastSlowStep.at < began:
            LastSlowStep.at, self._told = now, True
            self._tell(f"worked {(now - began) * 1000:.0f} ms without a pause, and everything else waited", "")


async def taken_back(before: int) -> None:
    """Undo the cancels of this task beyond `before`, which code made that had no right to. One that comes meanwhile holds."""
    task = asyncio.current_task()
    assert task is not None
    while task.cancelling() > before:
        task.uncancel()
    try:
        await asyncio.sleep(0)  # the loop throws the cancel in here
    except asyncio.CancelledError:
        if task.cancelling() > before:
            raise
