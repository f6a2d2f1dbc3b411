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

_CLASS = r"\[[!^]?[^\]]{1,256}\]"  # bounded: with many `[` that nothing closes, each would look through the rest of the pattern
_TOKENS = re.compile(rf"\*\*/?|\*|[{{}},]|(?:{_CLASS}|\\.|[^*{{}},])+", re.DOTALL)
_CHARACTERS = re.compile(rf"{_CLASS}|\\.|.", re.DOTALL)
_DEEPEST_BRACES = 64

GlobStep: TypeAlias = Callable[[str, "set[int]"], "set[int]"]
"""A part of a pattern: takes an identifier and the positions where the part may begin, and returns those where it may end. All ways
to match are followed at once this way, so that several stars do not multiply the time."""


def matches_identifier(pattern: str, identifier: str | None) -> bool:
    """True if the pattern is empty or fits the whole identifier; an event without identifier fits only "" and "*".
    Raises BadGlob."""
    if not pattern or (pattern == "*" and not identifier):
        return True
    return identifier is not None and bool(compile_identifier_glob(pattern)(identifier))


@functools.lru_cache(maxsize=512)
def compile_identifier_glob(pattern: str) -> NameTest:
    """The test for a whole identifier. Raises BadGlob."""
    if is_plain_name(pattern) and "{" not in pattern:
        return pattern.__eq__
    try:
        steps = _parse_identifier_glob(pattern)
    except re.error as error:
        raise BadGlob(f"bad pattern `{pattern}`: {error}", "as in: bash, edit*, notes/**/*.md, {read,write}") from error
    return lambda identifier: len(identifier) in _find_ends(steps, identifier, {0})


def _parse_identifier_glob(pattern: str) -> list[GlobStep]:
    opened: list[list[list[GlobStep]]] = [[[]]]  # the alternatives of each open brace, after the pattern itself
    for token in _TOKENS.findall(pattern):
        if token == "{":
            opened.append([[]])
        elif token == "}" and len(opened) > 1:
            alternatives = opened.pop()
            opened[-1][-1].append(functools.partial(_find_ends_of_any, alternatives))
        elif token == "," and len(opened) > 1:
            opened[-1].append([])
        else:
            opened[-1][-1].append(_STARS.get(token) or _compile_characters(token))
        if len(opened) > _DEEPEST_BRACES:
            raise BadGlob(f"bad pattern `{pattern}`: its braces are nested more than {_DEEPEST_BRACES} deep")
    if len(opened) > 1:
        raise BadGlob(f"bad pattern `{pattern}`: a `{{` is not closed", "write \\{ for the character itself")
    return opened[0][0]


def _find_ends(steps: Iterable[GlobStep], identifier: str, starts: set[int]) -> set[int]:
    return functools.reduce(lambda starts, step: step(identifier, starts), steps, starts)


def _find_ends_of_any(alternatives: Iterable[Iterable[GlobStep]], identifier: str, starts: set[int]) -> set[int]:
    return {end for steps in alternatives for end in _find_ends(steps, identifier, starts)}


def _find_ends_in_segment(identifier: str, starts: set[int]) -> set[int]:
    ends: set[int] = set()
    for at in starts:
        while at not in ends:
            ends.add(at)
            at += at < len(identifier) and identifier[at] != "/"
    return ends


def _find_ends_anywhere(identifier: str, starts: set[int]) -> set[int]:
    return set(range(min(starts, default=len(identifier) + 1), len(identifier) + 1))


def _find_ends_after_slashes(identifier: str, starts: set[int]) -> set[int]:
    return starts | {end for end in _find_ends_anywhere(identifier, starts) if identifier[end - 1 : end] == "/"}


_STARS: dict[str, GlobStep] = {
    "*": _find_ends_in_segment,
    "**": _find_ends_anywhere,
    "**/": _find_ends_after_slashes,
}


def _compile_characters(token: str) -> GlobStep:
    """The step for a text of fixed length: classes of characters, escaped characters, `?`, and plain ones."""
    match = re.compile("".join(map(_character_regex, _CHARACTERS.findall(token))), re.DOTALL).match
    return lambda identifier, starts: {part.end() for at in starts if (part := match(identifier, at))}


def _character_regex(token: str) -> str:
    if token == "?":
        return "[^/]"
    if len(token) > 2 and token[0] == "[":
        negated = token[1] in "!^" and len(token) > 3
        inside = token[2 if negated else 1 : -1]
        return f"[{'^' if negated else ''}{re.sub(r'[^-]', lambda m: re.escape(m[0]), inside)}]"
    return re.escape(token[-1])
