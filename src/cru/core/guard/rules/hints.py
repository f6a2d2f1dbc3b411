"""What a person is told who could allow a call beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import json

if TYPE_CHECKING:
    from cru.core.guard.rules.gate import Verdict


LONGEST = 100
"""Characters of a command that is written out."""
PATTERN = frozenset("*?[\n")
"""A command with one of these is not the rule that covers it."""


def outside_hint(rule: str, command: str, why_not: str, file: str) -> str:
    """The same for a run outside of the sandbox. why_not: why no rule permits it just now"""
    if why_not:
        return "nobody can be asked here; it can be permitted by a rule once that has ended"
    if not rule:
        rule = f"outside_sandbox:{command if len(command) <= LONGEST and not PATTERN & set(command) else '…'}"
    written = json.encode(rule).decode()
    return f"nobody can be asked here; allow it with `[permissions] allow = [{written}]` in {file}, or run cru with `--no-sandbox`"


def allow_hint(
    tool: str, rule: str, kind: str = "", verdict: Verdict | None = None, file: str = "~/.cru/config.toml"
) -> str:
    """What to tell when nobody can be asked: the ways to allow this call beforehand. `file` holds the user's rules."""
    if verdict is not None and verdict.decision == "ask" and verdict.explicit:
        return "nobody can be asked here; run cru on a terminal, or take the rule out of [permissions] ask"
    by_place = verdict is not None and verdict.by_place
    ways = ["`--mode auto`"] if kind == "write" and rule and not by_place else []
    if verdict is None or not verdict.needs_rule:
        ways.append("`-t`")
    if rule:
        ways.append(f"`[permissions] allow = [{json.encode(rule).decode()}]` in {file}")
    if not ways:
        return "nobody can be asked here; run cru on a terminal"
    listed = " or ".join(ways) if len(ways) < 3 else f"{', '.join(ways[:-1])}, or {ways[-1]}"
    return f"nobody can be asked here; allow `{tool}` with {listed}"
