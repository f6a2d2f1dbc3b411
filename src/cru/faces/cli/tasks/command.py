"""`cru tasks`: what agents have started beside their conversations (docs/agents.md). It reads files, and asks the session to end one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.agents import FOLDER, NoSuchTask, TaskError
from cru.core.agents.completion import first_line
from cru.core.agents.control import ask_to_cancel, end_detached
from cru.core.agents.record import MAIN, TaskKind, TaskRecord, TaskStatus, read_record, read_records
from cru.core.agents.usage import own_usage
from cru.core.base.config.closest import did_you_mean
from cru.core.turn.spending import format_cost
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import cut_to_columns, one_line, show
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import context_name, open_home
from cru.faces.cli.tasks.view import follow_task, show_task

HELP = """\
cru tasks               sub-agents and background commands of the current context, the newest last (--json, --all: of every context)
cru tasks show ID       one of them: what it was asked, what came of it, what it did
cru tasks follow ID     the same, and what it does from now on, until it ends
cru tasks cancel ID     end it, and what it started
`cru -C CONTEXT tasks` looks at another context. The beginning of an ID is enough.
"""
COLUMNS = 120


class FoundTask(Struct, frozen=True):
    """A task of a context, with its folder."""

    context: Path
    record: TaskRecord

    @property
    def folder(self) -> Path:
        return self.context / FOLDER / self.record.id

    def priced(self) -> TaskRecord:
        """With the cost of what it used, as far as prices are known."""
        return replace(self.record, usage=own_usage(self.folder, self.record))

    def again(self) -> TaskRecord:
        """As it is now."""
        return read_record(self.folder) or self.record


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    verbs = ("list", "show", "follow", "cancel")
    args = CommandArguments("tasks", words, help=HELP, switches=("--json", "--all"), verbs=verbs, most=2)
    if args.show_help():
        return 0
    verb = args.words[0] if args.words else "list"
    if verb == "list" and len(args.words) > 1:
        raise args.wrong("`cru tasks list` takes no id")
    contexts = open_home(parsed).path / "contexts"
    current = contexts / context_name(parsed, open_home(parsed))
    if verb == "list":
        _list(list(_tasks(_folders(contexts) if args.has("--all") else [current])), args)
        return 0
    if len(args.words) < 2 or not args.words[1].strip():
        raise UsageProblem(f"`cru tasks {verb}` needs an id", "cru tasks says which there are")
    task = _find(contexts, current, args.words[1])
    if verb == "cancel":
        return _cancel(task)
    return follow_task(task.folder, task.again) if verb == "follow" else show_task(task.folder, task.record)


def _folders(contexts: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(contexts) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def _tasks(contexts: list[Path]) -> Iterator[FoundTask]:
    for context in contexts:
        for record in read_records(context):
            yield FoundTask(context, record)


def _find(contexts: Path, current: Path, text: str) -> FoundTask:
    """The task whose id begins so, in the current context before all others. Raises NoSuchTask."""
    for folders in ([current], _folders(contexts)):
        matches = [task for task in _tasks(folders) if task.record.id.startswith(text)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise NoSuchTask(f"{text} is the beginning of several ids", ", ".join(task.record.id for task in matches))
    known = [task.record.id for task in _tasks([current])]
    raise NoSuchTask(f"there is no task {text}", did_you_mean(text, known) or "cru tasks --all says which there are")


def _list(tasks: list[FoundTask], args: CommandArguments) -> None:
    if args.has("--json"):
        rows = [{"context": task.context.name, **msgspec.to_builtins(task.priced())} for task in tasks]
        show(msgspec.json.encode(rows).decode())
        return
    if not tasks:
        show("no tasks: the model starts them with `task`, or with `bash` and background = true")
    for task in tasks:
        show(cut_to_columns(_line(task, args.has("--all")), COLUMNS) + _why_failed(task.record))


def _line(task: FoundTask, with_context: bool) -> str:
    record = task.record
    name = one_line(record.agent) if record.kind is TaskKind.SUBAGENT else "command"
    below = "" if record.parent == MAIN else f"  (below {one_line(record.parent)})"
    where = f"  {task.context.name}" if with_context else ""
    if record.detached and not record.status.has_ended:
        where = f"  (process {record.pid}){where}"
    return (
        f"{record.id}  {record.status.value:<9}  {_seconds(record):>7}  {_used(task):>20}  "
        f"{name}: {one_line(record.title)}{below}{where}"
    )


def _why_failed(record: TaskRecord) -> str:
    """After the row, "" if it did not fail or a command's status says all."""
    why = first_line(record.error) if record.status is TaskStatus.FAILED else ""
    return f": {one_line(why, COLUMNS)}" if why else ""


def _used(task: FoundTask) -> str:
    """Tokens and cost in few characters, "-" if it asked no model."""
    totals = task.priced().usage
    if not totals.requests:
        return "-"
    tokens = f"{totals.tokens} tokens" if totals.tokens < 10_000 else f"{totals.tokens / 1000:.0f}k tokens"
    return tokens if totals.cost is None else f"{tokens} {format_cost(totals.cost)}"


def _seconds(record: TaskRecord) -> str:
    """How long it ran, "-" if nobody knows."""
    if not record.started or (record.status is TaskStatus.LOST and not record.ended):
        return "-"
    return f"{(record.ended or time.time()) - record.started:.0f} s"


def _cancel(task: FoundTask) -> int:
    """Ask its session, and wait until it has ended. Raises TaskError if nobody can end it."""
    record = task.record
    if record.status.has_ended:
        show(f"task {record.id} has ended already: {record.status.value}")
        return 0
    try:
        ask_to_cancel(task.context, record.owner, record.id)
    except TaskError:
        if not record.detached:
            raise
        end_detached(task.folder, record)  # its session is gone, and it is not
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if task.again().status.has_ended:
            show(f"task {record.id}: {task.again().status.value}")
            return 0
        time.sleep(0.05)
    show(f"task {record.id} does not end yet; its session was asked")
    return 1
