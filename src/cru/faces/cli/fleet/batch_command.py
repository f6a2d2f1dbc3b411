"""`cru batch`: the prompts of a file, worked on here or, with a database, by workers, until all of them are finished."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import ExitStatus, end_startup, show
from cru.faces.cli.event_loop import run_async
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.fleet.batch_face import LOOK_SECONDS, BatchFace
from cru.faces.cli.fleet.batch_plan import SHORT, SWITCHES, VALUES, BatchPlan, make_plan, name_of, part_of
from cru.faces.cli.fleet.common import (
    DATABASE,
    StopSignals,
    batches_folder,
    count_items,
    describe_batch,
    has_database,
    open_batch,
    open_queue,
    run_settings,
    say_line,
)
from cru.faces.cli.fleet.conversations import copy_conversations, fetch_conversations
from cru.faces.cli.fleet.dry_run import show_plan
from cru.faces.cli.fleet.item_checks import ItemChecks
from cru.faces.cli.run_options import home_path
from cru.features.fleet import FleetError, QueueUnavailable
from cru.features.fleet.batch import RETRIED, BatchCounts
from cru.features.fleet.local_batch import LocalBatch, local_batches
from cru.features.fleet.pool import ItemPool
from cru.features.fleet.queued_batch import QueuedBatch, queued_batches
from cru.features.fleet.records import TaskRow, WorkStatus
from cru.features.fleet.results import ResultFile

NEED_DATABASE = ("--queue", "--shared", "--fetch", "--priority")

HELP = """\
cru batch FILE                  ask each prompt of FILE: a JSON object a line ({"prompt": …, "id": …, "model": …}), or plain lines;
                                the same command again goes on, and runs nothing that is finished
