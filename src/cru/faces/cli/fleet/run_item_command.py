"""`cru run-item`: one item as JSON in, its result as JSON out, for engines that have a queue of their own (Temporal, Hatchet, Ray)."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress

from msgspec.structs import replace

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import ExitStatus, await_input, end_startup, say, show
from cru.faces.cli.event_loop import run_async
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.fleet.common import run_settings
from cru.faces.cli.fleet.item_checks import ItemChecks
from cru.faces.cli.run_options import home_path, working_directory
from cru.features.fleet import BadItems
from cru.features.fleet.batch import prompt_key
from cru.features.fleet.items import ID, ItemDefaults, read_items
from cru.features.fleet.records import BatchItem, QueuedTask, TaskRow, TaskState, WorkResult, WorkStatus
from cru.features.fleet.results import result_line
from cru.features.fleet.run_task import TaskRun

HELD_SECONDS = 2.0
"""Until a run is tried again whose context another run holds."""
HELP = """\
cru run-item < ITEM.json        run one item of a batch, {"prompt": …, "id": …}, and print its result, one JSON object;
                                the same item again goes on, or prints the same answer: nothing is asked twice
  --name NAME                   of what the item belongs to, a part of its key (run-item)
Exit status: 0 there is an answer, 1 there is none, 143 SIGTERM ended it and it can go on
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("run-item", words, help=HELP, values=("--name",))
    if args.show_help():
        return 0
    name = args.value("--name", "run-item")
    if not ID.fullmatch(name):
        raise UsageProblem(f"--name has letters, digits, dots, dashes and underscores, 64 at most: {name}")
    item = _read(parsed, name)
    task = QueuedTask(name, item.id, prompt_key(name, item, 1), item, 0, 1)
    end_startup()
    result = run_async(_run(parsed, task))
    if result is None:
        return int(ExitStatus.TERMINATED)
    row = TaskRow(item.id, 1, TaskState.FINISHED, item.prompt, item.context, "", 0, result)
    show(result_line(row).decode())
    return int(ExitStatus.DONE if result.status is WorkStatus.DONE else ExitStatus.ERROR)


def _read(parsed: Parsed, name: str) -> BatchItem:
    """The item on standard input. Raises BadItems."""
    await_input("one item, a JSON object", 'for example: {"prompt": "Why is the sea salt?", "id": "sea"}')
    data = sys.stdin.buffer.read()
    read = ItemChecks(home_path(parsed)).check(
        read_items(data.replace(b"\n", b" "), ItemDefaults(name, working_directory(), BatchItem(""))), ()
    )
    read.require_good("standard input")
    if not read.items:
        raise BadItems(
            "there is no item on standard input", 'for example: {"prompt": "Why is the sea salt?", "id": "sea"}'
        )
    return read.items[0][1]


async def _run(parsed: Parsed, task: QueuedTask) -> WorkResult | None:
    """The result; None if a signal ended the run before there was one."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    has_waited = False
    while not stopped.is_set():
        run = TaskRun(run_settings(parsed), task)
        ending = asyncio.create_task(_end_when(stopped, run))
        begin = loop.time()
        try:
            end = await run.run()
        finally:
            ending.cancel()
        if end.result is not None:
            return replace(end.result, seconds=round(loop.time() - begin, 3))
        if end.why:
            return WorkResult(WorkStatus.DEAD, code=1, error=f"its run died: {end.why}", context=task.item.context)
        if end.is_held and not has_waited:
            say(f"cru: another run has the context {task.item.context}; this one waits")
            has_waited = True
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), HELD_SECONDS)
    return None


async def _end_when(stopped: asyncio.Event, run: TaskRun) -> None:
    await stopped.wait()
    run.end()
