"""What both commands need: the queue of this home, the settings of runs, signals."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import say
from cru.faces.cli.event_loop import exit_now
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import home_path
from cru.features.fleet.database import Database
from cru.features.fleet.local_batch import LocalBatch
from cru.features.fleet.queue import WorkQueue, home_id
from cru.features.fleet.queued_batch import QueuedBatch
from cru.features.fleet.run_task import RunSettings, environment_for_runs

RUN = (sys.executable, "-P", "-m", "cru.faces.cli.main", "--json-config")
"""-P: the folder of the run is no place of Python's modules."""
MOST = 1_000_000
"""Of numbers on the command line."""
DATABASE = "CRU_DATABASE_URL"
ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def fleet_folder(parsed: Parsed) -> Path:
    return home_path(parsed) / "fleet"


def batches_folder(parsed: Parsed) -> Path:
    """Of the journals of batches on this machine."""
    return fleet_folder(parsed) / "batches"


def has_database() -> bool:
    return bool(os.environ.get(DATABASE))


def open_batch(parsed: Parsed, name: str) -> LocalBatch | QueuedBatch:
    """The batch of this name, which need not be there yet. Raises FleetError, QueueUnavailable, OSError."""
    if has_database():
        return QueuedBatch(open_queue(parsed), name)
    return LocalBatch(batches_folder(parsed), name)


def open_queue(parsed: Parsed) -> WorkQueue:
    """The queue in the database that CRU_DATABASE_URL names. Raises FleetError, QueueUnavailable."""
    queue = WorkQueue(Database(os.environ[DATABASE]), home_id(fleet_folder(parsed)))
    queue.open()
    return queue


def run_settings(parsed: Parsed) -> RunSettings:
    return RunSettings(RUN, home_path(parsed), environment_for_runs(os.environ))


def seconds_of(args: CommandArguments, name: str, default: float, least: float = 0.0) -> float:
    """A value in seconds. Raises UsageProblem."""
    text = args.value(name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not least <= value < 1e9:
        raise UsageProblem(f"{name} needs seconds, {least:g} or more, not {text}")
    return value


def dollars_of(args: CommandArguments, name: str) -> float:
    """A value in US dollars, 0 if it is not there. Raises UsageProblem."""
    text = args.value(name, "0")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise UsageProblem(f"{name} needs US dollars, 0 or more, not {text}")
    return value


def at_least(args: CommandArguments, name: str, default: int, least: int) -> int:
    """A whole number. Raises UsageProblem."""
    value = args.number(name, default)
    if not least <= value <= MOST:
        raise UsageProblem(f"{name} needs {least} or more, {MOST} at most, not {value}")
    return value


class Stoppable(Protocol):
    """Runs items until it is stopped."""

    @property
    def running(self) -> int: ...

    def stop(self) -> None: ...

    def end(self) -> None: ...


class StopSignals:
    """The first signal lets what runs finish, the second ends it, the third leaves; `code` is the exit status that they ask for.
    `grace`: seconds after the first until it is as if the second came; None: any number."""

    def __init__(self, worker: Stoppable, note: Callable[[str], None], grace: float | None = None) -> None:
        self.code = 0
        self._worker, self._note, self._grace = worker, note, grace
        self._count = 0
        self._loop = asyncio.get_running_loop()
        for number in ALL:
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._loop.add_signal_handler(number, self._hear, number)

    def remove(self) -> None:
        for number in ALL:
            self._loop.remove_signal_handler(number)

    def _hear(self, number: int) -> None:
        self.code = self.code or 128 + number
        self._count += 1
        running = self._worker.running
        if self._count == 1 and running:
            again = "" if self._grace is None else f", {self._grace:g} s at most"
            self._note(
                f"nothing more is begun; {running} running may finish{again} (again: end them, they go on later)"
            )
            if self._grace is not None:
                self._loop.call_later(self._grace, self._worker.end)
        if self._count > 2:
            exit_now(self.code, self._loop)
        (self._worker.stop if self._count == 1 else self._worker.end)()


def count_items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"


def say_line(text: str) -> None:
    say(f"cru: {text}")
