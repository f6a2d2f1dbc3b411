"""`cru fleet`: what batches in the database and their workers do, and items that are cancelled or asked again."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from cru.core.turn.spending import format_cost
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import ExitStatus, show
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.fleet.common import (
    DATABASE,
    at_least,
    count_items,
    describe_batch,
    dollars_of,
    has_database,
    open_queue,
)
from cru.features.fleet import FleetError
from cru.features.fleet.limits import ProviderLimit, list_limits, set_limit
from cru.features.fleet.queue import MISSED, WorkQueue
from cru.features.fleet.queued_batch import QueuedBatch, WorkerRow, list_workers, queued_batches

ACTIONS = ("status", "top", "cancel", "retry", "limit")
MOST_ITEMS = 10_000
SECONDS = 1.0
"""Between two pictures of `cru fleet top`."""
CLEAR = "\x1b[H\x1b[2J"
HELP = """\
cru fleet status                batches in the database, workers, and what no worker here can take
cru fleet top                   the same, again each second, until Ctrl-C
cru fleet cancel BATCH [ID…]    cancel items that are not finished; one that runs is ended, with its log complete
cru fleet retry BATCH [ID…]     ask again what ended otherwise than done; `cru worker` runs it
  --max-deaths N                runs of an item that die before it is given up (5)
cru fleet limit PROVIDER        of all workers together; without a number the limit is removed
  --running N                   items of the provider at once
  --cost DOLLARS                what its items may cost in 24 hours, as far as prices are known
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments(
        "fleet", words, help=HELP, values=("--max-deaths", "--running", "--cost"), verbs=ACTIONS, most=MOST_ITEMS
    )
    if args.show_help():
        return 0
    action, *rest = args.words or ("status",)
    if (action in ("cancel", "retry", "limit")) != bool(rest) or (action == "limit" and len(rest) > 1):
        raise UsageProblem(f"cru fleet does not take `{' '.join(args.words)}`", "cru fleet --help says what it takes")
    if not has_database():
        raise FleetError(
            f"cru fleet needs a database, which {DATABASE} names", "`cru batch` lists the batches of this machine"
        )
    queue = open_queue(parsed)
    if action == "top":
        return _show_always(queue)
    if action == "status":
        show(_picture(queue))
        return 0
    if action == "limit":
        set_limit(queue, ProviderLimit(rest[0], at_least(args, "--running", 0, 0), dollars_of(args, "--cost")))
        show(_picture(queue))
        return 0
    return _change(action, QueuedBatch(queue, rest[0]), rest[1:], at_least(args, "--max-deaths", 5, 1))


def _change(action: str, batch: QueuedBatch, ids: Sequence[str], deaths: int) -> int:
    known = [row.id for row in batch.rows()]
    if not known:
        raise FleetError(f"nothing is known of a batch {batch.name}", "cru fleet status lists them")
    if unknown := [name for name in ids if name not in known]:
        raise FleetError(
            f"the batch {batch.name} has no item {unknown[0]}", f"cru batch --name {batch.name} shows them"
        )
    chosen = ids or known
    count = batch.cancel(chosen) if action == "cancel" else batch.retry(chosen, deaths)
    done = "cancelled" if action == "cancel" else "queued again"
    show(f"{batch.name}: {count_items(count)} {done}")
    return 0


def _show_always(queue: WorkQueue) -> int:
    clear = CLEAR if sys.stdout.isatty() else ""
    try:
        while True:
            show(clear + _picture(queue))
            sys.stdout.flush()
            time.sleep(SECONDS)
    except KeyboardInterrupt:
        return int(ExitStatus.INTERRUPTED)


def _picture(queue: WorkQueue) -> str:
    lines = [describe_batch(batch) for batch in queued_batches(queue)] or ["no batches; cru batch FILE --queue"]
    workers = list_workers(queue)
    lines += ["", *map(_describe, workers)] if workers else ["", "no workers; cru worker"]
    lines += map(_describe_limit, list_limits(queue))
    left = queue.left_tasks()
    if left.elsewhere:
        lines.append(f"{count_items(left.elsewhere)} of other homes wait for workers with those homes")
    if left.newer:
        lines.append(f"{count_items(left.newer)} of a newer cru wait for workers of it")
    return "\n".join(lines)


def _describe(worker: WorkerRow) -> str:
    late = f", last heard of {worker.silent:.0f} s ago" if worker.silent > MISSED * worker.info.beat else ""
    return f"{worker.info.name}: {worker.running} of {worker.info.places} running{late}"


def _describe_limit(limit: ProviderLimit) -> str:
    parts = [f"{limit.now} of {limit.running} running"] if limit.running else []
    parts += [f"{format_cost(limit.spent)} of {format_cost(limit.day_cost)} in 24 hours"] if limit.day_cost else []
    return f"limit of {limit.provider}: {', '.join(parts)}{', reached' if limit.is_reached else ''}"
