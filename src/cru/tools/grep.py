"""The tool `grep`: ripgrep where there is one, else the same search in Python.

Either runs as a child process and prints `path NUL number : text`. Python's regular expressions can take for ever and cannot
be interrupted, but a child can be ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from cru.files.glob import BadGlob, compile_search_glob, expand_braces
from cru.process.capture import TextCapture
from cru.process.run import ProcessResult
from cru.tools.arguments import Grep
from cru.tools.paths import printable, require_status, resolve
from cru.tools.protocol import ArgumentError, ToolContext, ToolError, ToolOptions, ToolResult, ToolTimeout
from cru.tools.scan import MATCHES, SearchJob, searched_files
from cru.tools.shell import find_program, run_command
from cru.tools.walk import WalkStopped, deadline

WIDTH = 500
OUTPUT = 2 * 1024 * 1024
SECONDS = 60.0


class _HiddenFiles:
    """Files whose lines are not shown: a rule denies to read them. They are counted whether or not something was
    found in them, since what is found in a file says what stands in it."""

    def __init__(self, root: str, why_not_read: Callable[[str], str] | None) -> None:
        self._root = root
        self._why_not_read = why_not_read
        self._known: dict[str, bool] = {}
        self._whole = True

    def __contains__(self, shown: str) -> bool:
        path = os.path.realpath(os.path.join(self._root, shown))
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._why_not_read is not None and bool(self._why_not_read(path))
        return known

    async def count(self, job: SearchJob) -> None:
        """Look at every file that is searched, in a thread; without rules none is hidden."""
        if self._why_not_read is None:
            return
        stopped = False
        late = deadline(SECONDS)

        def look() -> None:
            try:
                for shown, _ in searched_files(job, lambda: stopped or late()):
                    _ = shown in self
            except WalkStopped:
                self._whole = False

        try:
            await asyncio.to_thread(look)
        finally:
            stopped = True

    def note(self) -> list[str]:
        """The line that says how many there are; none if there are none."""
        count = sum(self._known.values())
        least = "" if self._whole else "at least "
        text = f"[{least}{count:,} {'file' if count == 1 else 'files'} left out: rules forbid to read them]"
        return [text] if count else []


async def grep(args: Grep, running: ToolContext, options: ToolOptions) -> ToolResult:
    job = _job(args, running.root)
    hidden = _HiddenFiles(job.root, running.services.why_not_read)
    await hidden.count(job)
    ripgrep = find_program("rg", running.env.get("PATH", ""))
    ended = await _search(_ripgrep(ripgrep, job), running) if ripgrep else None
    if ended is None or (ended.exit_status > 1 and not _is_bad_pattern(ended) and "\0" not in ended.output):
        ended = await _search(_python_search(job), running)  # no ripgrep, or one that does not know these options
    if _is_bad_pattern(ended):
        raise ArgumentError(f"`pattern`: not a regular expression: {_pattern_error(ended.output)}")
    if ended.timed_out:
        raise ToolTimeout(
            f"the search took longer than {SECONDS:g} s; give a smaller `path` or an `include`",
            _show_matches(ended, options, hidden),
        )
    if ended.exit_status and ended.output and "\0" not in ended.output:
        raise ToolError(f"the search failed: {ended.output[:500].strip()}")
    return ToolResult(_show_matches(ended, options, hidden))


def _job(args: Grep, root: Path) -> SearchJob:
    path = resolve(root, args.path)
    require_status(path, args.path)
    near = os.path.relpath(path, root) if path.is_relative_to(root) else str(path)
    include = _include(args.include)
    if "\n" in args.pattern or "\0" in args.pattern:
        raise ArgumentError("`pattern`: is matched line by line, so it cannot hold a line end or a NUL character")
    return SearchJob(args.pattern, near, str(root), include, args.ignore_case, args.context)


def _include(pattern: str | None) -> tuple[str, ...]:
    """The patterns that a file's name or path must fit, without braces. Raises ArgumentError."""
    try:
        patterns = tuple(text.lstrip("/") for text in expand_braces(pattern)) if pattern else ()
        for text in patterns:
            compile_search_glob(text)
    except BadGlob as error:
        raise ArgumentError(f"`include`: {error.message}") from error
    return patterns


def _ripgrep(program: str, job: SearchJob) -> list[str]:
    argv = [
        program,
        "--no-config",
        "--no-messages",
        "--color=never",
        "--no-heading",
        "--with-filename",
        "--line-number",
    ]
    argv += ["--null", "--sort=path", "--hidden", "--glob=!.git", "--no-ignore-dot", "--no-ignore-global"]
    argv += ["--no-require-git", f"--max-count={MATCHES + 1}", f"--max-columns={4 * WIDTH}", "--max-columns-preview"]
    argv += [f"--context={job.context}"] if job.context else []
    argv += ["--ignore-case"] if job.ignore_case else []
    names = [pattern for pattern in job.include if "/" not in pattern]
    argv += [f"--type-add=included:{name}" for name in names] + (["--type=included"] if names else [])
    argv += [f"--glob=/{pattern}" for pattern in job.include if "/" in pattern]
    return [*argv, f"--regexp={job.pattern}", "--", job.path]


def _python_search(job: SearchJob) -> list[str]:
    from msgspec.json import encode

    path = [str(Path(__file__).resolve().parents[2]), *sys.path]
    start = f"import sys; sys.path[:] = {path!r}; from cru.tools.scan import main; main()"
    return [sys.executable, "-I", "-S", "-c", start, encode(job).decode()]


async def _search(argv: list[str], running: ToolContext) -> ProcessResult:
    return await run_command(argv, running, SECONDS, TextCapture(limit=OUTPUT, ends_at_limit=True))


def _is_bad_pattern(ended: ProcessResult) -> bool:
    return ended.exit_status > 1 and "regex parse error:" in ended.output[:200]


def _pattern_error(output: str) -> str:
    return " ".join(output.partition("regex parse error:")[2].split())[:500]


def _show_matches(ended: ProcessResult, options: ToolOptions, hidden: _HiddenFiles) -> str:
    """`path:12:text` for a match, `path-11-text` for a line beside it."""
    room = options.settings.tool_output_cache_threshold - 200  # for the note at the end
    shown: list[str] = []
    matches = 0
    more = ended.is_cut
    for line in ended.output.split("\n"):
        path, separator, rest = line.partition("\0")
        number = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        if separator and number:
            if path in hidden:
                continue
            sign, text = rest[len(number)], rest[len(number) + 1 :].rstrip("\r")
            matches += sign == ":"
            cut = f"{text[:WIDTH]} [line cut]" if len(text) > WIDTH else text
            line = f"{printable(path.removeprefix('./'))}{sign}{number}{sign}{cut}"
        elif line != "--" or not shown or shown[-1] == "--":
            continue
        room -= len(line) + 1
        if matches > MATCHES or room < 0:
            more = True
            break
        shown.append(line)
    if shown and shown[-1] == "--":
        shown.pop()
    if more:
        shown.append("[there is more; give a narrower `pattern`, `path` or `include`]")
    return "\n".join([*(shown or ["(no matches)"]), *hidden.note()])
