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
    """Those that never run here are counted only (--all shows them)."""
    args = CommandArguments("hooks", ("list", *words), switches=("--json", "--all"), verbs=("list",), most=1)
    known = load_inventory(parsed).loaded.known
    if args.has("--json"):
        show(masked_json([entry_row(one) for one in known]))
        return 0
    shown = known if args.has("--all") else [one for one in known if one.state not in NEVER]
    for one in shown:
        for line in render_entry(one):
            show(line)
    if not known:
        show("there are no hooks in any file that cru looks at")
    elif len(shown) < len(known):
        show(f"{len(known) - len(shown)} more never run here: `cru hooks list --all`")
    return 0


def render_entry(one: EntryStatus) -> list[str]:
    """What a person reads about it."""
    entry = one.entry
    fits = f" {entry.matcher}" if entry.matcher else ""
    condition = f" if {entry.condition}" if entry.condition else ""
    name = f"{entry.name}: " if entry.name else ""
    why = f" ({one.why})" if one.why else ""
    return [
        f"{entry.id}  {one.state}{one_line(why)}",
        f"  {entry.event}{one_line(fits + condition)} → {one_line(masked(name + describe_command(one)), 200)}",
        f"  {one_line(entry.where)}",
    ]


def describe_command(one: EntryStatus) -> str:
    """What it runs."""
    entry = one.entry
    kind = "" if entry.kind == "command" else f"[{entry.kind}] "
    return kind + " ".join((entry.command, *(entry.args or ())))


def entry_row(one: EntryStatus) -> dict[str, Any]:
    """The same for programs."""
    entry = one.entry
    return {
        "id": entry.id, "state": one.state, "why": one.why, "dialect": entry.dialect, "layer": entry.source.layer,
        "event": entry.event, "matcher": entry.matcher, "if": entry.condition, "type": entry.kind, "name": entry.name,
        "command": entry.command, "args": entry.args, "timeout": entry.timeout, "file": str(entry.source.path), "line": entry.line,
    }  # fmt: skip
