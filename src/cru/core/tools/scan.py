"""The search of `grep` without ripgrep. Runs as a program of its own: `main` reads a job from standard input and prints as ripgrep does
`path NUL number : text` for a match, `path NUL number - text` for a line beside it, `--` between places that do not touch; `parse_lines`
reads that."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from cru.core.base.files.regular import open_regular
from cru.core.base.files.selection import EVERYTHING, FileSelection, both, select_by_glob, without
from cru.core.guard.rules.hidden_files import HiddenFiles
from cru.core.tools.walk import never, walk

MATCHES = 200
LARGEST = 64 * 1024 * 1024
_LINE = re.compile(r"([0-9]+)([:-])")
_SPECIAL = frozenset(".^$*+?{}[]()|\\\ufffd")
"""What makes a regular expression more than a text, and what text that is not UTF-8 is shown as."""


class SearchJob(Struct, frozen=True):
    """What is searched, and how.

    pattern: a regular expression
    path: relative to the folder in which the search runs, or absolute
    root: of the project
    include: globs of which a file must fit one
    ignore_case: letters of either case match
    context: lines around a match
    hidden: what must not be shown, None if that is nothing
    """

    pattern: str
    path: str
    root: str
    include: tuple[str, ...] = ()
    ignore_case: bool = False
    context: int = 0
    hidden: HiddenFiles | None = None

    @property
    def place(self) -> str:
        """Where it is searched: absolute, links followed."""
        return os.path.realpath(os.path.join(self.root, self.path))


def main() -> None:
    """Exit status as of grep: 0 something was found, 1 nothing, 2 the pattern is wrong."""
    job: SearchJob = pickle.load(sys.stdin.buffer)
    out = sys.stdout.buffer
    try:
        regex = re.compile(job.pattern, re.IGNORECASE if job.ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        out.write(f"regex parse error: {error}\n".encode("utf-8", "replace"))
        out.flush()
        sys.exit(2)
    any_match = False
    is_text = not job.ignore_case and _SPECIAL.isdisjoint(job.pattern)
    literal = job.pattern.encode("utf-8", "surrogatepass") if is_text else b""
    for shown, path in readable_files(job):
        for line in _matches(path, regex, literal, job.context):
            if line != b"--":
                out.write(os.fsencode(shown) + b"\0")
            elif not any_match:
                continue
            any_match = True
            out.write(line + b"\n")
        out.flush()
    sys.exit(0 if any_match else 1)


class FoundLine(Struct, frozen=True):
    """A line that was printed.

    path: as it was printed
    number: of the line, counted from 1
    is_match: it matches, and does not only stand beside one that does
    is_apart: it does not follow the line before it, as far as that was printed
    """

    path: str
    number: str
    text: str
    is_match: bool
    is_apart: bool


def parse_lines(output: str, root: str) -> Iterator[FoundLine]:
    """The lines in what a search in the folder `root` has printed."""
    before, *records = output.split("\0")
    for record in records:
        line, _, after = record.partition("\n")
        start = _LINE.match(line)
        if start:
            apart = before.removeprefix("--\n")
            path = apart if "\n" not in apart else _existing_path(apart.split("\n"), root)
            yield FoundLine(path, start[1], line[start.end() :].rstrip("\r"), start[2] == ":", apart != before)
        before = after


def _existing_path(lines: list[str], root: str) -> str:
    """A path may hold line ends, and there may be complaints before it: the longest end of these lines that is there."""
    paths = ["\n".join(lines[i:]) for i in range(len(lines))]
    return next((path for path in paths if os.path.lexists(os.path.join(root, path))), paths[-1])


def readable_files(job: SearchJob) -> Iterator[tuple[str, str]]:
    """(the name to print, the path) of every file that is searched."""
    place = job.place
    if os.path.isfile(place):
        if job.hidden is None or job.hidden.why(place) is None:
            yield job.path, place
        return
    selection = _included(job)
    if job.hidden is not None:
        selection = without(selection, job.hidden.below(place))
    shown = job.path.rstrip("/") + "/"
    skip = len(place.rstrip("/")) + 1
    for entry in walk(Path(place), Path(job.root), selection):
        if entry.is_file(follow_symlinks=False):
            yield shown + entry.path[skip:], entry.path


def hidden_files(job: SearchJob, stop: Callable[[], bool] = never) -> Iterator[str]:
    """The paths of the files that would be searched if they might be shown. Raises WalkStopped when `stop()` is true."""
    place = job.place
    if job.hidden is None:
        return
    if os.path.isfile(place):
        if job.hidden.why(place) is not None:
            yield place
        return
    selection = both(job.hidden.below(place), _included(job))
    for entry in walk(Path(place), Path(job.root), selection, stop):
        if entry.is_file(follow_symlinks=False):
            yield entry.path


def _included(job: SearchJob) -> FileSelection:
    """The files that an `include` with a slash matches from the project root, one without by their names."""
    if not job.include:
        return EVERYTHING
    selection = select_by_glob(pattern if "/" in pattern else f"**/{pattern}" for pattern in job.include)
    for name in Path(job.path).parts:
        selection = selection.below(name)
    return selection


def _matches(path: str, regex: re.Pattern[str], literal: bytes, context: int) -> Iterator[bytes]:
    """The printed lines of one file, each place with context led in by `--`. A file without the literal has no match."""
    try:
        with open(open_regular(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size > LARGEST:
                return
            data = file.readall()
    except OSError:
        return
    if b"\0" in data[:8192] or literal not in data:
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
            line = lines[i][:4000].replace("\0", "\ufffd")  # a NUL is what ends a path
            yield f"{i + 1}{':' if i == hit else '-'}{line}".encode("utf-8", "replace")
            shown = i
