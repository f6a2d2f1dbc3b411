"""Globs. Each of the three dialects is public: rules (`*` and `**`), file searches and .gitignore (`?`, `[…]`, `{a,b}` too), and
identifiers of events. Matching a rule or a path takes no more than length times length steps, whatever the pattern."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

from cru.core.base.values.errors import CruError

T = TypeVar("T")

StarGlob: TypeAlias = tuple[str, ...]
"""The literal texts between the stars of a rule: one for a pattern without a star."""
PathGlob: TypeAlias = "tuple[StarGlob | None, ...]"
"""A rule's path, name by name; None is `**`, any number of names."""
NameTest: TypeAlias = Callable[[str], object]
SearchGlob: TypeAlias = "tuple[NameTest | None, ...]"
"""The path of a file search, name by name; None is `**`."""

ALTERNATIVES_LIMIT = 64


class BadGlob(CruError):
    """A pattern that is none."""


def matches_names(
    pattern: Sequence[T | None], names: Sequence[str], matches: Callable[[T, str], object], *, below: bool = False
) -> bool:
    """Whether the pattern's names match a path's; with `below`, also anything under what the pattern matches.
    Only the last `**` (None) ever has to be tried again, so there is nothing exponential here."""
    at = here = 0
    retry: tuple[int, int] | None = None
    while True:
        if at == len(pattern) and (below or here == len(names)):
            return True
        part = pattern[at] if at < len(pattern) else None
        if at < len(pattern) and part is None:
            retry = (at + 1, here)
            at += 1
        elif part is not None and here < len(names) and matches(part, names[here]):
            at, here = at + 1, here + 1
        elif retry is not None and retry[1] < len(names):
            retry = (retry[0], retry[1] + 1)
            at, here = retry
        else:
            return False


# rules: `*` stands for any characters; in paths it stays inside one name. `\*` is a star, `\\` a backslash.


def parse_glob(pattern: str) -> StarGlob:
    out, literal, at = [], "", 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and pattern[at + 1 : at + 2] in ("*", "\\"):
            literal += pattern[at + 1]
            at += 1
        elif char == "*":
            out.append(literal)
            literal = ""
        else:
            literal += char
        at += 1
    return (*out, literal)


def escape(text: str) -> str:
    """The pattern that only this text matches."""
    return text.replace("\\", "\\\\").replace("*", "\\*")


def matches_text(pattern: StarGlob, text: str, start: int = 0) -> bool:
    """Whether the pattern matches all of the text from `start` on."""
    first, last = pattern[0], pattern[-1]
    if len(pattern) == 1:
        return len(text) - start == len(first) and text.startswith(first, start)
    end = len(text) - len(last)
    if not text.startswith(first, start) or not text.endswith(last) or start + len(first) > end:
        return False
    at = start + len(first)
    for piece in pattern[1:-1]:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def parse_path_glob(pattern: str) -> PathGlob:
    """The names of a path pattern; a closing slash means everything below."""
    names = tuple(None if name == "**" else parse_glob(name) for name in pattern.split("/") if name not in ("", "."))
    return (*names, None) if pattern.endswith("/") else names


def literal_path_glob(path: str) -> PathGlob:
    """The names of a path as patterns that match only themselves."""
    return tuple((name,) for name in path.split("/") if name)


def matches_path(pattern: PathGlob, path: Sequence[str], *, below: bool = False) -> bool:
    return matches_names(pattern, path, matches_text, below=below)


# file searches and .gitignore: a backslash takes the next character literally


def parse_search_glob(names: Iterable[str]) -> SearchGlob:
    """The tests of a pattern's names; a `**` at its end means everything inside, not the folder itself."""
    tests = tuple(None if name == "**" else compile_name(name) for name in names)
    return (*tests, bool) if tests and tests[-1] is None else tests


def matches_search(pattern: SearchGlob, names: Sequence[str]) -> bool:
    return matches_names(pattern, names, lambda test, name: test(name))


def compile_name(text: str) -> NameTest:
    """A test for one name of a path."""
    if text == "*":
        return bool
    if is_plain_name(text):
        return text.__eq__
    if text[0] == "*" and not any(c in text[1:] for c in "*?[\\"):
        end = text[1:]
        return lambda name: name.endswith(end)
    from fnmatch import translate

    return re.compile(translate(_as_fnmatch(text))).match


