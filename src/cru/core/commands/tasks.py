"""Commands about work beside the conversation: /tasks and /agents."""

from __future__ import annotations

import time

from cru.core.agents.discovery import UNTRUSTED
from cru.core.agents.record import MAIN, CancelledBy, TaskKind, TaskRecord, read_records
from cru.core.agents.sub_agents import AgentTasks
from cru.core.commands.context import CommandContext, table_row
from cru.core.commands.errors import BadCommand
from cru.core.turn.commands import CommandResult


async def tasks(context: CommandContext, words: str) -> CommandResult:
    """Those of this session; with `cancel ID` end one. Raises BadCommand, NoSuchTask."""
    known = context.session.parts.services.tasks.background
    verb, _, task_id = words.strip().partition(" ")
    if words and (verb != "cancel" or not task_id.strip()):
        raise BadCommand(f"/tasks does not know {words!r}", "/tasks, or /tasks cancel ID")
    if not isinstance(known, AgentTasks) or not (verb or known.manager.tasks):
        return CommandResult(_describe_earlier(sum(1 for _ in read_records(context.session.parts.store.folder))))
    if verb:
        task = known.manager.find(task_id.strip())
        ran = await known.manager.cancel(task, CancelledBy.PERSON)
        return CommandResult(f"task {task.id} {'is cancelled' if ran else 'had ended: ' + task.record.status.value}")
    return CommandResult("\n".join(_line(task.record) for task in known.manager.tasks.values()))


def _describe_earlier(count: int) -> str:
    """Where tasks of earlier sessions are, lost ones too: this session has started none."""
    none = "no task was started in this session"
    return f"{none}; `cru tasks` lists {count} of earlier ones" if count else none


def _line(record: TaskRecord) -> str:
    name = record.agent if record.kind is TaskKind.SUBAGENT else "command"
    seconds = (record.ended or time.time()) - record.started if record.started else 0
    below = "" if record.parent == MAIN else f"  (below {record.parent})"
    used = f"{record.usage.tokens} tokens" if record.usage.requests else ""
    return f"{record.id}  {record.status.value:<9}  {seconds:>5.0f} s  {used:>14}  {name}: {record.title[:80]}{below}"


async def agents(context: CommandContext, _words: str) -> CommandResult:
    """Their names and what they are for, those that await trust too, and what is wrong with cards."""
    make = context.session.parts.tool_services.spawner
    spawner = None if make is None else make()
    assert isinstance(spawner, AgentTasks)
    cards = spawner.cards()
    awaiting = [f.card for f in cards.read_all() if f.state in UNTRUSTED and f.card is not None]
    lines = [(card.name, card.description) for card in cards.by_name.values()]
    lines += [(card.name, f"{card.description} (not trusted: `cru trust`)") for card in awaiting]
    width = max((len(name) for name, _ in lines), default=0)
    shown = [table_row(f"{name:<{width}}  ", " ".join(about.split()), context.face.columns) for name, about in lines]
    return CommandResult("\n".join([*shown, *cards.problems]))
