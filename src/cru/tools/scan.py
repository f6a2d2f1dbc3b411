"""The search of `grep` without ripgrep. Runs as a program of its own: `main` reads a job from the command line and prints
`path NUL number : text` for a match, `path NUL number - text` for a line beside it, `--` between places that do not touch."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from cru.files.glob import compile_search_glob
from cru.tools.walk import never, walk

MATCHES = 200
LARGEST = 64 * 1024 * 1024


class SearchJob(Struct, frozen=True):
    """What is searched, and how.

    pattern: a regular expression
    path: relative to the folder in which the search runs, or absolute
    root: of the project
    include: globs of which a file must fit one
    ignore_case: letters of either case match
    context: lines around a match
    """

    pattern: str
    path: str
    root: str
    include: tuple[str, ...] = ()
    ignore_case: bool = False
    context: int = 0


def main() -> None:
    """Exit status as of grep: 0 something was found, 1 nothing, 2 the pattern is wrong."""
    from msgspec.json import decode

    job = decode(sys.argv[1], type=SearchJob)
    out = sys.stdout.buffer
    try:
        regex = re.compile(job.pattern, re.IGNORECASE if job.ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        out.write(f"regex parse error: {error}\n".encode("utf-8", "replace"))
        out.flush()
        sys.exit(2)
    any_match = False
    for shown, path in searched_files(job):
        for line in _matches(path, regex, job.context):
            if line != b"--":
                out.write(shown.encode("utf-8", "surrogateescape") + b"\0")
            elif not any_match:
                continue
            any_match = True
            out.write(line + b"\n")
        out.flush()
    sys.exit(0 if any_match else 1)


def searched_files(job: SearchJob, stop: Callable[[], bool] = never) -> Iterator[tuple[str, Path]]:
    """(the name to print, the file). Raises WalkStopped when `stop()` is true."""
    path = Path(os.path.realpath(os.path.join(job.root, job.path)))
    if path.is_file():
        yield job.path, path
        return
    included = _include_test(job.include)
    for names, entry in walk(path, Path(job.root), stop):
        if included(Path(job.path, *names).parts) and entry.is_file(follow_symlinks=False):
            yield os.path.normpath(Path(job.path, *names)), Path(entry.path)


def _include_test(patterns: tuple[str, ...]) -> Callable[[tuple[str, ...]], bool]:
    """A pattern with a slash matches the path from the project root, one without the last name."""
    tests = [compile_search_glob(pattern if "/" in pattern else f"**/{pattern}") for pattern in patterns]
    return lambda names: not tests or any(test(names) for test in tests)


def _matches(path: Path, regex: re.Pattern[str], context: int) -> Iterator[bytes]:
    """The printed lines of one file, each place with context led in by `--`."""
    try:
        if path.stat().st_size > LARGEST:
            return
        data = path.read_bytes()
    except OSError:
        return
    if b"\0" in data[:8192]:
        return
    lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n") if data else []
    hits = [i for i, line in enumerate(lines) if regex.search(line.removesuffix("\r"))][: MATCHES + 1]
    shown = -1
    for place, hit in enumerate(hits):
        first = max(hit - context, shown + 1)
        last = hit + context
        if place + 1 < len(hits):
            last = min(last, hits[place + 1] - 1)
        if context and (place == 0 or first > shown + 1):
            yield b"--"
        for i in range(first, min(last + 1, len(lines))):
            yield f"{i + 1}{':' if i == hit else '-'}{lines[i][:4000]}".encode("utf-8", "replace")
            shown = i
