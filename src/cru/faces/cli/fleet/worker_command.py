"""`cru worker`: take tasks from the queue until it is stopped."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path

from cru.core.compose.start import Start, load_settings, project_root
from cru.core.conversations.entries import new_id
from cru.core.models import ModelSettings
from cru.core.models.providers import split_model
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import ExitStatus, end_startup
from cru.faces.cli.event_loop import run_async
from cru.faces.cli.flags import Parsed
from cru.faces.cli.fleet.common import (
    DATABASE,
    StopSignals,
    at_least,
    has_database,
    open_queue,
    run_settings,
    say_line,
    seconds_of,
)
from cru.faces.cli.run_options import home_path
from cru.features.fleet import FleetError, QueueUnavailable, UnreadableTask
from cru.features.fleet.queue import MISSED, DeadWorker, WorkerInfo, WorkQueue
from cru.features.fleet.records import QueuedTask, WorkResult, WorkStatus

SHORT = {"--concurrency": "--parallel"}
HELP = f"""\
cru worker                      take tasks that `cru batch` queued, from any batch, until it is stopped
cru worker --once               end when no task is queued or runs any more
  --parallel N                  tasks at once (1); --concurrency is the same
  --grace SECONDS               what runs may finish within, after SIGTERM or Ctrl-C; then it is handed back (20)
  --beat SECONDS                between two signs of life (5); a worker that misses {MISSED} counts as dead, and others take its tasks

The queue is in the database that CRU_DATABASE_URL names: postgresql://…
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments(
        "worker", words, help=HELP, switches=("--once",), values=("--parallel", "--grace", "--beat"), short=SHORT
    )
    if args.show_help():
        return 0
    from cru.features.fleet.worker import FleetWorker, WorkerLimits  # Procrastinate, of the extra `fleet`

    limits = WorkerLimits(
        at_least(args, "--parallel", 1, 1),
        args.has("--once"),
        seconds_of(args, "--beat", 5.0, 0.05),
        _provider_of(parsed),
    )
    grace = seconds_of(args, "--grace", 20.0)
    if not has_database():
        raise FleetError(
            f"cru worker needs a database, which {DATABASE} names",
            "on one machine `cru batch FILE` asks all prompts of a file, several at once, without one",
        )
    queue = open_queue(parsed)
    say_line(f"working on {queue.place}, {limits.places} at once")
    _tell_left(queue)
    host = socket.gethostname()
    info = WorkerInfo(f"{host}-{os.getpid()}-{new_id()[:8]}", host, limits.places, limits.beat)
    end_startup()

    async def work() -> int:
        worker = FleetWorker(queue, info, run_settings(parsed), limits, WorkerLines())
        signals = StopSignals(worker, say_line, grace)
        try:
            await worker.run()
        finally:
            signals.remove()
            await worker.close()
        return signals.code

    code = run_async(work())
    return ExitStatus.DONE if code == ExitStatus.TERMINATED else code


def _provider_of(parsed: Parsed) -> Callable[[str], str]:
    """What tells the provider of a model, or of the one that the settings name; "default" if neither names one."""
    home, folder = home_path(parsed), Path.cwd()
    root = project_root(folder, os.environ, home)
    settings, _, _ = load_settings(Start(home, "", dict(os.environ), folder, root))
    models = settings.of(ModelSettings)
    return cache(lambda model: split_model(model or models.model, models, os.environ)[0] or "default")


def _tell_left(queue: WorkQueue) -> None:
    """What nobody here will take."""
    left = queue.left_tasks()
    if left.elsewhere:
        say_line(
            f"{left.elsewhere} queued tasks belong to another home: a worker takes them that has that folder as its home (CRU_HOME on a "
            "shared disk), for that is where their conversations are"
        )
    if left.newer:
        say_line(f"{left.newer} queued tasks are of a newer cru: update cru to work on them")


class WorkerLines:
    """A line for everything that happens."""

    def __init__(self) -> None:
        self._put_off: set[str] = set()
        self._limited: set[str] = set()

    def started(self, task: QueuedTask) -> None:
        again = f", after {task.deaths} that died" if task.deaths else ""
        say_line(f"{task.batch}/{task.id} begins{again}")

    def finished(self, task: QueuedTask, result: WorkResult) -> None:
        why = "" if result.status is WorkStatus.DONE else f": {result.error}"
        say_line(f"{task.batch}/{task.id} {result.status.value} after {result.seconds:.1f} s{why}")

    def died(self, task: QueuedTask, why: str) -> None:
        say_line(f"{task.batch}/{task.id} died: {why}")

    def put_off(self, task: QueuedTask) -> None:
        if task.key not in self._put_off:
            self._put_off.add(task.key)
            say_line(f"{task.batch}/{task.id} waits: another run has the context {task.item.context}")

    def limited(self, provider: str) -> None:
        if provider not in self._limited:
            self._limited.add(provider)
            say_line(f"the limit of {provider} is reached: its items wait (cru fleet status)")

    def lost(self, task: QueuedTask) -> None:
        say_line(f"{task.batch}/{task.id} is another worker's by now, and that one's result counts")

    def took_over(self, worker: DeadWorker) -> None:
        if worker.count:
            say_line(f"{worker.name} is dead ({worker.why}); what it had is queued again: {worker.count}")

    def unreadable(self, error: UnreadableTask) -> None:
        say_line(error.message)

    def unavailable(self, error: QueueUnavailable | None) -> None:
        say_line(f"{error.message}; what runs goes on, and it is tried again" if error else "the queue is back")
