"""Allow rules on shell commands: each program that a command runs must be covered, and nothing be uncertain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

from cru.files import glob
from cru.permissions.command_rules import allowed_text, names_uses
from cru.permissions.paths import JudgedCall
from cru.shell.analysis import CommandAnalysis, analyze
from cru.shell.programs import names
from cru.shell.simplify import simplify


class PatternRule(Protocol):
    """What is wanted of a rule."""

    @property
    def pattern(self) -> str | None: ...
    @property
    def pieces(self) -> glob.StarGlob: ...


AnyRule = TypeVar("AnyRule", bound=PatternRule)
_CONDITION = re.compile(r"(?:^|[;&|({!\n]|\b(?:then|else|time|-p)|--)[ \t]*(?:\[|test|if)[ \t]")
_FOR_LATER = names("cd dirs hash popd pushd shift times ulimit umask")
"""Builtins that change what commands behind them do, if they stand in no subshell."""


def find_command_rule(rules: Sequence[AnyRule], call: JudgedCall, root: str) -> AnyRule | None:
    """The rule that covers the command, the last one needed if it takes several: one without a star that is the whole command, or rules
    for all that it runs. root: where it runs; "": what stands around it needs rules, too"""
    whole = next((rule for rule in rules if rule.pieces == (call.detail.strip(),)), None)
    covering = whole or _find_covering(rules, call.command)
    if covering is None and root and (text := simplify(call.detail, root)):
        covering = _find_covering(rules, analyze(text), is_bare=True)
    return covering


def bare_command(call: JudgedCall, root: str) -> CommandAnalysis:
    """The command without what changes nothing; as it is, if that is not one program, or runs on a condition, or is one for what comes
    behind it (`cd`)."""
    is_plain = not call.command.opaque and len(call.command.parts) == 1
    if is_plain or _CONDITION.search(call.detail) or not (text := simplify(call.detail, root)):
        return call.command
    bare = analyze(text)
    is_program = len(bare.parts) == 1 and not bare.opaque and bare.parts[0][0] not in _FOR_LATER
    return bare if is_program else call.command


def _find_covering(rules: Sequence[AnyRule], command: CommandAnalysis, *, is_bare: bool = False) -> AnyRule | None:
    """is_bare: rules, too, mean what they say without what changes nothing (`git --no-pager log *`)"""
    if command.opaque:
        return None
    covering = None
    for words, uses in zip(command.parts, command.uses, strict=True):
        text = allowed_text(words)
        matching = (rule for rule in rules if matches_command(_pieces_of(rule, is_bare=is_bare), text))
        covering = next((rule for rule in matching if names_uses(rule.pattern or "", uses)), None)
        if covering is None:
            return None
    return covering


def _pieces_of(rule: PatternRule, *, is_bare: bool) -> glob.StarGlob:
    bare = _bare_pattern(rule.pattern) if is_bare and rule.pattern else ""
    return glob.parse_glob(bare) if bare else rule.pieces


@lru_cache(maxsize=1024)
def _bare_pattern(pattern: str) -> str:
    """The same without what changes nothing; "" if there is nothing of that."""
    if not pattern.startswith(("git -", "nice ", "env ")) and "=" not in pattern.partition(" ")[0]:
        return ""
    bare = simplify(pattern, "")
    return "" if "\n" in bare else bare


def matches_command(pattern: glob.StarGlob, text: str) -> bool:
    """Whether it matches; a closing " *" may also stand for nothing at all."""
    return glob.matches_text(pattern, text) or (pattern[-1] == "" and glob.matches_text(pattern, text + " "))
