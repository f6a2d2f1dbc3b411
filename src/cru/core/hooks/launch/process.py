"""A hook's command as a process: its own session, payload on standard input, output and errors apart, ended with everything in it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cru.core.base.files.search_path import own_path
from cru.core.base.process.capture import ByteCapture
from cru.core.base.process.child import Program
from cru.core.base.process.errors import StartError, StartProblem
from cru.core.base.process.run import AT_ONCE, Ending, ProcessResult, run_program
from cru.core.base.values.errors import CruError
from cru.core.hooks.errors import HookError
from cru.core.hooks.launch import shells
from cru.core.hooks.launch.interpreters import insert_interpreters
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.mapping import LaunchRules
from cru.core.hooks.model.result import HookRun

if TYPE_CHECKING:
    from cru.core.base.process.confined import Confine

KEPT_BYTES = 1 << 20
MOST_BYTES = 16 << 20
GRACE = 1.0
LONGEST = (128 << 10) - 1
"""Bytes of one `NAME=value` that Linux passes on."""
BOM = "\ufeff"
INTERRUPTED = (128 + signal.SIGTERM, 128 + signal.SIGINT)
"""How a shell says that what it ran was ended."""


async def run_hook_command(
    entry: HookEntry,
    stdin: bytes,
    env: Mapping[str, str],
    cwd: Path,
    rules: LaunchRules,
    confine: Confine | None = None,
    root: Path | None = None,
) -> HookRun:
    """Run the entry's command to its end. Never raises but when cancelled; then, and at its limit, its whole session is ended.

    At the limit it is asked to end, and has one second to do so: if it then ends by itself, its own exit status counts.
    """
    began = time.perf_counter()
    env, left_out = passable({**env, **dict(shells.jq_stand_in(env.get("PATH", "")))})
    try:
        argv = command_line(entry, env, cwd, rules, root or cwd)
    except HookError as error:
        return HookRun(None, error=f"{error.message} ({error.hint})" if error.hint else error.message)
    if not cwd.is_absolute():
        return HookRun(None, error="it needs a working directory")
    out, err = ByteCapture(KEPT_BYTES, MOST_BYTES), ByteCapture(KEPT_BYTES, MOST_BYTES)
    ending = Ending(rules.end_signal, GRACE, grace_interrupted=0)
    notes: list[str] = []

    async def run(program: Program) -> ProcessResult:
        return await run_program(program, entry.timeout, out, err, ending=ending)

    try:
        program = Program(argv, cwd, env, stdin, is_marked=True)
        ended = await (run(program) if confine is None else _run_confined(confine, program, run, notes))
    except StartError as error:
        return HookRun(None, error=_not_started(error), ms=(time.perf_counter() - began) * 1000)
    except (CruError, OSError) as error:
        return HookRun(None, error=f"there is no sandbox for it: {error}")
    result = _read_end(ended, out.is_too_much or err.is_too_much, left_out)
    if result.exit == 2 and entry.args is None and rules.dispatches_paths and not await _is_source(argv, env, cwd):
        result = replace(result, exit=1)
    note = "; ".join(filter(None, (*_notes(result, env), *notes)))
    return replace(result, note=note, ms=(time.perf_counter() - began) * 1000)


async def _run_confined(
    confine: Confine, program: Program, run: Callable[[Program], Awaitable[ProcessResult]], notes: list[str]
) -> ProcessResult:
    """What there is to say about it is added to the notes, and to the reason of one that denies (exit status 2), which the model reads."""
    from cru.core.base.process.confined import describe_put_aside, run_confined

    result = await run_confined(confine, program, run)
    notes += [describe_put_aside(result.put_aside), result.why]
    if result.ended.exit_status == 2 and result.why:
        return replace(result.ended, errors=f"{result.ended.errors.rstrip()}\n[{result.why}]")
    return result.ended


def _read_end(ended: ProcessResult, is_too_much: bool, left_out: list[str]) -> HookRun:
    """Asked to end, it may still end by itself: then its own exit status counts."""
    timed_out = ended.timed_out and (ended.exit_status < 0 or ended.exit_status in INTERRUPTED)
    return HookRun(
        None if timed_out or is_too_much else ended.exit_status,
        ended.output.removeprefix(BOM),
        ended.errors.removeprefix(BOM),
        timed_out=timed_out,
        truncated=ended.is_cut,
        error=f"printed more than {MOST_BYTES >> 20} MiB" if is_too_much else "",
        left_out=tuple(left_out),
    )


def command_line(
    entry: HookEntry, env: Mapping[str, str], cwd: Path, rules: LaunchRules, root: Path
) -> tuple[str, ...]:
    """What is executed. Raises HookError: there is no shell, or a placeholder has no value."""
    if entry.args is not None:
        words = (entry.command, *entry.args) if entry.command else entry.args
        return tuple(expand_placeholders(word, env, rules.placeholders) for word in words)
    shell = shells.find_shell(rules.shells[shells.SYSTEM], entry.shell, own_path(env.get("PATH", ""), str(root)))
    source = entry.command
    if rules.dispatches_paths:
        source = insert_interpreters(source, shell[0], env, cwd)
    # a command that begins with a sign would be taken for an option
    return (*shell, f" {source}" if source[:1] in ("-", "+") else source)


def expand_placeholders(word: str, env: Mapping[str, str], placeholders: tuple[str, ...]) -> str:
    """A word of the exec form with its placeholders replaced; all else in it stays as it is, since no shell reads it."""
    for name in placeholders:
        placeholder = f"${{{name}}}"
        if placeholder in word:
            if name not in env:
                raise HookError(f"{placeholder} has no value here")
            word = word.replace(placeholder, env[name])
    return word


def passable(env: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables that a process can be given, and the names of the others."""
    good = {name: value for name, value in env.items() if _passes(name, value)}
    return good, [name for name in env if name not in good]


