"""What is wrong with a line that stays as it is, is told once: `.reported` holds the keys of what was told."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cru.core.base.files.regular import append_lines
from cru.core.conversations import StoreUnreadable, read_if_exists
from cru.core.conversations.entries import LogProblem

REPORTED = ".reported"
MOST = 1000
"""Keys that are remembered; a file with more bad lines than that is told of again."""
MOST_SHOWN = 20
"""Problems that are listed at once; the others are counted."""


def report_once(folder: Path, problems: Iterable[LogProblem]) -> list[LogProblem]:
    """The problems in a context that nobody was told of yet; whoever asks tells them."""
    problems = list(problems)
    keys = dict.fromkeys(problem.key for problem in problems if problem.key)
    if not keys:
        return problems
    path = folder / REPORTED
    try:
        known = (read_if_exists(path) or b"").decode("ascii", "replace").split()
        known_keys = set(known)
        new = [key for key in keys if key not in known_keys][: max(0, MOST - len(known))]
        if new:
            append_lines(path, "".join(f"{key}\n" for key in new).encode())
    except (OSError, StoreUnreadable):
        known_keys = set()  # where nothing can be remembered it is told every time
    return keep_first([problem for problem in problems if problem.key not in known_keys])


def keep_first(problems: list[LogProblem]) -> list[LogProblem]:
    """Return the problems, of many of them the first and one that counts the others."""
    more = len(problems) - MOST_SHOWN
    if more <= 0:
        return problems
    last = problems[-1]
    return [*problems[:MOST_SHOWN], LogProblem(last.file, last.line, f"and {more:,} more lines up to here")]
