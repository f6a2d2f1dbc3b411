"""Force the log to the disk beside the next request, in one thread per turn.

A task around `asyncio.to_thread` does the same with six objects, two wake-ups of the event loop and some seventy Python calls in each
round. Here the thread waits on a lock, and the loop is woken only if someone waits for the sync at that moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock, Thread


class LogSync:
    """Runs `sync` when asked. All methods belong to the event loop's thread; nothing may be begun after `finish`."""

    def __init__(self, sync: Callable[[], object]) -> None:
        self._sync = sync
        self._loop = asyncio.get_running_loop()
        self._guard = Lock()  # for _is_running and _waiter, which both threads use
        self._go = Lock()  # held while the thread has nothing to do
        self._go.acquire()
        self._due: asyncio.Handle | None = None
        self._thread: Thread | None = None
        self._is_closed = self._is_running = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    def begin_soon(self) -> None:
        """Begin when the running task waits for the first time: the next request goes out before another thread competes with it. The
        caller has waited for the sync before."""
        self._due = self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._due = None
        if self._thread is None:
            thread = Thread(target=self._run, name="cru-log-sync", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):  # the system allows no other thread: the loop waits for the disk itself
                self._sync_here()
                return
            self._thread = thread
        self._is_running = True
        self._go.release()

    def _sync_here(self) -> None:
        try:
            self._sync()
        except Exception as error:  # noqa: BLE001  raised again in the task that waits
            self._error = error

    async def wait(self) -> None:
        """Wait until what was begun is done, and raise what it raised."""
        if self._due is not None:
            self._due.cancel()
            self._begin()
        if self._is_running:
            with self._guard:
                waiter = self._waiter = self._loop.create_future() if self._is_running else None
            if waiter is not None:
                await waiter
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def finish(self) -> None:
        """Wait as `wait` does, and end the thread whatever comes of it."""
        try:
            await self.wait()
        finally:
            self._close()

    def _close(self) -> None:
        """End the thread. If the wait was cancelled, the thread ends after the sync that it runs, or with the program."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._is_closed = True
            if not self._is_running:
                self._go.release()
                thread.join()

    def _run(self) -> None:
        while True:
            self._go.acquire()
            if self._is_closed and not self._is_running:
                return
            try:
                self._sync()
            except BaseException as error:  # noqa: BLE001  raised again in the task that waits
                self._error = error
            with self._guard:
                self._is_running = False
                waiter, self._waiter = self._waiter, None
            if waiter is not None:
                self._wake(waiter)
            if self._is_closed:
                return

    def _wake(self, waiter: asyncio.Future[None]) -> None:
        try:
            self._loop.call_soon_threadsafe(_resolve, waiter)
        except RuntimeError:  # the loop is closed, so no task waits any more
            pass


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
