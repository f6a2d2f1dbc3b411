"""`cru hooks list`: every entry that stands in a file, and whether it runs; what is left out of files; handlers of plugins."""

from __future__ import annotations

from typing import Any

from cru.core.compose import SessionBundle
from cru.core.hooks.model.entry import HookFileProblem
from cru.core.hooks.model.status import EntryStatus
from cru.core.hooks.records import masked_json
from cru.core.plugins.listing import format_handler, plugin_rows
from cru.core.plugins.manager import Extensions
from cru.core.tools.secret_variables import masked
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.hooks.inventory import load_inventory
from cru.faces.cli.plugin.plugins import find_plugins, with_plugins

NEVER = ("no moment", "not available yet")


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """Those that never run here are counted only (--all shows them). Behind them comes what is left out of a file, a misspelt event or
    so, and what plugins hear: these are loaded for that, if there are any."""
    args = CommandArguments("hooks", ("list", *words), switches=("--json", "--all"), verbs=("list",), most=1)
    loaded = load_inventory(parsed).loaded
    statuses = loaded.known
    left_out = [problem for problem in loaded.problems if problem.loses_hooks]
    if args.has("--json"):
        rows = [entry_row(status) for status in statuses] + [_left_out_row(problem) for problem in left_out]
        show(
            masked_json(
                rows + [_handler_row(plugin, it) for plugin in _load_plugins(parsed) for it in plugin["handlers"]]
            )
        )
        return 0
    shown = statuses if args.has("--all") else [status for status in statuses if status.state not in NEVER]
    for status in shown:
        for line in render_entry(status):
            show(line)
    for problem in left_out:
        show(f"left out  {one_line(masked(problem.text))}")
        show(f"  {one_line(problem.where)}")
    if len(shown) < len(statuses):
        show(f"{len(statuses) - len(shown)} more never run here: `cru hooks list --all`")
    plugins = _load_plugins(parsed)
    for plugin in plugins:
        for line in _render_plugin(plugin):
            show(line)
    if not statuses and not left_out and not plugins:
        show("there are no hooks in any file that cru looks at")
    return 0


def _load_plugins(parsed: Parsed) -> list[dict[str, Any]]:
    """The rows of `cru plugin list` of those that have handlers."""
    if not any(plugin.loadable for plugin in find_plugins(parsed)):
        return []

    async def work(built: SessionBundle, extensions: Extensions) -> list[dict[str, Any]]:
        return plugin_rows(extensions)

    return [row for row in with_plugins(parsed, work) if row["handlers"]]


def _render_plugin(plugin: dict[str, Any]) -> list[str]:
    return [
        f"plugin {plugin['name']}  {plugin['state']}",
        *(f"  {one_line(format_handler(handler))}" for handler in plugin["handlers"]),
    ]


def render_entry(status: EntryStatus) -> list[str]:
    """What a person reads about it."""
    entry = status.entry
    fits = f" {entry.matcher}" if entry.matcher else ""
    condition = f" if {entry.condition}" if entry.condition else ""
    name = f"{entry.name}: " if entry.name else ""
    why = f" ({status.why})" if status.why else ""
    return [
        f"{entry.id}  {status.state}{one_line(why)}",
        f"  {entry.event}{one_line(fits + condition)} → {one_line(masked(name + describe_command(status)), 200)}",
        f"  {one_line(entry.where)}",
    ]


def describe_command(status: EntryStatus) -> str:
    """What it runs."""
    entry = status.entry
    kind = "" if entry.kind == "command" else f"[{entry.kind}] "
    return kind + " ".join((entry.command, *(entry.args or ())))


def entry_row(status: EntryStatus) -> dict[str, Any]:
    """The same for programs."""
    entry = status.entry
    return {
        "id": entry.id, "state": status.state, "why": status.why, "dialect": entry.dialect, "layer": entry.source.layer,
        "event": entry.event, "matcher": entry.matcher, "if": entry.condition, "type": entry.kind, "name": entry.name,
        "command": entry.command, "args": entry.args, "timeout": entry.timeout, "file": str(entry.source.path), "line": entry.line,
    }  # fmt: skip


def _left_out_row(problem: HookFileProblem) -> dict[str, Any]:
    """What a file says and nobody can follow, as a row like the others."""
    return _EMPTY | {
        "state": "left out", "why": problem.text, "file": str(problem.path), "line": problem.line,
    }  # fmt: skip


def _handler_row(plugin: dict[str, Any], handler: dict[str, Any]) -> dict[str, Any]:
    """A handler of a plugin, as a row like the others; `id` is the plugin."""
    file, _, line = handler["where"].rpartition(":")
    place = {"file": file, "line": int(line)} if line.isdigit() else {"file": handler["where"]}
    return _EMPTY | {
        "id": plugin["name"], "state": plugin["state"], "dialect": "handler", "layer": plugin["layer"], "event": handler["event"],
        "matcher": handler["pattern"], "type": "handler", "name": plugin["name"], **place,
    }  # fmt: skip


_EMPTY: dict[str, Any] = {
    "id": "", "state": "", "why": "", "dialect": "", "layer": "", "event": "", "matcher": "", "if": "", "type": "", "name": "",
    "command": "", "args": None, "timeout": None, "file": "", "line": 0,
}  # fmt: skip