def is_plain_name(text: str) -> bool:
    """Whether it matches only itself."""
    return not any(c in text for c in "*?[\\")


def _as_fnmatch(text: str) -> str:
    """In fnmatch's dialect: no backslashes, `[!` where git also has `[^`."""
    out: list[str] = []
    characters = iter(text)
    for c in characters:
        if c == "\\":
            c = next(characters, "\\")
            c = f"[{c}]" if c in "*?[" else c
        elif c == "^" and out[-1:] == ["["]:
            c = "!"
        out.append(c)
    return "".join(out)


def expand_braces(pattern: str) -> list[str]:
    """`a.{b,c}` is `a.b` and `a.c`; braces may be nested. Raises BadGlob for too many of them."""
    done: list[str] = []
    left = [pattern]
    while left:
        if len(done) + len(left) > ALTERNATIVES_LIMIT:
            raise BadGlob(f"its braces stand for more than {ALTERNATIVES_LIMIT} patterns")
        text = left.pop()
        choice = _first_choice(text)
        if choice is None:
            done.append(text)
        else:
            before, options, after = choice
            left.extend(before + option + after for option in reversed(options))
    return done


def _first_choice(pattern: str) -> tuple[str, list[str], str] | None:
    """The text before the first braces with a comma, what stands between their commas, and the text after them."""
    opened: list[list[int]] = []
    first: list[int] = []
    for at, char in enumerate(pattern):
        if char == "{":
            opened.append([at])
        elif char == "," and opened:
            opened[-1].append(at)
        elif char == "}" and opened:
            cuts = [*opened.pop(), at]
            if len(cuts) > 2 and (not first or cuts[0] < first[0]):
                first = cuts
    if not first:
        return None
    options = [pattern[a + 1 : b] for a, b in pairwise(first)]
    return pattern[: first[0]], options, pattern[first[-1] + 1 :]


# identifiers of events (crucible 0.28): `*` stays within a `/` segment, `**` does not, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `\*`

_TOKENS = r"\*\*/?|\*|\?|\[[!^]?[^\]]+\]|\\.|."
_TOKEN_REGEX = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matches_identifier(pattern: str, identifier: str | None) -> bool:
    """True if the pattern is empty or fits the whole identifier; an event without identifier fits only "" and "*".
    Raises BadGlob."""
    if not pattern or (pattern == "*" and not identifier):
        return True
    return identifier is not None and bool(compile_identifier_glob(pattern)(identifier))


@functools.lru_cache(maxsize=512)
def compile_identifier_glob(pattern: str) -> NameTest:
    """The test for a whole identifier. Raises BadGlob."""
    regex = _identifier_regex(pattern)
    try:
        test = re.compile(regex, re.DOTALL).fullmatch
    except re.error as error:
        raise BadGlob(f"bad pattern `{pattern}`: {error}", "as in: bash, edit*, notes/**/*.md, {read,write}") from error
    if pattern.count("*") - pattern.count("**") + pattern.count("{") < 2:
        return test
    from cru.core.base.files.linear_regex import (
        finds,  # several stars or choices have more ways than a long name leaves time for
    )

    return lambda identifier: finds(rf"(?s)\A(?:{regex})\Z", identifier) is not False


def _identifier_regex(pattern: str) -> str:
    out, depth = [], 0
    for token in re.findall(_TOKENS, pattern, re.DOTALL):
        if token == "{":
            depth += 1
            out.append("(?:")
        elif token == "}" and depth:
            depth -= 1
            out.append(")")
        elif token == "," and depth:
            out.append("|")
        else:
            out.append(_TOKEN_REGEX.get(token) or _character_regex(token))
    if depth:
        raise BadGlob(f"bad pattern `{pattern}`: a `{{` is not closed", "write \\{ for the character itself")
    return "".join(out)


def _character_regex(token: str) -> str:
    """Of a class of characters, an escaped character, or a plain one."""
    if len(token) > 2 and token[0] == "[":
        negated = token[1] in "!^" and len(token) > 3
        inside = token[2 if negated else 1 : -1]
        return f"[{'^' if negated else ''}{re.sub(r'[^-]', lambda m: re.escape(m[0]), inside)}]"
    return re.escape(token[-1])
