"""Tools that act on conversations: what the model is reminded of (todos, goals, reflection), what other contexts hold and are sent,
work for sub-agents and what tasks have printed, and the end of a turn."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cru.core.base.values.errors import CruError
from cru.core.tools.arguments import CallUser, Content, ReadContext, Recurse, SendMessage, TaskCancel, TaskOutput
from cru.core.tools.protocol import AgentRequest, ToolContext, ToolError, ToolOptions, ToolResult, require
from cru.core.tools.shell import tasks_of

# What read_context reads of another context.
READ = ("context.jsonl", "summary.md", "todos.md", "goals.md")


async def update_todos(args: Content, running: ToolContext, options: ToolOptions) -> ToolResult:
    _store(running, "todos.md", args.content)
    if running.services.todos_changed is not None:
        await running.services.todos_changed()
    return ToolResult("Todos updated.")


async def update_goals(args: Content, running: ToolContext, options: ToolOptions) -> ToolResult:
    _store(running, "goals.md", args.content)
    return ToolResult("Goals updated.")


async def update_reflection(args: Content, running: ToolContext, options: ToolOptions) -> ToolResult:
    home = require(running.services.home, "home")
    size = len(args.content.encode("utf-8", "replace"))
    if size > options.reflection_limit:
        raise ToolError(
            f"the reflection is too long: {size:,} bytes, at most {options.reflection_limit:,}; it was not changed"
        )
    try:
        home.write_reflection(args.content, options.reflection_limit)
    except (CruError, OSError) as error:
        raise ToolError(f"the reflection could not be saved: {error}") from error
    return ToolResult("Reflection updated.")


async def read_context(args: ReadContext, running: ToolContext, options: ToolOptions) -> ToolResult:
    """JSON {name, summary, todos, goals, message_count, recent_messages: [{from, content, type}]} of what counts in that context
    now. Nothing is locked or changed there."""
    try:
        store = require(running.services.home, "home").find(args.context_name)
        _refuse_denied(running, store.folder)
        messages = [e for e in store.visible() if e.entry_type == "message"]
        facts: dict[str, object] = {"name": store.name, "summary": store.summary()}
        facts |= {
            "todos": store.read_text("todos.md"),
            "goals": store.read_text("goals.md"),
            "message_count": len(messages),
        }
        store.close()
    except CruError as error:
        raise error if isinstance(error, ToolError) else ToolError(error.message, error.hint) from error
    if args.include_messages in (True, "true"):
        last = messages[-args.num_messages :] if args.num_messages else []
        facts["recent_messages"] = [{"from": e.from_, "content": e.content, "type": e.entry_type} for e in last]
    return ToolResult(msgspec.json.encode(facts).decode())


def _refuse_denied(running: ToolContext, folder: Path) -> None:
    """Each file is judged as if the tool `read` read it, but that a context's folder is no protected place for this tool. Raises
    ToolError naming the first that a rule denies or wants a question for, and why."""
    judge = running.services.rules.judge_read
    for name in READ if judge is not None else ():
        verdict = judge(str(folder / name)) if judge is not None and (folder / name).exists() else None
        if verdict is not None and (verdict.decision == "deny" or (verdict.decision == "ask" and verdict.explicit)):
            raise ToolError(f"{name} of the context `{folder.name}` must not be read: {verdict.reason}")


def _store(running: ToolContext, name: str, text: str) -> None:
    store = require(running.services.store, "store")
    try:
        store.write_text(name, text)
    except (CruError, OSError) as error:
        raise ToolError(f"{name} could not be saved: {error}") from error


async def send_message(args: SendMessage, running: ToolContext, options: ToolOptions) -> ToolResult:
    send = require(running.services.send, "send")
    return ToolResult(await send(args.to, args.content, args.from_))


async def call_user(args: CallUser, running: ToolContext, options: ToolOptions) -> ToolResult:
    return ToolResult(args.message, ends_turn=True)


async def recurse(args: Recurse, running: ToolContext, options: ToolOptions) -> ToolResult:
    """The engine starts the next round when it sees a call of this name, whoever provides the tool."""
    return ToolResult("recursion requested")


async def task_output(args: TaskOutput, running: ToolContext, options: ToolOptions) -> ToolResult:
    """Return what a task has printed or said since the last call for it, and its status."""
    return await tasks_of(running.services).read_output(args.id, args.wait, args.lines)


async def task_cancel(args: TaskCancel, running: ToolContext, options: ToolOptions) -> ToolResult:
    """End a task and everything that it started."""
    return await tasks_of(running.services).cancel(args.id)


async def task(args: AgentRequest, running: ToolContext, options: ToolOptions) -> ToolResult:
    """Have a sub-agent do something."""
    return await require(running.services.spawner, "spawner")().delegate(args, running.call_id)
