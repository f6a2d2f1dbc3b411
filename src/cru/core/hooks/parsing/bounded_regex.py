"""Matchers that are regular expressions: which ones are refused, and a search that ends however long `re` would take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from math import prod

from cru.core.base.process.forked import run_in_fork
from cru.core.base.values.errors import CruError
from cru.core.hooks.errors import SlowRegex

LONGEST = 1000
"""Characters of a regular expression."""
MOST_WAYS = 1 << 20
"""Ways to match; four `.*` in a row have as many."""
MOST_STEPS = 1 << 30
"""Steps of a search in this process, as an upper bound: `re` takes some 0.1 s at most. Any other search runs in a child process."""
_MANY = 32
"""Repetitions that count as endless, whatever the text."""
_CAP = 1 << 40
_TOKEN = re.compile(
    r"""(?P<comment> \(\?\#[^)]*\) )
    | (?P<verbose> \(\?[a-zA-Z]*x[a-zA-Z-]*[:)] )
    | (?P<atom> \\. | \[\^?\]?(?:[^\]\\]|\\.)*+\] | \(\?P=\w+\) | \(\?[a-zA-Z]+\) )
    | (?P<open> \((?:\?(?:<?[=!]|[:>]|P?<\w+>|[a-zA-Z-]+:|\(\w+\)))? )
    | (?P<close> \) ) | (?P<or> \| )
    | (?P<times> (?:[*+?]|\{(?:\d+(?:,\d*)?|,\d*)\})[+?]? )
    | (?P<char> . )""",
    re.DOTALL | re.VERBOSE,
)
_WIDE = re.compile(r"-(?:[^\x00-\u024f]|\\[uUN])")
"""A range of letters that ends far away. `re` looks at each of them when it compiles: a thirtieth of a second for all that exist."""


def check_regex(pattern: str) -> str:
    """Return why a regular expression cannot be used, "" if it can. Bounded in time for any text."""
    slow = check_regex_cost(pattern)
    if slow:
        return slow
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return ""


def check_regex_cost(pattern: str) -> str:
    """Return why compiling it, or searching a name with it, may take too long; "" if neither does. A harmless pattern may be refused."""
    if len(pattern) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    if _WIDE.search(pattern):
        return "a range of letters in it ends outside of the Latin ones"
    if count_ways(pattern) > MOST_WAYS:
        return "it may take too long: it has a repetition in a repetition, or too many of them"
    return ""


def finds_any(pattern: str, names: Iterable[str]) -> bool:
    """Return whether the expression is found in one of the names. Raises re.error and SlowRegex."""
    return any(_finds(pattern, name) for name in names)


def _finds(pattern: str, text: str) -> bool:
    size = len(text) + 1
    if count_ways(pattern, size) * size * size > MOST_STEPS:
        return _finds_in_fork(pattern, text)
    return re.search(pattern, text) is not None


_too_slow: set[str] = set()
"""Patterns whose search was ended once. They are not tried again, so that each costs this process its seconds only once."""


@lru_cache(maxsize=1024)
def _finds_in_fork(pattern: str, text: str) -> bool:
    search = re.compile(pattern).search
    if pattern not in _too_slow:
        try:
            return run_in_fork(lambda: search(text) is not None)
        except (CruError, OSError):
            _too_slow.add(pattern)
    raise SlowRegex(f"the matcher {pattern!r} takes too long to search, so the hook runs")


@lru_cache(maxsize=1024)
def count_ways(pattern: str, size: int = _MANY) -> int:
    """Return an upper bound of the ways in which a pattern can be tried, where a repetition without an end has `size` of them. Sound for
    repetitions in repetitions, which never pass."""
    groups = [[[1]]]  # for each open group its alternatives, for each of these its parts
    last = ""
    for match in _TOKEN.finditer(pattern):
        kind, parts = str(match.lastgroup), groups[-1][-1]
        if kind == "verbose":
            return _CAP  # its blanks would stand between a part and its repetition
        if kind == "comment":
            continue
        if kind == "open":
            groups.append([[1]])
        elif kind == "close" and len(groups) > 1:
            alternatives = groups.pop()
            groups[-1][-1].append(_count_ways_of_any(alternatives))
        elif kind == "or":
            groups[-1].append([1])
        elif kind == "times":
            parts[-1] = _repeat(parts[-1], last == "close", match[0], size)
        else:
            parts.append(1)
        last = kind
    return prod(map(_count_ways_of_any, groups))


def _count_ways_of_any(alternatives: list[list[int]]) -> int:
    return min(sum(map(prod, alternatives)), _CAP)


def _repeat(ways: int, is_group: bool, times: str, size: int) -> int:
    bounds = {"*": "0,", "+": "1,", "?": "0,1"}.get(times[0]) or times[1 : times.index("}")]
    first, comma, second = bounds.partition(",")
    least = int(first or 0)
    most = int(second) if second else None if comma else least
    if most is not None and most <= 1:
        return ways + (1 - least if most else 0)
    if ways == 1 and not (is_group and (least > 1 or most is not None)):
        return size if most is None else min(size, max(1, most - least + 1))
    return min(int(max(ways, 2) ** min(_MANY, max(least, _MANY if most is None else most))), _CAP)
