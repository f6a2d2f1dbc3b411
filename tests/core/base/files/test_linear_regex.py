"""Expressions of strangers find what `re` finds, in a bounded number of steps."""

from __future__ import annotations

import random
import re

import pytest

from cru.core.base.files import linear_regex
from cru.core.base.files.linear_regex import LONGEST_TEXT, finds

ATOMS = [
    "a", "b", "A", "_", ".", "[ab]", "[^a]", r"\w", r"\d", r"\b", "^", "$", r"\s", "[a-c_]", r"\.", r"\W", r"\S", r"\Z", "(?<=a)", "(?<!b)",
    "(?<=[ab]_)", r"\D",
]  # fmt: skip
REPETITIONS = ["*", "+", "?", "{1,2}", "{2}", "*?", "{0,3}", "{,2}", "??"]


def expression(rnd: random.Random, depth: int = 0) -> str:
    kind = rnd.random()
    if depth > 3 or kind < 0.35:
        return rnd.choice(ATOMS)
    inner = expression(rnd, depth + 1)
    if kind < 0.55:
        return inner + expression(rnd, depth + 1)
    if kind < 0.65:
        return f"(?:{inner}|{expression(rnd, depth + 1)})"
    if kind < 0.85:
        return f"(?:{inner}){rnd.choice(REPETITIONS)}"
    return rnd.choice(["(?=", "(?!", "(?i:", "(", "(?P<n>" if depth == 0 else "("]) + inner + ")"


@pytest.mark.slow
def test_random_expressions_find_what_re_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_regex, "_LONGEST_PLAIN", 0)  # all are followed here
    rnd = random.Random(20)
    tried = 0
    for _ in range(3000):
        pattern = rnd.choice(["", "", "", "(?s)", "(?m)", "(?i)"]) + expression(rnd)
        text = "".join(rnd.choice("abAB_ \n1.") for _ in range(rnd.randrange(1, 9)))
        try:
            expected = re.search(pattern, text) is not None
        except re.error:
            continue
        tried += 1
        assert finds(pattern, text) is expected, (pattern, text)
    assert tried > 2500


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("", "", True),
        ("^$", "", True),
        ("x", "", False),
        ("^(Bash|Edit|Write)$", "Edit", True),
        ("mcp__.*__.*delete.*user.*", "mcp__github__delete_a_user", True),
        ("mcp__.*__.*delete.*user.*", "mcp__github__get_user", False),
        ("^(?!Bash$).*$", "Bash", False),
        ("^(?!Bash$).*$", "Bash2", True),
        ("(?i)b.*a.*s.*h", "xBASHx", True),
        (r"(?P<n>a)(?P=n)+", "aa", True),
        (r"(a)\1.*b", "aab", True),
        ("[à-ü]+.*[à-ü]+", "é é", True),
        ("a{3}b*c*", "aa", False),
        ("(?:ab|a)*c.*", "ababac", True),
    ],
)
def test_what_an_expression_finds(pattern: str, text: str, is_found: bool) -> None:
    assert finds(pattern, text) is is_found


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (".*_.*_.*_.*_!", "_" * LONGEST_TEXT),
        ("(.*)(.*)(.*)(.*)!", "a" * LONGEST_TEXT),
        ("(.*)*(.*)*x!", "a" * LONGEST_TEXT),
        ("((a|.)+)+((.|b)*)*!", "a" * 1000),
        ("(a|a)*b", "a" * 1000),
        ("(?:a?){30}a{30}!", "a" * 60),
        (r"(\w+\s?)*$!", "a" * 500),
        ("(?=(a+)+$)a!", "a" * 100),
    ],
)
def test_what_re_never_ends_with_is_told_in_few_steps(pattern: str, text: str) -> None:
    assert finds(pattern, text) is False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?=(.*a)*$)(?=(.*b)*$)x*y*z!", "ab" * 2000),
        (r"(a+)+\1!", "a" * 40),
        (r"(a*)(b*)(c*)(d*)(e*)\1!", "a" * 64),
        ("(((a{90}){90}){9}b*c*)!", "a" * 64),
        ("a", "a" * (LONGEST_TEXT + 1)),
    ],
)
def test_what_would_take_more_is_not_told(pattern: str, text: str) -> None:
    assert finds(pattern, text) is None


def test_a_wrong_expression_is_an_error() -> None:
    for text in ("", "a", "a" * 300, "a" * (LONGEST_TEXT + 1)):
        with pytest.raises(re.error):
            finds("(a", text)
