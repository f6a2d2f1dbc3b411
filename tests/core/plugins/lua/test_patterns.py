"""The matcher in Lua gives what C's matcher gives: values, errors and the places of errors."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice, product
from pathlib import Path

import pytest
from tests.core.plugins.lua.support import run

import cru.core.plugins.lua
from cru.core.plugins.lua.runtime import LuaVM

SOURCE = (Path(cru.core.plugins.lua.__path__[0]) / "patterns.lua").read_text(encoding="utf-8")
COMPARE = Path(__file__).with_name("compare_patterns.lua").read_text(encoding="utf-8")
Case = tuple[str, str, str, object]

PIECES = [
    "a", "b", ".", "%a", "%d", "[ab]", "[^a]", "[a-c]", "%s", "(", ")", "()", "a*", "b+", ".-", "a?", "[ab]-", "%b()", "%f[%w]",
    "%1", "$", "^", "%%", "%0", "%f", "%b", "%ba", "[", "[]", "[%", "%", "-", "\0",
]  # fmt: skip
SUBJECTS = ["", "a", "ab1", "(a) b\0"]
REPLACEMENTS = ["", "x", "<%0>", "%1", "%2%1", "%%", "%", "%x", "1%9"]


def compared(cases: Iterable[Case]) -> tuple[int, str]:
    """How many calls were compared with those of a bare Lua, and the first that differ."""
    lua = import_module("lupa.lua54").LuaRuntime(encoding="latin-1")
    rows = [lua.table_from(case) for case in cases]
    calls, different = lua.execute(COMPARE, SOURCE)(lua.table_from(rows))
    return calls, different


def short_patterns() -> Iterator[Case]:
    """Every pattern of up to two pieces, with every subject and a replacement after the other."""
    turn = 0
    for count in range(3):
        for pieces, subject in product(product(PIECES, repeat=count), SUBJECTS):
            turn += 1
            yield subject, "".join(pieces), REPLACEMENTS[turn % len(REPLACEMENTS)], turn % 9 - 3


def long_patterns(seed: int) -> Iterator[Case]:
    """Patterns of three to seven pieces, drawn, the same ones for the same seed."""
    draw = random.Random(seed)
    while True:
        pattern = "".join(draw.choices(PIECES, k=draw.randint(3, 7)))
        subject = "".join(draw.choices("aab1 ()\0", k=draw.randint(0, 12)))
        yield subject, pattern, draw.choice(REPLACEMENTS), draw.randint(-3, 5)


@pytest.mark.slow
def test_both_matchers_agree_on_every_short_pattern() -> None:
    calls, different = compared(short_patterns())
    assert calls == (1 + len(PIECES) + len(PIECES) ** 2) * len(SUBJECTS) * 12
    assert different == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_both_matchers_agree_on_long_patterns(seed: int) -> None:
    assert compared(islice(long_patterns(seed), 1500)) == (1500 * 12, "")


EDGES: list[Case] = [
    ("", "()(", "%1", 1),  # only the captures that a replacement names are looked at
    ("a", "()(", "%2", 1),
    ("a", "b[", "", 1),  # what is malformed fails only where the matcher comes to it
    ("a", "a[", "", 1),
    ("a" * 40, "()" * 32, "%1", 1),
    ("a" * 40, "()" * 33, "%1", 1),
    ("a" * 40, "(a" * 33, "%1", 1),
    ("a" * 300, "a?" * 199, "", 1),
    ("a" * 300, "a?" * 200, "", 1),
    ("b" * 300, "a?" * 300, "", 1),
    ("b" * 300, "a*" * 199, "", 1),
    ("b" * 300, "a*" * 200, "", 1),
    ("b" * 300, "a-" * 200, "", 1),
    ("abc", "b", "", "2"),
    ("abc", "b", "", 2.0),
    ("abc", "b", "", 2.5),
    ("abc", "b", "", "x"),
    ("abc", "b", "", -(2**63)),
    ("abc", "", "-", 2**63 - 1),
    ("hello", "^^h", "", 1),
    ("^a^a", "^a", "-", 1),
    ("ab", "(a)(%2)", "", 1),
    ("ab", "(a", "%0", 1),
    ("ab", "a)", "%0", 1),
    ("a\nb", "(.)\n", "%1\n%%", 1),
]


@pytest.mark.parametrize("case", EDGES, ids=lambda case: repr(case[:2])[:40])
def test_both_matchers_agree_at_the_edges(case: Case) -> None:
    assert compared([case]) == (12, "")


def test_a_limit_of_gsub_is_read_as_c_reads_it() -> None:
    vm = LuaVM()
    for limit in ("'2'", "2.0", "-1", "0"):
        slow = f"return (('a'):rep(300) .. 'b'):gsub('.-.-.-b', 'x', {limit})"
        assert run(vm, slow) == (("a" * 300 + "b", 0) if limit in ("-1", "0") else ("x", 1))


@pytest.mark.slow
def test_long_subjects_give_the_same_as_short_ones() -> None:
    source = """local text = ("  key = some value  \\n"):rep(5000)
    local lines = 0
    for line in text:gmatch("(.-)\\n") do
      local k, v = line:match("^%s*(%w+)%s*=%s*(.-)%s*$")
      if k == "key" and v == "some value" then lines = lines + 1 end
    end
    return lines, #(text:gsub("%s+$", "")), select(2, text:gsub("%s*\\n", "\\n"))"""
    assert run(LuaVM(run_seconds=30), source) == (5000, 5000 * 21 - 3, 5000)
