"""The search of `grep` with ripgrep. It searches with several threads and prints each file when it is done with it, so its files are put
in order here: asked to sort, it uses one thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from heapq import nsmallest
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from cru.core.base.process.run import ProcessResult
from cru.core.tools.scan import MATCHES, FoundLine, SearchJob, parse_lines
from cru.core.tools.walk import RULES_LIMIT

WIDTH = 500
OUTPUT = 2 * 1024 * 1024
PATHS = 64 * 1024 * 1024
MEMORY = 1 << 20
"""KiB of data that ripgrep may hold: a `.gitignore` of a checkout may lead to a file without end."""
IGNORE_FILES = (".gitignore", ".git/info/exclude")

Run: TypeAlias = Callable[[list[str], int], Awaitable[ProcessResult]]
"""Runs a program and ends it when it has printed more than so many characters."""


async def search(
    program: str, job: SearchJob, run: Run, is_hidden: Callable[[str], bool]
) -> tuple[ProcessResult, list[FoundLine]]:
    """What came of it, and the lines in the order of their paths. If there are too many, those of the first files: `is_hidden` tells
    which files do not count."""
    ended = await run([*_argv(program, job), *_line_options(job), f"--regexp={job.pattern}", "--", job.path], OUTPUT)
    if ended.is_cut:
        listed = await run(
            [*_argv(program, job), "--files-with-matches", f"--regexp={job.pattern}", "--", job.path], PATHS
        )
        first = await asyncio.to_thread(_first_paths, listed.output.split("\0")[:-1], is_hidden)
        if listed.timed_out or not first:
            return replace(listed, output="", exit_status=min(listed.exit_status, 1)), []
        # one thread: in this order, so that what is left out stands at the end
        ended = await run(
            [*_argv(program, job), *_line_options(job), "--threads=1", f"--regexp={job.pattern}", "--", *first], OUTPUT
        )
    return ended, list(_in_order(parse_lines(ended.output, job.root), is_apart=job.context > 0))


def _argv(program: str, job: SearchJob) -> list[str]:
    argv = ["/bin/sh", "-c", f'ulimit -d {MEMORY} 2>/dev/null; exec "$@"', "sh"]
    argv += [program, "--no-config", "--no-messages", "--color=never", "--null"]
    argv += ["--no-ignore-vcs"] if _has_bad_ignore_file(job) else []
    argv += ["--hidden", "--glob=!.git", "--no-ignore-dot", "--no-ignore-global", "--no-require-git"]
    argv += ["--ignore-case"] if job.ignore_case else []
    names = [pattern for pattern in job.include if "/" not in pattern]
    argv += [f"--type-add=included:{name}" for name in names] + (["--type=included"] if names else [])
    return argv + [f"--glob=/{pattern}" for pattern in job.include if "/" in pattern]


def _has_bad_ignore_file(job: SearchJob) -> bool:
    """Whether ripgrep would wait for a file that says what is ignored, or read it without end. One of an inner folder ends with its
    memory, or with its time."""
    folders = [os.path.join(job.root, job.path), job.root, *map(str, Path(job.root).parents)]
    files = [os.path.join(folder, name) for folder in folders for name in IGNORE_FILES]
    return any(
        os.path.exists(file) and (not os.path.isfile(file) or os.path.getsize(file) > RULES_LIMIT) for file in files
    )


def _line_options(job: SearchJob) -> list[str]:
    options = ["--no-heading", "--with-filename", "--line-number", f"--max-count={MATCHES + 1}"]
    options += [f"--max-columns={4 * WIDTH}", "--max-columns-preview"]
    return options + ([f"--context={job.context}"] if job.context else [])


def _in_order(lines: Iterable[FoundLine], *, is_apart: bool) -> Iterator[FoundLine]:
    """File by file; `is_apart` says whether there is a gap before each."""
    files = [list(file) for _, file in groupby(lines, lambda line: line.path)]
    for first, *others in sorted(files, key=lambda file: _by_names(file[0].path)):
        yield replace(first, is_apart=is_apart)
        yield from others


def _first_paths(paths: list[str], is_hidden: Callable[[str], bool]) -> list[str]:
    """As many as lines are shown at most, without the hidden ones; without a look at all of them, which may be very many."""
    limit = looked = MATCHES + 1
    while True:
        first = [path for path in nsmallest(looked, paths, _by_names) if not is_hidden(path)][:limit]
        if len(first) == limit or looked >= len(paths):
            return first
        looked *= 8


def _by_names(path: str) -> str:
    """What orders paths name by name."""
    return path.replace("/", "\0")
