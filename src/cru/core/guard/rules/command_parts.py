"""A command one part after the other, each judged as if it were the whole: which part needs the question, and why."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.core.guard.rules.modes import Decision
from cru.core.guard.shell.analysis import analyze
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.simplify import left_out, simplify
from cru.core.guard.shell.syntax import SimpleCommand

if TYPE_CHECKING:
    from cru.core.guard.rules.gate import Gate
    from cru.core.guard.rules.rules import Rule

MOST = 50
"""Parts that are judged one by one."""
LONGEST = 20_000
"""Characters of them together: a part may hold all that stand behind it (`$($($(…`)."""


class CommandPart(Struct, frozen=True):
    """A simple command in a command.

    text: its source
    decision: what would happen to it alone; what the whole needs may be more
    reason: why, in words
    rule: the rule that decided, None if none did
    """

    text: str
    decision: Decision
    reason: str
    rule: Rule | None = None


class JudgedParts(Struct, frozen=True):
    """parts: in the order of the source
    more: how many were not judged
    unclear: why no allow rule can cover the parts together; "": they can be
    """

    parts: tuple[CommandPart, ...] = ()
    more: int = 0
    unclear: str = ""


def judge_parts(gate: Gate, tool: str, command: str, why_outside: str = "") -> JudgedParts:
    """Of a command for the shell. What cannot be read to its end has the parts that stand before. why_outside: why a run outside of the
    sandbox needs leave, if that is what it is to be"""
    sources = list(dict.fromkeys(_sources(command, left_out(command, gate.places.root))))
    lengths = accumulate(map(len, sources))
    few = [
        source
        for source, length in zip(sources[:MOST], lengths, strict=False)
        if length <= LONGEST or source == sources[0]
    ]
    parts = [_judge(gate, tool, source, why_outside) for source in few]
    simplified = simplify(command, gate.places.root)
    return JudgedParts(tuple(parts), len(sources) - len(few), analyze(simplified or command).opaque)


def _judge(gate: Gate, tool: str, source: str, why_outside: str) -> CommandPart:
    verdict = gate.judge(tool, "shell", source, why_ask=why_outside, is_outside=bool(why_outside))
    return CommandPart(source, verdict.decision, verdict.reason, verdict.source)


def _sources(command: str, needless: Set[int]) -> Iterator[str]:
    """needless: where those begin that need no rule"""
    for node in parse(command).script.walk():
        if (
            isinstance(node, SimpleCommand)
            and node.start not in needless
            and (text := command[node.start : node.end].strip())
        ):
            yield text
