"""Globs on identifiers: `*` stays within a `/` segment, `**` does not, `?`, `[a-z]`, `{a,b}` (crucible 0.28)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def matches(pattern: str, identifier: str | None) -> bool:
    """True if the pattern is empty or fits the whole identifier; an event without identifier fits only "" and "*"."""
    if not pattern or (pattern == "*" and not identifier):
        return True
    return identifier is not None and _compiled(pattern)(identifier) is not None


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> Callable[[str], Any]:
    import re  # only patterns need it

    return re.compile(_translate(pattern), re.DOTALL).fullmatch


_TOKENS = r"\*\*/?|\*|\?|\[[!^]?[^\]]+\]|\{[^{}]*\}|."


def _translate(pattern: str) -> str:
    import re

    return "".join(_piece(token) for token in re.findall(_TOKENS, pattern, re.DOTALL))


def _piece(token: str) -> str:
    import re

    simple = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if token in simple:
        return simple[token]
    if len(token) > 2 and token[0] == "[":
        return "[" + token[1:].replace("\\", "\\\\").replace("!", "^", 1 if token[1] == "!" else 0)
    if token[0] == "{" and len(token) > 1:
        return "(?:" + "|".join(_translate(part) for part in token[1:-1].split(",")) + ")"
    return re.escape(token)
