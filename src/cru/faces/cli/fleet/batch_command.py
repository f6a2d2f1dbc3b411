"""`cru batch`: the prompts of a file as tasks in the queue, worked on here until all of them are finished."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import ExitStatus, end_startup, show
from cru.faces.cli.event_loop import run_async
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.fleet.batch_face import BatchFace
from cru.faces.cli.fleet.common import (
    StopSignals,
    at_least,
    open_queue,
    registry_of,
    run_settings,
    say_line,
    seconds_of,
)
from cru.faces.cli.run_options import require_utf8, working_directory
from cru.files.regular import read_regular
from cru.fleet import FleetError
from cru.fleet.items import ID, ItemDefaults, batch_name, estimate_tokens, read_items
from cru.fleet.queue import RETRIED, BatchCounts, WorkQueue
from cru.fleet.records import BatchItem, TaskRow, TaskState, WorkStatus
from cru.fleet.results import ResultFile
from cru.fleet.worker import FleetWorker, WorkerLimits

HELP = """\
cru batch FILE                  ask each prompt of FILE: a JSON object a line ({"prompt": …, "id": …, "model": …}), or plain lines;
                                the same command again goes on, and runs nothing that is finished
cru batch                       the batches in the queue, and how far they are
  --parallel N                  items at once (4)
  --out FILE                    results, one JSON object a line, as items end
  --dry-run                     say what would be asked, and ask nothing
  --retry                       items that failed, were denied or took too long, once more
  --queue                       only put them into the queue, for `cru worker`
  --skip-bad                    leave out lines that are no items
  --model NAME --mode MODE --seconds S --fuel N --on-interrupted ask-model|retry|fail --strict-hooks
                                for items that do not say it themselves
  --max-deaths N                runs of an item that die before it is given up (5)
  --name NAME                   of the batch (made of the file's name and place)
  --forget                      let go of what the queue knows of this batch; the conversations stay
  --json                        one JSON object a line, for programs
"""
VALUES = (
    "--parallel", "--out", "--model", "--mode", "--seconds", "--fuel", "--on-interrupted", "--max-deaths", "--name",
)  # fmt: skip
SWITCHES = ("--dry-run", "--retry", "--queue", "--skip-bad", "--strict-hooks", "--forget", "--json")
POLICIES = ("ask-model", "retry", "fail")
KEPT = ("--name", "--model", "--mode", "--seconds", "--fuel", "--on-interrupted", "--parallel", "--out")


class BatchPlan(Struct, frozen=True):
    """What a command line asks for. command: what to type to go on."""

    name: str
    file: str
    items: tuple[tuple[int, BatchItem], ...]
    parallel: int
    max_deaths: int
    command: str


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("batch", words, help=HELP, values=VALUES, switches=SWITCHES, most=1)
    if args.show_help():
        return 0
    if not args.words and not args.has("--name"):
        return _list(open_queue(parsed).counts())
    if args.has("--forget"):
        return _forget(parsed, args)
    plan = _plan(args, parsed)
    if args.has("--dry-run"):
        return _dry_run(plan, open_queue(parsed))
    queue = open_queue(parsed)
    added = queue.add(plan.name, plan.items, plan.max_deaths)
    own = {item.id for _, item in plan.items}
    retried = _retry(queue, plan, own) if args.has("--retry") else 0
    if args.has("--queue"):
        say_line(
            f"{added + retried} items queued in {queue.place}; `cru worker` runs them, `{plan.command}` shows how far they are"
        )
        return 0
    face = BatchFace(plan.name, own, args.has("--json"), _result_file(args))
    face.begin(queue.rows(plan.name))
    end_startup()
    return run_async(_work(parsed, plan, queue, face))


async def _work(parsed: Parsed, plan: BatchPlan, queue: WorkQueue, face: BatchFace) -> int:
    registry = registry_of(queue, parsed, 5.0)
    limits = WorkerLimits(plan.parallel, plan.name, once=True)
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


def _plan(args: CommandArguments, parsed: Parsed) -> BatchPlan:
    """Raises UsageProblem, BadItems."""
    if not args.words:
        raise UsageProblem("`cru batch` needs a file", "cru batch prompts.jsonl; `-` reads standard input")
    file = args.words[0]
    name = _name(args)
    policy = args.value("--on-interrupted", "")
    if policy and policy not in POLICIES:
        raise UsageProblem(f"--on-interrupted: there is no choice `{policy}`", f"one of: {', '.join(POLICIES)}")
    mode = args.value("--mode", "")
    if mode:
        from cru.permissions.modes import check_mode

        check_mode(mode)
    options = BatchItem(
        "", model=args.value("--model", ""), mode=mode, seconds=seconds_of(args, "--seconds", 0.0),
        fuel=at_least(args, "--fuel", 0, 0), on_interrupted=policy, strict_hooks=args.has("--strict-hooks"),  # type: ignore[arg-type]
    )  # fmt: skip
    parallel, deaths = at_least(args, "--parallel", 4, 1), at_least(args, "--max-deaths", 5, 1)
    read = read_items(_read(file), ItemDefaults(name, working_directory(), options))
    if not args.has("--skip-bad"):
        read.require_good(file)
    for problem in read.problems:
        say_line(f"{file}:{problem.line} is left out: {problem.text}")
    return BatchPlan(
        name, file, read.items, parallel, deaths,
        _same_command(args, parsed),
    )  # fmt: skip


def _name(args: CommandArguments) -> str:
    """Raises UsageProblem."""
    name = args.value("--name", "")
    if not name:
        if args.words[0] == "-":
            raise UsageProblem("items from standard input need a name", "cru batch - --name NAME")
        return batch_name(Path(args.words[0]))
    if not ID.fullmatch(name):
        raise UsageProblem(f"--name has letters, digits, dots, dashes and underscores, 64 at most: {name}")
    return name


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    require_utf8(file)
    return read_regular(file)


def _same_command(args: CommandArguments, parsed: Parsed) -> str:
    home = parsed.last("home")
    kept = [word for name in KEPT if args.has(name) for word in (name, args.value(name, ""))]
    switches = ["--strict-hooks"] if args.has("--strict-hooks") else []
    return shlex.join(["cru", *(["--home", home] if home else []), "batch", *args.words, *kept, *switches])


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


def _dry_run(plan: BatchPlan, queue: WorkQueue) -> int:
    known = {row.id: row for row in queue.rows(plan.name)}
    finished = {key for key, row in known.items() if row.state is TaskState.FINISHED}
    left = [(line, item) for line, item in plan.items if item.id not in finished]
    models = ", ".join(dict.fromkeys(item.model or "the configured model" for _, item in left))
    lines = [
        f"batch {plan.name}: {len(plan.items)} items, {len(plan.items) - len(left)} finished, {len(left)} to ask",
        f"about {estimate_tokens(left):,} tokens of prompts and attachments; the system prompt, tools and answers come on top",
        "the cost is not known before the answers are there",
    ]
    show("\n".join([*lines, *([f"asked of: {models}"] if left else [])]))
    queue.close()
    return 0


def _forget(parsed: Parsed, args: CommandArguments) -> int:
    if not args.words and not args.has("--name"):
        raise UsageProblem("--forget needs the batch's file or --name")
    name = _name(args)
    queue = open_queue(parsed)
    count = queue.forget(name)
    if not count:
        raise FleetError(f"nothing is known of a batch {name} that could be forgotten", "cru batch lists them")
    show(f"{name}: {count} items forgotten")
    return 0


def _list(batches: Sequence[BatchCounts]) -> int:
    if not batches:
        show("no batches; cru batch prompts.jsonl")
    for batch in batches:
        parts = [f"{count} {state.value}" for state, count in batch.states.items() if state is not TaskState.FINISHED]
        parts += [f"{count} {status.value}" for status, count in batch.statuses.items()]
        show(f"{batch.name}: {', '.join(parts)}")
    return 0
