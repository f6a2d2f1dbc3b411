"""Which known name was probably meant: used wherever an unknown name is reported."""

from __future__ import annotations

from collections.abc import Iterable

SLIPS = 2
"""Edits that a misprint has at most."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known name nearest to `word`, or None if none is near. Case is ignored; at equal distance the first one wins.
    Near means: at most one edit in three characters, or else the shortest name that begins with the word."""
    folded = word.casefold()
    limit = max(1, len(folded) // 3)
    best: str | None = None
    longer: str | None = None
    for name in known:
        candidate = name.casefold()
        if abs(len(candidate) - len(folded)) <= limit:
            steps = distance(folded, candidate, limit)
            if steps <= limit:
                best, limit = name, steps - 1
                if steps == 0:
                    break
        if len(folded) >= 3 and candidate.startswith(folded) and (longer is None or len(name) < len(longer)):
            longer = name
    return best or longer


def distance(a: str, b: str, limit: int | None = None) -> int:
    """How many single-character insertions, deletions, replacements and swaps of neighbours turn `a` into `b`; something above the limit if
    they are more than that."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    nearest = 0
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if limit is not None and min(nearest, min(row)) > limit:  # a swap reaches over one row
            return limit + 1
        before, last, nearest = last, row, min(row)
    return last[-1]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The hint for an unknown name: "did you mean `x`?", or "" if nothing is near."""
    name = closest(word, known)
    return f"did you mean `{name}`?" if name else ""


def is_misprint(word: str, name: str) -> bool:
    """Whether a word is nearly this name, and not the name itself: closer than what is only suggested."""
    folded = word.casefold()
    if word == name or abs(len(folded) - len(name)) > SLIPS:
        return False
    return distance(folded, name) <= min(SLIPS, max(1, len(folded) // 3))
