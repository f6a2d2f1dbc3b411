"""`cru hooks list`: every entry that stands in a file, and whether it runs."""

from __future__ import annotations

from typing import Any

from cru.extensions.hooks.model.status import EntryStatus
from cru.extensions.hooks.records import masked_json
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.hooks.inventory import load_inventory
from cru.values.masking import masked

NEVER = ("no moment", "not available yet")


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """Those that never run here are counted only (--all shows them). What is left out of a file, a misspelt event or so, comes last."""
    args = CommandArguments("hooks", ("list", *words), switches=("--json", "--all"), verbs=("list",), most=1)
    loaded = load_inventory(parsed).loaded
    statuses = loaded.known
    if args.has("--json"):
        show(masked_json([entry_row(status) for status in statuses]))
        return 0
    shown = statuses if args.has("--all") else [status for status in statuses if status.state not in NEVER]
    for status in shown:
        for line in render_entry(status):
            show(line)
    left_out = [problem for problem in loaded.problems if problem.loses_hooks]
    for problem in left_out:
        show(f"left out  {one_line(masked(problem.text))}")
        show(f"  {one_line(problem.where)}")
    if not statuses and not left_out:
        show("there are no hooks in any file that cru looks at")
    elif len(shown) < len(statuses):
        show(f"{len(statuses) - len(shown)} more never run here: `cru hooks list --all`")
    return 0


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
