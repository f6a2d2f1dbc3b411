"""A test leaves nothing behind: no descriptor, thread, task, child process or temporary file. The one that does so fails, by its name.

What shows up only later (a warning while garbage is collected, a dead worker) would be blamed on whichever test runs then.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from tests.kit import forked
from tests.kit.closing import close_all
from tests.kit.processes import carriers, kill_all
from tests.kit.waiting import INTERVAL

GRACE = 10.0
"""Seconds for what is ending by itself, on a busy machine."""
MOMENT = 0.1
"""Seconds for what has been told to end; then it is worth a look through all objects."""


def descriptors() -> dict[str, str]:
    """The open ones of this process, and what each is. Those of event loops do not count: the HTTP library keeps its own as long as the
    process lives, and a loop of asyncio has sockets besides."""
    opened = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            opened[number] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            pass  # that of the listing itself
    return {
        number: kind
        for number, kind in opened.items()
        if kind not in ("anon_inode:[eventpoll]", "anon_inode:[eventfd]")
    }


def children() -> set[int]:
    """Of this process, ended or not."""
    pids: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children", "rb", buffering=0) as file:
                pids.update(map(int, file.readall().split()))
        except FileNotFoundError:
            pass  # a thread that has just ended
    return pids


def command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "ended"
    return b" ".join(words).decode(errors="replace").strip() or "ended, not awaited"


def pending_tasks() -> set[asyncio.Task[object]]:
    """Of every loop, running or not."""
    name = "_scheduled_tasks" if hasattr(asyncio.tasks, "_scheduled_tasks") else "_all_tasks"  # Python 3.12 renamed it
    return {task for task in set(getattr(asyncio.tasks, name)) if not task.done()}


class Belongings:
    """What this process has. `leaks` says what has come since the last `take`."""

    def __init__(self, temporary: Path, mark: str) -> None:
        self._temporary, self._mark = temporary, mark.encode()
        self._known = set(os.listdir("/proc"))  # nothing that runs already carries the mark
        self.take()

    def take(self) -> None:
        self._threads = set(threading.enumerate())
        self._tasks = pending_tasks()
        self._children = children()
        self._descriptors = descriptors()

    def leaks(self) -> list[str]:
        server = forked.running()
        opened = descriptors()
        if server is not None:
            opened.pop(str(server.descriptor), None)
        return [
            *(f"thread {thread.name}" for thread in threading.enumerate() if thread not in self._threads),
            *(f"task {task!r}" for task in pending_tasks() - self._tasks),
            *(f"process {pid}: {command(pid)}" for pid in self._processes()),
            *(
                f"descriptor {number}: {kind}"
                for number, kind in opened.items()
                if self._descriptors.get(number) != kind
            ),
            *(f"temporary file {self._temporary / name}" for name in os.listdir(self._temporary)),
        ]

    def forget(self) -> None:
        """End and remove what can be: it is reported once."""
        processes = self._processes()
        kill_all(processes)
        self._known |= set(map(str, processes))
        for path in self._temporary.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _processes(self) -> set[int]:
        server = forked.running()
        own = {server.pid} if server else set()
        return (children() - self._children - own) | carriers(self._mark, self._known)


def _remaining(belongings: Belongings, seconds: float) -> list[str]:
    """What is still there after that time."""
    end = time.monotonic() + seconds
    while (leaks := belongings.leaks()) and time.monotonic() < end:
        time.sleep(INTERVAL)
    return leaks


class Leaks:
    """The plugin; tests/conftest.py registers it. It gives a test one fixture: each one more costs as much as the look at what is left.

    A test that has failed need not leave all tidy. The garbage collector looks at nothing of what is loaded before the tests, neither while
    it is loaded, which would take a fifth of that time, nor later.
    """

    def __init__(self) -> None:
        self._belongings: Belongings
        self._failed = False

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()

    def pytest_collection_finish(self) -> None:
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        mark = str(session.config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]
        with tempfile.TemporaryDirectory(prefix="cru-tests-") as temporary, pytest.MonkeyPatch.context() as patch:
            os.chmod(temporary, 0o755)  # some tests look from another user's side
            patch.setenv("TMPDIR", temporary)
            patch.setattr(tempfile, "tempdir", temporary)
            self._belongings = Belongings(Path(temporary), mark)
            return (yield)

    @pytest.fixture(autouse=True)
    def leaves_nothing(self) -> Iterator[None]:
        """Set up before all that a test uses, so that it looks when that is gone."""
        self._failed = False
        self._belongings.take()
        yield
        close_all()
        if not _remaining(self._belongings, MOMENT):
            return
        gc.collect()  # what is open in a circle, and warnings that belong to this test
        leaks = _remaining(self._belongings, GRACE)
        self._belongings.forget()
        if leaks and not self._failed:
            pytest.fail(f"left behind: {'; '.join(leaks)}", pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._failed = self._failed or report.failed
        return report
