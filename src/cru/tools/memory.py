"""Tools for what the model is reminded of: todos, goals, reflection; and for what other contexts hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cru.tools.arguments import Content, ReadContext
from cru.tools.protocol import ToolContext, ToolError, ToolResult
from cru.tools.settings import Options
from cru.values.errors import CruError

# What read_context reads of another context.
READ = ("context.jsonl", "summary.md", "todos.md", "goals.md")


def service(running: ToolContext, name: str) -> Any:
    """What the composition root lends under that name. Raises ToolError if it lends nothing."""
    try:
        return running.services[name]
    except KeyError:
        raise ToolError("this tool does not work here", f"nothing provides `{name}`") from None


async def update_todos(args: Content, running: ToolContext, options: Options) -> ToolResult:
    _store(running, "todos.md", args.content)
    changed = running.services.get("todos_changed")
    if changed is not None:
        waiting = changed()
        if hasattr(waiting, "__await__"):
            await waiting
    return ToolResult("Todos updated.")


async def update_goals(args: Content, running: ToolContext, options: Options) -> ToolResult:
    _store(running, "goals.md", args.content)
    return ToolResult("Goals updated.")


async def update_reflection(args: Content, running: ToolContext, options: Options) -> ToolResult:
    home = service(running, "home")
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


async def read_context(args: ReadContext, running: ToolContext, options: Options) -> ToolResult:
    """JSON {name, summary, todos, goals, message_count, recent_messages: [{from, content, type}]} of what counts in that context
    now. Nothing is locked or changed there."""
    import msgspec

    try:
        store = service(running, "home").find(args.context_name)
        _refuse_denied(running, store.folder)
        said = [e for e in store.visible() if e.entry_type == "message"]
        found = {"name": store.name, "summary": store.summary()}
        found |= {
            "todos": store.read_text("todos.md"),
            "goals": store.read_text("goals.md"),
            "message_count": len(said),
        }
        store.close()
    except CruError as error:
        raise error if isinstance(error, ToolError) else ToolError(error.message, error.hint) from error
    if args.include_messages in (True, "true"):
        last = said[-args.num_messages :] if args.num_messages else []
        found["recent_messages"] = [{"from": e.from_, "content": e.content, "type": e.entry_type} for e in last]
    return ToolResult(msgspec.json.encode(found).decode())


def _refuse_denied(running: ToolContext, folder: Path) -> None:
    """Each file is judged as if the tool `read` read it. Raises ToolError naming the first that is denied, and why."""
    kept_from = running.services.get("kept_from") or _from_nothing
    for name in READ:
        why = kept_from(str(folder / name)) if (folder / name).exists() else ""
        if why:
            raise ToolError(f"{name} of the context `{folder.name}` must not be read: {why}")


def _from_nothing(path: str) -> str:
    """Without rules."""
    return ""


def _store(running: ToolContext, name: str, text: str) -> None:
    store = service(running, "store")
    try:
        store.write_text(name, text)
    except (CruError, OSError) as error:
        raise ToolError(f"{name} could not be saved: {error}") from error
