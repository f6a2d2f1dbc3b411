"""Which commands only read: what is known without parsing is what parsing says."""

from __future__ import annotations

import pytest

from cru.core.guard.shell import readers
from cru.core.guard.shell.analysis import analyze
from cru.core.guard.shell.programs import KINDS

OPERANDS = [
    "",
    "a",
    "a/b.txt",
    "12",
    ".",
    "..",
    "a:b",
    "@x",
    "+3",
    "x%y",
    "a,b",
    "1-2",
    "/etc/passwd",
    "A_b",
    "%1",
    "a b",
]


def by_parsing(command: str) -> bool:
    analysis = analyze(command)
    if analysis.opaque or any(analysis.uses):
        return False
    return bool(analysis.parts) and all(readers._reads(words) for words in analysis.parts)


@pytest.mark.parametrize("name", sorted(KINDS.readers))
def test_plain_operands_of_readers_are_read_whatever_parses_them(name: str) -> None:
    for operand in OPERANDS:
        command = f"{name} {operand}".rstrip()
        assert readers.only_reads(command) is by_parsing(command) is True, command


@pytest.mark.parametrize(
    "command",
    [
        "rm a",
        "true;rm a",
        "true\nrm a",
        "true $(rm a)",
        "cat a > b",
        "cat a>b",
        "true & rm a",
        "X=1 true",
        "tail -f a >b",
        "cat a\\;rm b",
        "true `rm a`",
        "echo {a,b} > c",
        "true | tee x",
        "wc --files0-from=x",
        "rg --pre=sh x",
        "true\trm",
        " true",
        "sudo true",
        "~/true",
        "./true",
        "cat a #b",
    ],
)
def test_what_is_not_plain_is_parsed(command: str) -> None:
    assert readers.only_reads(command) is by_parsing(command)
