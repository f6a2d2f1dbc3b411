"""Globs of rules. `*` stands for any characters; in paths it stays inside one name and `**` stands for any number of names.
`\\*` is a star, `\\\\` a backslash; nothing else is special. No regular expressions, so no pattern can be slow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Pieces: TypeAlias = tuple[str, ...]  # the literal texts between the stars
ANY_DEPTH: Pieces = ("\0**",)


def pieces(pattern: str) -> Pieces:
    """The literal texts between the stars: one for a pattern without a star."""
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


def matches(pattern: Pieces, text: str, start: int = 0) -> bool:
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


def names(pattern: str) -> tuple[Pieces, ...]:
    """The names of a path pattern; a closing slash means everything below."""
    out = tuple(ANY_DEPTH if name == "**" else pieces(name) for name in pattern.split("/") if name not in ("", "."))
    return (*out, ANY_DEPTH) if pattern.endswith("/") else out


def literal_names(path: str) -> tuple[Pieces, ...]:
    """The names of a path as patterns that match only themselves."""
    return tuple((name,) for name in path.split("/") if name)


def matches_path(pattern: Sequence[Pieces], path: Sequence[str], *, below: bool = False) -> bool:
    """Whether the pattern's names match the path's; with `below`, also anything under what the pattern matches."""
    at = here = 0
    retry: tuple[int, int] | None = None
    while True:
        if at == len(pattern) and (below or here == len(path)):
            return True
        if at < len(pattern) and pattern[at] == ANY_DEPTH:
            retry = (at + 1, here)
            at += 1
        elif at < len(pattern) and here < len(path) and matches(pattern[at], path[here]):
            at, here = at + 1, here + 1
        elif retry is not None and retry[1] < len(path):
            retry = (retry[0], retry[1] + 1)
            at, here = retry
        else:
            return False
