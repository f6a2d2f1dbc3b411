"""`cru hooks check`: reads every file with hooks, runs nothing, and says what is broken or odd."""

from __future__ import annotations

from collections import Counter

from cru.extensions.hooks.inventory import HookInventory
from cru.extensions.hooks.model.status import AWAITING_REVIEW
from cru.extensions.hooks.records import masked_json
from cru.extensions.hooks.report.lint import Finding, find_problems
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.hooks.inventory import load_inventory
from cru.values.masking import masked

HELP = """\
cru hooks check          read every file with hooks without running anything, and say what is broken (exit status 1) or odd
cru hooks check --json   the same for programs
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """1 if something is broken."""
    args = CommandArguments("hooks", ("check", *words), help=HELP, switches=("--json",), verbs=("check",), most=1)
    if args.show_help():
        return 0
    there = load_inventory(parsed, tell=False)
    made = find_problems(there, _tools())
    if args.has("--json"):
        show(masked_json(made))
    else:
        for one in made:
            show(_line(one))
        show(_summary(there, made))
    return 1 if any(one.level == "broken" for one in made) else 0


def _tools() -> list[str]:
    from cru.tools.builtin import TABLE

    return list(TABLE)


def _line(one: Finding) -> str:
    about = f"{one.id}: " if one.id else ""
    hint = f" ({one.hint})" if one.hint else ""
    return f"{one.level:<8} {one_line(one.where)}: {about}{one_line(masked(one.text + hint))}"


def _summary(there: HookInventory, made: list[Finding]) -> str:
    known = there.loaded.known
    files = {one.entry.source.path for one in known}
    active, waiting = len(there.loaded.active()), len(there.loaded.of(*AWAITING_REVIEW))
    levels = Counter(one.level for one in made)
    await_trust = f", {waiting} await trust (`cru hooks review`)" if waiting else ""
    return (
        f"{_count(len(known), 'hook')} in {_count(len(files), 'file')}: {active} active{await_trust}; "
        f"{levels['broken']} broken, {levels['odd']} odd"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
