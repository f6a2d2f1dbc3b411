"""How long a regular expression may take, told from its text: an upper bound of the ways in which it can be tried."""

from __future__ import annotations

import re

MOST_WAYS = 1 << 20
"""Ways; four `.*` in a row are as many. A name of 64 characters takes less than a second with them, and most names are shorter."""
MANY = 32
"""What a repetition without an end counts as."""
_TOKEN = re.compile(
    r"""(?P<nothing> \(\?\#[^)]*\) )
    | (?P<verbose> \(\?[a-zA-Z]*x[a-zA-Z-]*[:)] )
    | (?P<atom> \\. | \[\^?\]?(?:[^\]\\]|\\.)*+\] | \(\?P=\w+\) | \(\?[a-zA-Z]+\) )
    | (?P<open> \((?:\?(?:<?[=!]|[:>]|P?<\w+>|[a-zA-Z-]+:|\(\w+\)))? )
    | (?P<close> \) ) | (?P<other> \| )
    | (?P<times> (?:[*+?]|\{(?:\d+(?:,\d*)?|,\d*)\})[+?]? )
    | (?P<char> . )""",
    re.DOTALL | re.VERBOSE,
)


_WIDE = re.compile(r"-(?:[^\x00-\u024f]|\\[uUN])")
"""A range of letters that ends far away: `re` looks at each of them when it compiles, a thirtieth of a second for all there are."""


def is_wide(pattern: str) -> bool:
    return _WIDE.search(pattern) is not None


class _RegexGroup:
    """A group while it is read: ways of the alternatives that ended, of this one without its last part, and of that part."""

    def __init__(self) -> None:
        self.done, self.before, self.last, self.is_group = 0, 1, 1, False

    def part(self, ways: int, is_group: bool = False) -> None:
        self.before = min(self.before * self.last, MOST_WAYS + 1)
        self.last, self.is_group = ways, is_group

    def other(self) -> None:
        self.part(1)
        self.done, self.before = self.done + self.before, 1

    def whole(self) -> int:
        self.other()
        return min(self.done, MOST_WAYS + 1)


def takes_too_long(pattern: str) -> bool:
    """Whether it may be tried in more than MOST_WAYS ways. Sound for repetitions in repetitions, which never pass; a pattern that is
    harmless may be refused."""
    groups = [_RegexGroup()]
    for match in _TOKEN.finditer(pattern):
        kind, group = match.lastgroup, groups[-1]
        if kind == "verbose":
            return True  # its blanks would stand between a part and its repetition
        if kind == "open":
            groups.append(_RegexGroup())
        elif kind == "close" and len(groups) > 1:
            groups.pop()
            groups[-1].part(group.whole(), is_group=True)
        elif kind == "other":
            group.other()
        elif kind == "times":
            group.last = _repeated(group.last, group.is_group, *_times(match[0]))
        elif kind != "nothing":
            group.part(1)
    ways = 1
    for group in groups:
        ways *= group.whole()
    return ways > MOST_WAYS


def _times(text: str) -> tuple[int, int | None]:
    """How often, at least and at most; None = without an end."""
    if text[0] in "*+?":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[text[0]]
    least, comma, most = text[1 : text.index("}")].partition(",")
    if not comma:
        return int(least), int(least)
    return int(least or 0), int(most) if most else None


def _repeated(ways: int, is_group: bool, least: int, most: int | None) -> int:
    if most is not None and most <= 1:
        return ways + (1 - least if most else 0)
    if ways == 1 and not (is_group and (least > 1 or most is not None)):
        return MANY if most is None else min(MANY, max(1, most - least + 1))
    return int(min(max(ways, 2) ** min(MANY, max(least, MANY if most is None else most)), MOST_WAYS + 1))
