"""The tool `grep`: ripgrep where there is one, else the same search in Python.

Either runs as a child process and prints `path NUL number : text`. Python's regular expressions can take for ever and cannot
be interrupted, but a child can be ended.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import stat
import sys
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from cru.core.base.files.glob import BadGlob, expand_braces
from cru.core.base.files.regular import open_regular
from cru.core.base.files.search_path import find_program
from cru.core.base.files.selection import select_by_glob
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.run import ProcessResult, run_program
from cru.core.guard.rules.hidden_files import HiddenFiles
from cru.core.tools import ripgrep
from cru.core.tools.arguments import Grep
from cru.core.tools.hidden import HiddenCount, find_hidden
from cru.core.tools.paths import os_failure, printable, require_regular, require_status, resolve
from cru.core.tools.protocol import ArgumentError, ToolContext, ToolError, ToolOptions, ToolResult, ToolTimeout
from cru.core.tools.ripgrep import OUTPUT, WIDTH
from cru.core.tools.scan import MATCHES, FoundLine, SearchJob, hidden_files, parse_lines
from cru.core.tools.shell import keep_printed
from cru.core.tools.walk import WalkStopped, deadline

SECONDS = 60.0
_START = "import sys; sys.path[:] = {path!r}; from cru.core.tools.scan import main; main()"


class _SearchedFiles:
    """The files of a search whose lines are not shown."""

    def __init__(self, job: SearchJob) -> None:
        self._job = job
        self._count = HiddenCount(job.hidden)
        self._hides: dict[str, bool] = {}

    def __contains__(self, shown: str) -> bool:
        """By the path as it is printed, judged where it leads now."""
        if self._job.hidden is None:
            return False
        if shown not in self._hides:
            path = os.path.realpath(os.path.join(self._job.root, shown))
            self._hides[shown] = self._count.why(path) is not None
        return self._hides[shown]

    async def count(self) -> None:
        """Look for them in a thread, in all that is searched."""
        if self._job.hidden is None:
            return
        stopped = False
        late = deadline(SECONDS)

        def look() -> None:
            try:
                for path in hidden_files(self._job, lambda: stopped or late()):
                    self._count.why(path)
            except WalkStopped:
                self._count.is_whole = False

        try:
            await asyncio.to_thread(look)
        finally:
            stopped = True  # a thread cannot be cancelled, but it looks here

    def notes(self) -> list[str]:
        return self._count.notes()


async def grep(args: Grep, running: ToolContext, options: ToolOptions) -> ToolResult:
    job = _job(args, running.root, find_hidden(running, "grep", args.path))
    hidden = _SearchedFiles(job)
    counting = asyncio.create_task(hidden.count())
    try:
        ended, lines = await _search(job, running, hidden)
        await counting
    finally:
        counting.cancel()
    shown = _show_lines(lines, ended.is_cut, options, hidden)
    if ended.timed_out:
        raise ToolTimeout(f"the search took longer than {SECONDS:g} s; give a smaller `path` or an `include`", shown)
    if ended.exit_status and ended.output and not lines:
        raise ToolError(f"the search failed: {ended.output[:500].strip()}")
    return ToolResult(shown)


async def _search(
    job: SearchJob, running: ToolContext, hidden: _SearchedFiles
) -> tuple[ProcessResult, list[FoundLine]]:
    """How it ended, and the lines in the order in which they are shown."""
    late = monotonic() + SECONDS

    async def run(argv: list[str], limit: int, stdin: bytes = b"") -> ProcessResult:
        capture = TextCapture(limit=limit, errors="surrogateescape", ends_at_limit=True)
        program = Program(tuple(argv), own.root, own.env, stdin, is_bound=True)
        try:
            return _check_pattern(await run_program(program, late - monotonic(), capture))
        except asyncio.CancelledError:
            keep_printed(own, capture)
            raise

    own = replace(running, env=running.services.commands.env_of_own_programs(running.root, running.env))
    program = find_program("rg", own.env.get("PATH", ""))
    if program is not None:
        ended, lines = await ripgrep.search(program, job, run, hidden.__contains__)
        if ended.timed_out or 0 <= ended.exit_status <= 1 or lines:
            return ended, lines
    argv = [sys.executable, "-I", "-S", "-c", _START.format(path=[str(Path(__file__).resolve().parents[3]), *sys.path])]
    ended = await run(argv, OUTPUT, pickle.dumps(job))  # no ripgrep, or one that does not know these options
    return ended, list(parse_lines(ended.output, job.root))


def _job(args: Grep, root: Path, hidden: HiddenFiles | None) -> SearchJob:
    path = resolve(root, args.path)
    if not stat.S_ISDIR(require_status(path, args.path).st_mode):
        _require_text(path, args.path)
    near = os.path.relpath(path, root) if path.is_relative_to(root) else str(path)
    include = _include(args.include)
    if "\n" in args.pattern or "\0" in args.pattern:
        raise ArgumentError("`pattern`: is matched line by line, so it cannot hold a line end or a NUL character")
    return SearchJob(args.pattern, near, str(root), include, args.ignore_case, args.context, hidden)


def _require_text(path: Path, text: str) -> None:
    """ripgrep would wait for a pipe, and look through a file of any size for what is no line of it. Raises ToolError."""
    size = require_regular(path, text).st_size
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            is_binary = b"\0" in file.read(8192)
    except OSError as error:
        raise os_failure("read", text, error) from error
    if is_binary:
        raise ToolError(f"`{text}` is a binary file ({size:,} bytes)", "search it with `bash`")


def _include(pattern: str | None) -> tuple[str, ...]:
    """The patterns that a file's name or path must fit, without braces. Raises ArgumentError."""
    try:
        patterns = tuple(text.lstrip("/") for text in expand_braces(pattern)) if pattern else ()
        for text in patterns:
            select_by_glob([text])
    except BadGlob as error:
        raise ArgumentError(f"`include`: {error.message}") from error
    return patterns


def _check_pattern(ended: ProcessResult) -> ProcessResult:
    """Raises ArgumentError if the search ended because the pattern is none."""
    if ended.exit_status > 1 and "regex parse error:" in ended.output[:200]:
        problem = " ".join(ended.output.partition("regex parse error:")[2].split())[:500]
        raise ArgumentError(f"`pattern`: not a regular expression: {problem}")
    return ended


def _show_lines(lines: list[FoundLine], is_cut: bool, options: ToolOptions, hidden: _SearchedFiles) -> str:
    """`path:12:text` for a match, `path-11-text` for a line beside it, `--` between places that do not touch."""
    room = options.settings.tool_output_cache_threshold - 200  # for the note at the end
    shown: list[str] = []
    matches = 0
    is_apart = False
    for line in lines:
        is_apart = is_apart or line.is_apart
        if line.path in hidden:
            continue
        sign = ":" if line.is_match else "-"
        matches += line.is_match
        cut = f"{line.text[:WIDTH]} [line cut]" if len(line.text) > WIDTH else line.text
        path = line.path.removeprefix("./").replace("\n", "\\n")
        text = printable(f"{path}{sign}{line.number}{sign}{cut}")
        room -= len(text) + 1
        if matches > MATCHES or room < 0:
            is_cut = True
            break
        shown += ["--", text] if is_apart and shown else [text]
        is_apart = False
    notes = ["[there is more; give a narrower `pattern`, `path` or `include`]"] if is_cut else []
    return "\n".join([*(shown or ["(no matches)"]), *notes, *hidden.notes()])
