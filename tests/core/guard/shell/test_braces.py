"""Braces are expanded as bash does."""

from __future__ import annotations

import random
import subprocess

import pytest

from cru.core.guard.shell import braces
from cru.core.guard.shell.braces import expand_bash_braces

LITERALS = (
    "",
    "a",
    "rm",
    "{",
    "}",
    ",",
    "..",
    "{a..c}",
    "{3..1}",
    "{1..5..2}",
    "{-2..1}",
    "{e..a..2}",
    "{1..a}",
    "{}",
    "${x}b",
)


def random_word(rng: random.Random, depth: int = 0) -> str:
    """Lists in lists; braces that have no other one stand around them only: what bash makes of those inside differs by its version."""
    pieces = []
    for _ in range(rng.randint(1, 3)):
        if depth < 3 and rng.random() < 0.4:
            parts = [random_word(rng, depth + 1) for _ in range(rng.randint(2, 3))]
            pieces.append("{" + ",".join(parts) + "}")
        else:
            pieces.append(rng.choice(LITERALS if depth == 0 else LITERALS[:3] + LITERALS[7:12]))
    return "".join(pieces)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("r{m,} x", "rm r x"),
        ("{r,}m x", "rm m x"),
        ("r{m..m} x", "rm x"),
        ("g{i..i}t {push,}", "git push"),
        ("a{b,{c,d}}e", "abe ace ade"),
        ("{a,b}{1..2}", "a1 a2 b1 b2"),
        ("{a{b,c}}", "{ab} {ac}"),
        ("{a", "{a"),
        ("{a} {} ${x}", "{a} {} ${x}"),
        ("{1..a}", "{1..a}"),
        ("{5..1..2}", "5 3 1"),
    ],
)
def test_what_words_become(text: str, expanded: str) -> None:
    assert expand_bash_braces(text) == expanded


@pytest.mark.slow
def test_random_words_become_what_bash_makes_of_them() -> None:
    rng = random.Random(7)
    words = [word for _ in range(4500) if (word := random_word(rng)).count("{") <= 5]
    assert len(words) > 1500
    script = "set -f; x='${x}'\n" + "".join(f"echo {word}\n" for word in words)
    ended = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)
    differ = [
        (word, ours, theirs)
        for word, theirs in zip(words, ended.stdout.split("\n"), strict=False)
        if theirs.count(" ") < 60 and (ours := expand_bash_braces(word)) != theirs
    ]
    assert not differ, (len(differ), differ[:10])


@pytest.mark.parametrize(
    "text",
    [
        "{a,b}" * 12_000,
        "{" * 60_000,
        "{a," * 20_000,
        "{1..9999} " * 6_000,
        "x{a,b} " * 8_000,
        "{a,b}" * 4_000 + " r{m,}",
    ],
)
def test_of_a_long_text_little_is_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    groups = braces._groups

    def count(word: str) -> list[braces._Group]:
        read.append(len(word))
        return groups(word)

    monkeypatch.setattr(braces, "_groups", count)
    assert len(expand_bash_braces(text)) < len(text) + 150_000
    assert sum(read) <= 120_000


def test_the_first_words_of_a_list_without_end_are_there() -> None:
    others = ",".join(f"f{number}" for number in range(500))
    assert expand_bash_braces(f"r{{m,{others}}} x").startswith("rm rf0 rf1 ")
    assert expand_bash_braces("r{m,{1..99}}{,}{,}{,}{,}{,} x").startswith("rm rm")
    assert expand_bash_braces(f"echo {{{'a,' * 12_000}}} r{{m,}} x").endswith(" rm r x")