cru batch --name NAME           go on with a batch without its file
cru batch                       the batches, and how far they are
  --parallel N                  items at once (4)
  --out FILE                    results, one JSON object a line, as items end
  --dry-run                     say what would be asked and what that costs at least, and ask nothing
  --retry                       items that failed, were denied or took too long, once more
  --skip-bad                    leave out lines that are no items
  --shard I/N                   only every N-th item, the I-th part of N: for a job array with one batch a machine
  --model NAME --mode MODE (-t: trust) --agent NAME --seconds S --fuel N --max-cost DOLLARS --set KEY=VALUE (repeatable)
  --on-interrupted ask-model|retry|fail --strict-hooks
                                for items that do not say it themselves
  --max-deaths N                runs of an item that die before it is given up (5)
  --name NAME                   of the batch (made of the file's name and place)
  --forget                      remove what is known of this batch; the conversations stay
  --json                        one JSON object a line, for programs
With a database (CRU_DATABASE_URL=postgresql://…) the items run in `cru worker`, on any number of machines:
  --queue                       queue the items and do not wait for them
  --priority N                  of the items, 0 by default: higher ones go first
  --shared                      copy the conversations to the database, so that workers of any home go on with them
  --fetch                       bring the conversations of a --shared batch here
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("batch", words, help=HELP, values=VALUES, switches=SWITCHES, short=SHORT, most=1)
    if args.show_help():
        return 0
    for name in NEED_DATABASE:
        if args.has(name) and not has_database():
            raise UsageProblem(f"{name} needs a database, which {DATABASE} names", "cru batch --help says how")
    if args.has("--forget"):
        return _forget(parsed, args)
    if not args.words and not args.has("--name"):
        return _list(queued_batches(open_queue(parsed)) if has_database() else local_batches(batches_folder(parsed)))
    batch = open_batch(parsed, name_of(args), part_of(args))
    if args.has("--fetch"):
        assert isinstance(batch, QueuedBatch)
        return fetch_conversations(parsed, batch)
    plan = make_plan(args, parsed, batch)
    out = _result_file(args)
    if args.has("--dry-run"):
        return show_plan(plan, batch, parsed)
    if out is not None:
        out.require_writable()
    face = BatchFace(plan.name, {item.id for _, item in plan.items}, args.has("--json"), out)
    if isinstance(batch, LocalBatch):
        return _work_here(args, parsed, plan, batch, face)
    return _queue(args, parsed, plan, batch, face)


def _work_here(args: CommandArguments, parsed: Parsed, plan: BatchPlan, batch: LocalBatch, face: BatchFace) -> int:
    batch.hold(lambda: say_line(f"another run works on the batch {plan.name}; this one waits for it"))
    try:
        batch.add(plan.items, plan.max_deaths)
        if args.has("--retry"):
            batch.retry(_wrong(batch, face.ids), plan.max_deaths)
        _begin(parsed, plan, batch, face)
        pool = ItemPool(batch, face.ids, plan.parallel, run_settings(parsed), face)
        code = run_async(_work(pool, face))
        rows = [row for row in batch.rows() if row.id in face.ids]
    finally:
        batch.close()
    return _end(face, rows, code, plan.command)


async def _work(pool: ItemPool, face: BatchFace) -> int:
    signals = StopSignals(pool, face.note)
    watch = asyncio.create_task(face.watch(pool))
    try:
        await pool.run()
    finally:
        signals.remove()
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
    return signals.code


def _queue(args: CommandArguments, parsed: Parsed, plan: BatchPlan, batch: QueuedBatch, face: BatchFace) -> int:
    is_shared = args.has("--shared") or (not plan.file and batch.is_shared())
    if is_shared:
        copy_conversations(parsed, batch, plan)
    queued = batch.add(plan.items, plan.max_deaths, is_shared, args.number("--priority", 0))
    if args.has("--retry"):
        queued += batch.retry(_wrong(batch, face.ids), plan.max_deaths)
    if args.has("--queue"):
        say_line(
            f"{count_items(queued)} queued in {batch.place}; `cru worker` runs them, `{plan.command}` shows how far they are"
        )
        return 0
    _begin(parsed, plan, batch, face)
    code = _watch(batch, face)
    rows = [row for row in batch.rows() if row.id in face.ids]
    batch.close()
    return _end(face, rows, code, plan.command)


def _watch(batch: QueuedBatch, face: BatchFace) -> int:
    """Tell what workers finish until all is finished, or until Ctrl-C, which ends nothing but this; the exit status of a signal."""
    is_gone = False
    try:
        while face.left:
            try:
                for row in batch.finished_since(face.known):
                    face.finished(row)
                face.show(batch.running())
            except QueueUnavailable as error:
                if not is_gone:
                    face.note(f"{error.message}; it is tried again")
                is_gone = True
            else:
                if is_gone:
                    face.note("the queue is back")
                is_gone = False
            if face.left:
                time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        face.note("the items go on in the queue")
        return int(ExitStatus.INTERRUPTED)
    return 0


def _begin(parsed: Parsed, plan: BatchPlan, batch: LocalBatch | QueuedBatch, face: BatchFace) -> None:
    rows = batch.rows()
    finished = {row.id for row in rows if row.result is not None}
    checks = ItemChecks(home_path(parsed))
    face.begin(rows, checks.card_notices([item for _, item in plan.items if item.id not in finished]))
    end_startup()


def _end(face: BatchFace, rows: Sequence[TaskRow], signal: int, command: str) -> int:
    is_done = all(row.result is not None and row.result.status is WorkStatus.DONE for row in rows)
    code = signal or (ExitStatus.DONE if is_done and not face.problem else ExitStatus.ERROR)
    face.end(rows, code, command)
    return code


def _wrong(batch: LocalBatch | QueuedBatch, own: set[str]) -> list[str]:
    return [row.id for row in batch.rows() if row.id in own and row.result is not None and row.result.status in RETRIED]


def _result_file(args: CommandArguments) -> ResultFile | None:
    out = args.value("--out", "")
    if out and args.words and os.path.realpath(out) == os.path.realpath(args.words[0]):
        raise UsageProblem(f"--out {out} is the file of the items", "name another file: results replace what is in it")
    return ResultFile(Path(os.path.abspath(out))) if out else None


def _forget(parsed: Parsed, args: CommandArguments) -> int:
    if not args.words and not args.has("--name"):
        raise UsageProblem("--forget needs the batch's file or --name")
    batch = open_batch(parsed, name_of(args), part_of(args))
    if not batch.items():
        raise FleetError(f"nothing is known of a batch {batch.name} that could be forgotten", "cru batch lists them")
    if isinstance(batch, LocalBatch):
        batch.hold(lambda: say_line(f"a run works on the batch {batch.name}; this one waits for it"))
    count = batch.forget()
    batch.close()
    show(f"{batch.name}: {count_items(count)} forgotten")
    return 0


def _list(batches: Sequence[BatchCounts]) -> int:
    if not batches:
        show("no batches; cru batch prompts.jsonl")
    for batch in batches:
        show(describe_batch(batch))
    return 0
