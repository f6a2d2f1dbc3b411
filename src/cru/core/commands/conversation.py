"""Commands that show or hand on what a conversation is: /status, /context, /config, /export, /copy; and /init, a prompt."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cru.core.base.files.atomic import create_file
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import ANCHOR, MESSAGE, TOOL_CALL, TOOL_RESULT, Entry
from cru.core.commands.context import CommandContext
from cru.core.commands.cost import NOTHING
from cru.core.commands.errors import BadCommand
from cru.core.conversations.entries import role_of
from cru.core.turn import compaction
from cru.core.turn.commands import CommandResult
from cru.core.turn.history import BYTES_PER_TOKEN
from cru.core.turn.parts import Parts

INIT_PROMPT = (
    "Write AGENTS.md in the project root: what an agent that works here has to know and cannot guess. Look first: the build files, the "
    "tests, the continuous integration, the layout, and guides for other agents that are there (CLAUDE.md, .cursor/rules, "
    ".github/copilot-instructions.md). Say how to build, to run all tests and to run one, which checks must pass before a commit, how the "
    "code is laid out, which conventions are not obvious, and what must not be touched. At most 60 lines; nothing that the code says by "
    "itself. If AGENTS.md is there already, improve it and keep what is still true."
)
RESULT_LINES = 20
"""Lines of a tool's result that an exported conversation has."""
OTHER_FILE = "`/export FILE` writes another one"


async def status(context: CommandContext, _words: str) -> CommandResult:
    """Show where the session works, with what, and what it may do."""
    parts = context.session.parts
    sandbox = parts.services.sandbox.state or "not known yet"
    plugins = 0 if context.extensions is None else len(context.extensions.plugins)
    facts = {
        "conversation": f"{parts.store.name} ({len(parts.store.visible())} entries in {parts.store.folder})",
        "project": str(parts.place.root),
        "model": context.models.configured_name() or "none is configured",
        "mode": parts.gate.mode,
        "sandbox": sandbox,
        "tools": str(len(parts.tools.names())),
        "plugins": str(plugins),
        "used": _used(parts),
    }
    width = max(map(len, facts))
    return CommandResult("\n".join(f"{name:<{width}}  {value}" for name, value in facts.items()))


def _used(parts: Parts) -> str:
    totals = parts.models.ledger.session.totals
    if not totals.requests:
        return NOTHING
    cost = f", ${totals.cost:.2f}" if totals.cost else ""
    return f"{totals.requests} requests, {totals.tokens} tokens{cost} in this run"


async def context(context: CommandContext, _words: str) -> CommandResult:
    """Show what the next request would hold, by parts, and how much of the model's window that is."""
    parts = context.session.parts
    spans = parts.prompt.sections()
    sizes = [(f"{span.name} ({span.origin})" if span.origin else span.name, len(span.text)) for span in spans]
    around = sum(size for _, size in sizes)
    specs = parts.tools.specs()
    tools = sum(len(spec.description) + len(repr(spec.parameters)) for spec in specs)
    sizes += [(f"{len(specs)} tools", tools)]
    rows = [(name, size // BYTES_PER_TOKEN) for name, size in sizes]
    rows.append(
        (
            f"{parts.history.count} log entries",
            parts.history.tokens(around + tools) - (around + tools) // BYTES_PER_TOKEN,
        )
    )
    lines = [f"{max(tokens, 0):>9,}  {name}" for name, tokens in rows]
    return CommandResult("\n".join(["   tokens", *lines, *await _window(parts)]))


async def _window(parts: Parts) -> list[str]:
    try:
        fill = compaction.fill(parts, await parts.models.choose(""), parts.prompt.sections())
    except CruError as error:
        return [f"the model's window is not known: {error.message}"]
    return [f"{fill.used:>9,}  in all: {fill.percent:.0f} % of {fill.limit:,}"] if fill.limit else []


async def config(context: CommandContext, words: str) -> CommandResult:
    """Show the settings that something sets, and where; with a key those that begin with it. Raises BadCommand."""
    view = context.session.parts.services.settings
    rows = [] if view is None else [(key, value, view.origin(key)) for key, value in _leaves(view.as_dict(), "")]
    rows = [
        row for row in rows if row[2] not in ("", "default") and f"{row[0]}.".startswith(f"{words}." if words else "")
    ]
    if not rows and words:
        raise BadCommand(f"nothing sets `{words}`", f"its default holds; `cru -n {words}` shows it")
    return CommandResult(
        "\n".join(f"{key} = {value}  ({origin})" for key, value, origin in rows)
        or "nothing is set: every default holds"
    )


def _leaves(value: object, key: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else str(name))
    elif key:
        yield key, value


async def init(_context: CommandContext, _words: str) -> CommandResult:
    """Have the model write AGENTS.md for this project, or improve what is there."""
    return CommandResult(prompt=INIT_PROMPT)


async def export(context: CommandContext, words: str) -> CommandResult:
    """Write the conversation to a new Markdown file. Raises BadCommand if that cannot be."""
    parts = context.session.parts
    path = Path(os.path.expanduser(words or f"{parts.store.name}.md"))
    text = "\n\n".join(filter(None, map(_markdown, parts.store.visible())))
    if not text:
        raise BadCommand("there is nothing to export", "ask something first")
    try:
        is_new = create_file(path, f"# {parts.store.name}\n\n{text}\n".encode("utf-8", "replace"))
    except OSError as error:
        raise BadCommand(f"{path} cannot be written: {error.strerror}", OTHER_FILE) from error
    if not is_new:
        raise BadCommand(f"{path} is there already", OTHER_FILE)
    return CommandResult(f"written: {path.absolute()}")


def _markdown(entry: Entry) -> str:
    """Return an entry as people read it, "" if they do not."""
    if entry.entry_type == MESSAGE:
        title = {"user": "You", "assistant": "cru"}.get(role_of(entry), "")
        return f"## {title}\n\n{entry.content}" if title else ""
    if entry.entry_type == TOOL_CALL:
        return f"`{entry.to}`\n\n{_fenced(entry.content)}"
    if entry.entry_type == TOOL_RESULT:
        lines = entry.content.splitlines()
        more = f"\n… {len(lines) - RESULT_LINES} more lines" if len(lines) > RESULT_LINES else ""
        return _fenced("\n".join(lines[:RESULT_LINES]) + more)
    return (
        f"## Summary of what was said before\n\n{entry.content}" if entry.entry_type == ANCHOR and entry.content else ""
    )


def _fenced(text: str) -> str:
    """Return a code block; its fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


async def copy(context: CommandContext, _words: str) -> CommandResult:
    """Put the last answer into the clipboard. Raises BadCommand, NotHere."""
    answers = (entry for entry in reversed(context.session.parts.store.visible()) if entry.entry_type == MESSAGE)
    answer = next((entry.content for entry in answers if role_of(entry) == "assistant"), "")
    if not answer:
        raise BadCommand("there is no answer to copy", "ask something first")
    return CommandResult(await context.face.copy(answer))
