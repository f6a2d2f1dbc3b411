"""Globs on identifiers: `*` stays within a `/` segment, `**` does not, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `\\*` (crucible 0.28)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cru.events.errors import BadHandler

_SIMPLE = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_TOKENS = r"\*\*/?|\*|\?|\[[!^]?[^\]]+\]|\\.|."


def matches(pattern: str, identifier: str | None) -> bool:
    """True if the pattern is empty or fits the whole identifier; an event without identifier fits only "" and "*".
    Raises BadHandler for a pattern that is none."""
    if not pattern or (pattern == "*" and not identifier):
        return True
    return identifier is not None and compiled(pattern)(identifier) is not None


@functools.lru_cache(maxsize=512)
def compiled(pattern: str) -> Callable[[str], Any]:
    """The test for a whole identifier. Raises BadHandler."""
    import re  # only patterns need it

    try:
        return re.compile(_translate(pattern), re.DOTALL).fullmatch
    except re.error as error:
        raise BadHandler(
            f"bad pattern `{pattern}`: {error}", "as in: bash, edit*, notes/**/*.md, {read,write}"
        ) from error


def _translate(pattern: str) -> str:
    import re

    pieces, depth = [], 0
    for token in re.findall(_TOKENS, pattern, re.DOTALL):
        if token == "{":
            depth += 1
            pieces.append("(?:")
        elif token == "}" and depth:
            depth -= 1
            pieces.append(")")
        elif token == "," and depth:
            pieces.append("|")
        else:
            pieces.append(_SIMPLE.get(token) or _one(token))
    if depth:
        raise BadHandler(f"bad pattern `{pattern}`: a `{{` is not closed", "write \\{ for the character itself")
    return "".join(pieces)


def _one(token: str) -> str:
    """A class of characters, an escaped character, or a plain one."""
    import re

    if len(token) > 2 and token[0] == "[":
        negated = token[1] in "!^" and len(token) > 3
        inside = token[2 if negated else 1 : -1]
        return f"[{'^' if negated else ''}{re.sub(r'[^-]', lambda m: re.escape(m[0]), inside)}]"
    return re.escape(token[-1])
