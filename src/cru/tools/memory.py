"""Tools that change what the model is reminded of: todos, goals, reflection."""

from __future__ import annotations

from typing import Any

from cru.tools.arguments import Content
from cru.tools.protocol import Result, Running, ToolError
from cru.tools.settings import Options
from cru.values.errors import CruError


def service(running: Running, name: str) -> Any:
    """What the composition root lends under that name. Raises ToolError if it lends nothing."""
    try:
        return running.services[name]
    except KeyError:
        raise ToolError("this tool does not work here", f"nothing provides `{name}`") from None


async def update_todos(args: Content, running: Running, options: Options) -> Result:
    _store(running, "todos.md", args.content)
    changed = running.services.get("todos_changed")
    if changed is not None:
        waiting = changed()
        if hasattr(waiting, "__await__"):
            await waiting
    return Result("Todos updated.")


async def update_goals(args: Content, running: Running, options: Options) -> Result:
    _store(running, "goals.md", args.content)
    return Result("Goals updated.")


async def update_reflection(args: Content, running: Running, options: Options) -> Result:
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
    return Result("Reflection updated.")


def _store(running: Running, name: str, text: str) -> None:
    store = service(running, "store")
    try:
        store.write_text(name, text)
    except (CruError, OSError) as error:
        raise ToolError(f"{name} could not be saved: {error}") from error