def _passes(name: str, value: str) -> bool:
    if not name or "=" in name or "\0" in name or "\0" in value:
        return False
    if len(name) + len(value) < LONGEST // 4 and value.isascii():
        return True
    try:
        return len(os.fsencode(name)) + 1 + len(os.fsencode(value)) <= LONGEST
    except UnicodeEncodeError:
        return False


async def _is_source(argv: tuple[str, ...], env: Mapping[str, str], cwd: Path) -> bool:
    """Whether the shell can read its source at all: it exits with 2 if not, which would be a hook's "deny"."""
    *shell, option, source = argv
    patterns = ("-O", "extglob") if "bash" in shell[0] else ()  # it may turn them on as it goes
    # it only reads, but variables would have it, or the loader, run something before: nothing confines it
    program = Program((*shell, *patterns, "-n", option, source), cwd, {"PATH": env.get("PATH", os.defpath)})
    ended = await run_program(program, GRACE, ByteCapture(KEPT_BYTES, MOST_BYTES), ending=AT_ONCE)
    return ended.timed_out or ended.exit_status == 0


def _notes(result: HookRun, env: Mapping[str, str]) -> list[str]:
    notes = []
    if result.left_out:
        names = ", ".join(name or "(no name)" for name in result.left_out)
        notes.append(
            f"{names} cannot be passed as an environment variable (128 KiB at most); standard input has everything"
        )
    if result.truncated and not result.error:
        notes.append(f"only the first {KEPT_BYTES >> 20} MiB of what it printed counts")
    if result.stderr and "CRU_JAQ" not in env and shells.missed_jq(result.stderr):
        notes.append(shells.JQ_MISSING)
    return notes


def _not_started(error: StartError) -> str:
    match error.problem:
        case StartProblem.NUL_CHARACTER:
            return "a command cannot hold a NUL character"
        case StartProblem.UNUSABLE_TEXT:
            return f"cannot be run: {error.reason}"
        case StartProblem.TOO_LONG:
            return "the command and its environment are too long; write the command to a file and run that"
        case StartProblem.FOLDER_GONE:
            return f"the folder {error.folder} is gone"
        case _:
            return f"cannot start {error.program}: {error.reason}"
