"""`cru hooks check`: reads every file with hooks, runs nothing, and says what is broken or odd."""

from __future__ import annotations

from collections import Counter

from cru.app import load_settings, plugin_places
from cru.extensions.discovery.places import PluginFolders
from cru.extensions.hooks.inventory import HookInventory
from cru.extensions.hooks.model.status import AWAITING_REVIEW
from cru.extensions.hooks.records import masked_json
from cru.extensions.hooks.report.lint import Finding, find_problems
from cru.extensions.hooks.report.plugins import PluginReport, check_plugins
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.hooks.inventory import load_inventory
from cru.faces.cli.run_options import start_of
from cru.values.masking import masked

HELP = """\
cru hooks check          read every file with hooks and every plugin without running anything, and say what is broken
                         (exit status 1) or odd
cru hooks check --json   the same for programs
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """1 if something is broken."""
    args = CommandArguments("hooks", ("check", *words), help=HELP, switches=("--json",), verbs=("check",), most=1)
    if args.show_help():
        return 0
    inventory = load_inventory(parsed, tell=False)
    plugins = check_plugins(_plugin_places(parsed), _tools())
    findings = [*find_problems(inventory, _tools()), *plugins.findings]
    if args.has("--json"):
        show(masked_json(findings))
    else:
        for finding in findings:
            show(_line(finding))
        show(_summary(inventory, plugins, findings))
    return 1 if any(finding.level == "broken" for finding in findings) else 0


def _plugin_places(parsed: Parsed) -> PluginFolders:
    start = start_of(parsed, "default")
    return plugin_places(start, load_settings(start)[0])


def _tools() -> list[str]:
    from cru.tools.builtin import TABLE

    return list(TABLE)


def _line(finding: Finding) -> str:
    about = f"{finding.id}: " if finding.id else ""
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{finding.level:<8} {one_line(finding.where)}: {about}{one_line(masked(finding.text + hint))}"


def _summary(inventory: HookInventory, plugins: PluginReport, findings: list[Finding]) -> str:
    statuses = inventory.loaded.known
    files = {finding.entry.source.path for finding in statuses}
    active, waiting = len(inventory.loaded.active()), len(inventory.loaded.of(*AWAITING_REVIEW))
    levels = Counter(finding.level for finding in findings)
    numbers = ((plugins.plugins, "plugin"), (plugins.programs, "program"))
    others = "".join(f"{_count(number, what)}; " for number, what in numbers if number)
    await_trust = f", {waiting} await trust (`cru hooks review`)" if waiting else ""
    return (
        f"{_count(len(statuses), 'hook')} in {_count(len(files), 'file')}: {active} active{await_trust}; "
        f"{others}{levels['broken']} broken, {levels['odd']} odd"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
