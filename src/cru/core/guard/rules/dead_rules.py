"""Rules that look as if they did something, and never hold."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cru.core.guard.rules.allowed_commands import bare_pattern
from cru.core.guard.rules.modes import Decision
from cru.core.guard.rules.rules import INPUT_TO, OUTSIDE, Rule, unknown_tools
from cru.core.guard.shell.programs import SUBCOMMAND_PROGRAMS, WRAPPERS, base_name

COMMAND_TOOLS = ("bash", "shell", INPUT_TO, OUTSIDE)
"""What a rule on commands may be about."""
_VARIABLE = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
OPERATORS = frozenset(("&&", "||", "|", ";", "&"))


def find_flaw(rule: Rule, decision: Decision, tools: Iterable[str]) -> str:
    """Why a rule does not hold, behind its name; "" if it may. tools: names of those that are there"""
    problems = unknown_tools((rule,), tools)
    if problems:
        hint = problems[0].hint
        missing = f"holds only where a plugin or a server brings the tool `{rule.tool}`"
        return f"never holds: it names no tool; {hint}" if hint else missing
    why = _why_no_command(rule) if decision == "allow" and rule.tool in COMMAND_TOOLS else ""
    return f"never holds: {why}" if why else ""


def _why_no_command(rule: Rule) -> str:
    """Of an allow rule with a star, which is held against each simple command by itself."""
    pattern = rule.pattern or ""
    words = (bare_pattern(pattern) or pattern).split()
    if len(rule.pieces) < 2 or not words:
        return ""
    if _VARIABLE.match(words[0]):
        return "a variable before a program may change what that does: leave it out, harmless ones need no rule, or write the whole command"
    if "*" in words[0]:
        return ""
    if (name := base_name(words[0])) in WRAPPERS:
        return f"`{name}` runs what stands behind it, and only a rule without a `*`, the whole command, covers that"
    if base_name(words[0]) in SUBCOMMAND_PROGRAMS and len(words) > 2 and words[1].startswith("-"):
        return f"an option before what `{words[0]}` is to do may change what it runs: only a rule without a `*` covers that"
    operator = next((word for word in words if word in OPERATORS), "")
    return (
        f"a rule with a `*` is about one command, and `{operator}` joins two: write a rule for each" if operator else ""
    )
