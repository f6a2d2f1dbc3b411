"""`cru hooks check`: reads every file with hooks, runs nothing, and says what is broken or odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cru.core.base.config.layers import Layer
from cru.core.compose import load_settings, plugin_places
from cru.core.compose.project_settings import SettingsLost
from cru.core.compose.start import Start
from cru.core.guard.rules import layer_rules
from cru.core.guard.rules.dead_rules import find_flaw
from cru.core.guard.rules.listing import ORDER
from cru.core.guard.rules.rules import parse_rule, unknown_tools
from cru.core.hooks import HookSettings, merge_options
from cru.core.hooks.inventory import HookInventory
from cru.core.hooks.lost_hooks import find_lost_hooks
from cru.core.hooks.model.status import AWAITING_REVIEW
from cru.core.hooks.records import masked_json
from cru.core.hooks.report.lint import Finding, Level, find_problems, finding_of
from cru.core.hooks.report.plugins import PluginReport, check_plugins
from cru.core.plugins.lost_guards import LostGuard
from cru.core.tools.builtin import TABLE
from cru.core.tools.secret_variables import masked
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.hooks.inventory import load_inventory
from cru.faces.cli.run_options import start_of

HELP = """\
cru hooks check          read every file with hooks and every plugin without running anything, and say what is broken,
                         waiting (exit status 1, as with --strict-hooks) or odd
cru hooks check --json   the same for programs
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """1 if a run with --strict-hooks would not begin, as far as that can be told without running anything."""
    args = CommandArguments("hooks", ("check", *words), help=HELP, switches=("--json",), verbs=("check",), most=1)
    if args.show_help():
        return 0
    inventory = load_inventory(parsed, tell=False)
    start = start_of(parsed, "default")
    settings, layers, _ = load_settings(start)
    plugins = check_plugins(plugin_places(start, settings), list(TABLE))
    tools = [*TABLE, *plugins.tools]
    lost = find_lost_hooks(inventory, merge_options(settings.of(HookSettings).options, layers), tools)
    others = [replace(finding_of(guard), area="plugins") for guard in plugins.lost]
    others += [replace(finding_of(guard), area="settings") for guard in _lost_settings(start)]
    findings = [*find_problems(inventory, lost, tools), *others, *_check_rules(layers, tools)]
    if args.has("--json"):
        show(masked_json(findings))
    else:
        for finding in findings:
            show(_line(finding))
        show(_summary(inventory, plugins, findings))
    return 1 if any(finding.level != "odd" for finding in findings) else 0


def _lost_settings(start: Start) -> Sequence[LostGuard]:
    """Settings that may guard and are ignored."""
    try:
        load_settings(replace(start, strict_hooks=True))
    except SettingsLost as error:
        return error.lost
    return ()


def _check_rules(layers: list[Layer], tools: Sequence[str]) -> Iterator[Finding]:
    """Rules that never hold."""
    for layer in layer_rules(layers):
        for decision in ORDER:
            for text in getattr(layer.lists, decision):
                rule = parse_rule(text, f"{layer.file or layer.layer}")
                problem = next(iter(unknown_tools((rule,), tools)), None)
                if problem is not None:
                    level: Level = "broken" if problem.hint else "odd"  # it may be meant for a tool of a plugin
                    yield Finding(level, "", problem.where, problem.message, problem.hint, "permissions")
                elif flaw := find_flaw(rule, decision, tools):
                    yield Finding("odd", "", rule.source, f"rule `{text}` {flaw}", area="permissions")


def _line(finding: Finding) -> str:
    about = f"{finding.id}: " if finding.id else ""
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{finding.level:<8} {one_line(finding.where)}: {about}{one_line(masked(finding.text + hint))}"


def _summary(inventory: HookInventory, plugins: PluginReport, findings: list[Finding]) -> str:
    statuses = inventory.loaded.known
    files = {finding.entry.source.path for finding in statuses}
    broken = {finding.id for finding in findings if finding.level == "broken"}
    active = sum(entry.id not in broken for entry in inventory.loaded.active())
    waiting = len(inventory.loaded.of(*AWAITING_REVIEW))
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
