"""Every rule that holds, with what it decides, whose it is, and the line where it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, json
from msgspec.structs import replace

from cru.core.base.config.positions import item_lines
from cru.core.base.files.regular import read_regular
from cru.core.guard.rules import LayerRules
from cru.core.guard.rules.dead_rules import find_flaw
from cru.core.guard.rules.modes import Decision
from cru.core.guard.rules.rules import GrantOrigin, Rule

if TYPE_CHECKING:
    from cru.core.guard.rules.gate import Gate

MOST = 1 << 20
"""Bytes of `grants.json` in which lines are looked for."""
ANSWERS = {"session": "answer, this session", "project": "answer, this project", "always": "answer, always"}
ORDER: tuple[Decision, ...] = ("deny", "ask", "allow")
"""In which a call is held against them."""


class RuleRow(Struct, frozen=True):
    """One rule.

    decision: what it decides
    rule: its text
    layer: whose it is, for people
    file: where it stands, "" if in none
    line: 1-based; 0: not known
    by: the hook that gave it, "" if none did
    revocable: `cru permissions revoke` takes it back
    flaw: why it does not hold, "" if it may
    """

    decision: Decision
    rule: str
    layer: str
    file: str = ""
    line: int = 0
    by: str = ""
    revocable: bool = False
    flaw: str = ""

    @property
    def place(self) -> str:
        """`FILE:LINE`, as far as that is known."""
        return f"{self.file}:{self.line}" if self.line else self.file


def list_rules(gate: Gate, tools: Iterable[str]) -> tuple[RuleRow, ...]:
    """In the order in which a call is held against them. tools: names of those that are there"""
    names = tuple(tools)
    return tuple(row for decision in ORDER for row in _rows_of(gate, decision, names))


def _rows_of(gate: Gate, decision: Decision, tools: tuple[str, ...]) -> Iterator[RuleRow]:
    passed: Counter[tuple[str, str]] = Counter()
    for rule in gate.rules_of(decision):
        key = (rule.origin.file if rule.origin is not None else "", rule.text)
        yield replace(describe_rule(rule, decision, passed[key]), flaw=find_flaw(rule, decision, tools))
        passed[key] += 1


def describe_rule(rule: Rule, decision: Decision, before: int = 0) -> RuleRow:
    """before: how many of the same text its file has before it"""
    origin = rule.origin
    if isinstance(origin, GrantOrigin):
        layer = f"hook {origin.by}, {_reach(origin.scope)}" if origin.by else ANSWERS[origin.scope]
        line = _kept_line(origin, rule.text) if origin.file else 0
        return RuleRow(decision, rule.text, layer, origin.file, line, origin.by, not origin.by or decision == "allow")
    if origin is None:
        return RuleRow(decision, rule.text, rule.source)
    return RuleRow(decision, rule.text, _name_layer(origin), origin.file, _line_in(origin, decision, rule.text, before))


def _reach(scope: str) -> str:
    return {"session": "this session", "user": "always"}.get(scope, "this project")


def _name_layer(layer: LayerRules) -> str:
    """`user config`, `Claude settings (project)`, `command line`."""
    if layer.program:
        return f"{layer.program.capitalize()} settings ({layer.layer})"
    return f"{layer.layer} config" if layer.file else layer.layer


def _line_in(layer: LayerRules, decision: Decision, text: str, before: int) -> int:
    if layer.program:
        return layer.lines.get((decision, text), 0)
    lines = [line for item, line in item_lines(layer.text, ("permissions", decision)) if item == text]
    return lines[min(before, len(lines) - 1)] if lines else 0


def _kept_line(origin: GrantOrigin, text: str) -> int:
    """Where it stands in `grants.json`, which cru writes an item a line; 0 if it does not stand there so."""
    try:
        content = read_regular(origin.file, MOST).decode("utf-8", "replace")
    except OSError:
        return 0
    section = (
        content.rfind('"hooks"') if origin.by else content.find({"always": '"always"'}.get(origin.scope, '"projects"'))
    )
    at = content.find(json.encode(text).decode(), max(section, 0))
    return content.count("\n", 0, at) + 1 if at >= 0 and section >= 0 else 0
