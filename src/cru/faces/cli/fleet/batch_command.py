"""`cru batch`: the prompts of a file as tasks in the queue, worked on here until all of them are finished."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import ExitStatus, end_startup, show
from cru.faces.cli.event_loop import run_async
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.fleet.batch_face import BatchFace
from cru.faces.cli.fleet.batch_plan import SHORT, SWITCHES, VALUES, BatchPlan, make_plan, name_of
from cru.faces.cli.fleet.common import StopSignals, count_items, open_queue, registry_of, run_settings, say_line
from cru.faces.cli.fleet.conversations import copy_conversations, fetch_conversations
from cru.faces.cli.fleet.dry_run import show_plan
from cru.faces.cli.fleet.item_checks import ItemChecks
from cru.faces.cli.run_options import home_path
from cru.features.fleet import FleetError
from cru.features.fleet.database import SqliteDatabase
from cru.features.fleet.queue import RETRIED, BatchCounts, WorkQueue
from cru.features.fleet.records import TaskRow, TaskState, WorkStatus
from cru.features.fleet.results import ResultFile
from cru.features.fleet.worker import FleetWorker, WorkerLimits

PATIENCE = 60.0
"""Seconds in which a queue on this machine's disk must become usable again."""

HELP = """\
cru batch FILE                  ask each prompt of FILE: a JSON object a line ({"prompt": …, "id": …, "model": …}), or plain lines;
                                the same command again goes on, and runs nothing that is finished
cru batch --name NAME           go on with what the queue has of a batch
cru batch                       the batches in the queue, and how far they are
  --parallel N                  items at once (4)
  --out FILE                    results, one JSON object a line, as items end
  --dry-run                     say what would be asked and what that costs at least, and ask nothing
  --retry                       items that failed, were denied or took too long, once more
  --queue                       only put them into the queue, for `cru worker`
  --shared                      conversations are copied to the database, so that workers of any home go on with them
  --fetch                       bring the conversations of a --shared batch here
  --skip-bad                    leave out lines that are no items
  --model NAME --mode MODE (-t: trust) --agent NAME --seconds S --fuel N --max-cost DOLLARS --set KEY=VALUE (repeatable)
  --on-interrupted ask-model|retry|fail --strict-hooks
                                for items that do not say it themselves
  --max-deaths N                runs of an item that die before it is given up (5)
  --name NAME                   of the batch (made of the file's name and place)
  --forget                      let go of what the queue knows of this batch; the conversations stay
  --json                        one JSON object a line, for programs
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("batch", words, help=HELP, values=VALUES, switches=SWITCHES, short=SHORT, most=1)
    if args.show_help():
        return 0
    if not args.words and not args.has("--name"):
        return _list(open_queue(parsed).counts())
    if args.has("--forget"):
        return _forget(parsed, args)
    queue = open_queue(parsed)
    if args.has("--fetch"):
        return fetch_conversations(parsed, queue, name_of(args))
    plan = make_plan(args, parsed, queue)
    out = _result_file(args)
    if args.has("--dry-run"):
        return show_plan(plan, queue, parsed)
    if out is not None:
        out.require_writable()
    is_shared = args.has("--shared") or (not plan.file and queue.is_shared(plan.name))
    if is_shared:
        copy_conversations(parsed, queue, plan)
    added = queue.add(plan.name, plan.items, plan.max_deaths, is_shared)
    own = {item.id for _, item in plan.items}
    retried = _retry(queue, plan, own) if args.has("--retry") else 0
    if args.has("--queue"):
        say_line(
            f"{count_items(added + retried)} queued in {queue.place}; `cru worker` runs them, `{plan.command}` shows how far they are"
        )
        return 0
    rows = queue.rows(plan.name)
    finished = {row.id for row in rows if row.result is not None}
    notices = ItemChecks(home_path(parsed)).card_notices([item for _, item in plan.items if item.id not in finished])
    face = BatchFace(plan.name, own, args.has("--json"), out, notices)
    face.begin(rows)
    end_startup()
    return run_async(_work(parsed, plan, queue, face))


async def _work(parsed: Parsed, plan: BatchPlan, queue: WorkQueue, face: BatchFace) -> int:
    registry = registry_of(queue, parsed, 5.0)
    # a server may come back, but a disk of this machine stays full until someone makes room
    patience = PATIENCE if isinstance(queue.database, SqliteDatabase) else 0.0
    limits = WorkerLimits(plan.parallel, plan.name, once=True, patience=patience)
    worker = FleetWorker(queue, registry, run_settings(parsed), limits, face)
    signals = StopSignals(worker, face.note)
    watch = asyncio.create_task(face.watch(worker, queue))
    try:
        if face.left:
            await worker.run()
    finally:
        signals.remove()
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        await worker.close()
    rows = [row for row in await asyncio.to_thread(queue.rows, plan.name) if row.id in face.ids]
    queue.close()
    code = _exit_status(rows, signals.code) or (ExitStatus.ERROR if face.problem else ExitStatus.DONE)
    face.end(rows, code, plan.command)
    return code


def _exit_status(rows: Sequence[TaskRow], signal: int) -> int:
    if signal:
        return signal
    return (
        ExitStatus.ERROR if any(row.result is None or row.result.status is not WorkStatus.DONE for row in rows) else 0
    )


def _retry(queue: WorkQueue, plan: BatchPlan, own: set[str]) -> int:
    wrong = [
        row.id
        for row in queue.rows(plan.name)
        if row.id in own and row.result is not None and row.result.status in RETRIED
    ]
    return queue.retry(plan.name, wrong, plan.max_deaths)


def _result_file(args: CommandArguments) -> ResultFile | None:
    out = args.value("--out", "")
    return ResultFile(Path(os.path.abspath(out))) if out else None


def _forget(parsed: Parsed, args: CommandArguments) -> int:
    if not args.words and not args.has("--name"):
        raise UsageProblem("--forget needs the batch's file or --name")
    name = name_of(args)
    queue = open_queue(parsed)
    count = queue.forget(name)
    if not count:
        raise FleetError(f"nothing is known of a batch {name} that could be forgotten", "cru batch lists them")
    show(f"{name}: {count_items(count)} forgotten")
    return 0


def _list(batches: Sequence[BatchCounts]) -> int:
    if not batches:
        show("no batches; cru batch prompts.jsonl")
    for batch in batches:
        parts = [f"{count} {state.value}" for state, count in batch.states.items() if state is not TaskState.FINISHED]
        parts += [f"{count} {status.value}" for status in WorkStatus if (count := batch.statuses.get(status))]
        show(f"{batch.name}: {', '.join(parts)}")
    return 0
