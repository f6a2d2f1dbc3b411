"""Which commands only read: they leave every file as it is."""

from __future__ import annotations

import re

from cru.core.guard.shell.program_facts import load_facts

_KINDS = load_facts().kinds
_PLAIN = re.compile(r"[a-z0-9_:]+(?: +[A-Za-z0-9_./:@%+,][A-Za-z0-9_./:@%+,-]*)*")
"""Matches a program with plain operands: no option, variable, pattern, quote, assignment or second command."""


def only_reads(command: str) -> bool:
    """Whether that is certain."""
    if _PLAIN.fullmatch(command) and command.partition(" ")[0] in _KINDS.readers:
        return True  # without loading the parser: no operand makes one of them write (tests/core/guard/shell/test_readers.py)
    from cru.core.guard.shell.analysis import analyze

    analysis = analyze(command)
    if analysis.opaque or any(analysis.uses):
        return False
    return bool(analysis.parts) and all(_reads(words) for words in analysis.parts)


def _reads(words: tuple[str, ...]) -> bool:
    name = words[0].rpartition("/")[2]
    if name == "git":
        return (
            len(words) > 1
            and words[1] in _KINDS.git_readers
            and not any(word.startswith(("-o", "--ou")) for word in words)
        )
    return name in _KINDS.readers
