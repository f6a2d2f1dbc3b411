"""A hook's command as a process: its own session, payload on standard input, output and errors apart, ended with everything in it."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cru.extensions.hooks.errors import HookError
from cru.extensions.hooks.launch import jq, shells
from cru.extensions.hooks.launch.dispatch import DIALECTS as DISPATCHING
from cru.extensions.hooks.launch.dispatch import prepared
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.result import CommandResult
from cru.process.child import Child

KEPT = 1 << 20
MOST = 16 << 20
GRACE = 1.0
ENDING = {"crush": signal.SIGINT}
"""How a dialect asks a hook to end; the others say SIGTERM."""
LONGEST = (128 << 10) - 1
"""Bytes of one `NAME=value` that Linux passes on."""
BOM = "\ufeff"


class _Kept(Struct):
    """What came through one pipe, and how much it was."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def feed(self, data: bytes) -> None:
        if self.size < KEPT:
            self.parts.append(data[: KEPT - self.size])
        self.size += len(data)

    def text(self) -> str:
        return b"".join(self.parts).decode("utf-8", "replace").removeprefix(BOM)


async def run(entry: HookEntry, stdin: bytes, env: Mapping[str, str], cwd: Path) -> CommandResult:
    """Run the entry's command to its end. Never raises but when cancelled; then, and at its limit, its whole session is ended.

    At the limit it is asked to end, and has one second to do so: if it then ends by itself, its own exit status counts.
    """
    began = time.perf_counter()
    env, left_out = passable({**env, **dict(jq.stand_in(env.get("PATH", "")))})
    try:
        argv = command_line(entry, env, cwd)
    except HookError as error:
        return CommandResult(None, error=f"{error.message} ({error.hint})" if error.hint else error.message)
    out, err = _Kept(), _Kept()
    if not cwd.is_absolute():
        return CommandResult(None, error="it needs a working directory")
    try:
        exit, timed_out = await _ended(entry, argv, stdin, env, cwd, out, err)
    except (OSError, ValueError) as error:
        return CommandResult(None, error=_why(error, argv, cwd), ms=(time.perf_counter() - began) * 1000)
    too_much = max(out.size, err.size) > MOST
    made = CommandResult(
        None if timed_out or too_much else exit,
        out.text(),
        err.text(),
        timed_out=timed_out,
        truncated=max(out.size, err.size) > KEPT,
        error=f"printed more than {MOST >> 20} MiB" if too_much else "",
    )
    if exit == 2 and entry.args is None and entry.dialect in DISPATCHING and not await _is_source(argv, env, cwd):
        made = replace(made, exit=1)
    note = "; ".join(_notes(made, left_out, env))
    return replace(made, note=note, left_out=tuple(left_out), ms=(time.perf_counter() - began) * 1000)


def command_line(entry: HookEntry, env: Mapping[str, str], cwd: Path) -> tuple[str, ...]:
    """What is executed. Raises NoShell."""
    if entry.args is not None:
        return (entry.command, *entry.args) if entry.command else entry.args
    shell = shells.shell(entry.dialect, entry.shell, env.get("PATH", ""))
    source = entry.command
    if entry.dialect in DISPATCHING:
        source = prepared(source, shell[0], env, cwd)
    # a command that begins with a sign would be taken for an option
    return (*shell, f" {source}" if source[:1] in ("-", "+") else source)


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


async def _ended(
    entry: HookEntry, argv: Sequence[str], stdin: bytes, env: Mapping[str, str], cwd: Path, out: _Kept, err: _Kept
) -> tuple[int, bool]:
    """(exit status, whether the time was over). Raises OSError or ValueError if it cannot be started."""

    def sink(kept: _Kept, data: bytes) -> None:
        kept.feed(data)
        if kept.size > MOST:
            child.finish()

    child = Child(argv, cwd, env, lambda data: sink(out, data), errors=lambda data: sink(err, data), stdin=stdin)
    late = over = True  # cancelled, as far as the end is concerned
    code = 0
    try:
        over = late = await child.wait(entry.timeout)
        if late:
            child.signal(ENDING.get(entry.dialect, signal.SIGTERM))
            over = await child.wait(GRACE)
    finally:
        if late or not child.ended:
            child.kill()
        code, _ = child.close()
    by_signal = code < 0 or code in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    return code, over or (late and by_signal)


async def _is_source(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> bool:
    """Whether the shell can read its source at all: it exits with 2 if not, which would be a hook's "deny"."""
    kept = _Kept()
    *shell, option, source = argv
    patterns = ("-O", "extglob") if "bash" in shell[0] else ()  # it may turn them on as it goes
    child = Child((*shell, *patterns, "-n", option, source), cwd, env, kept.feed)
    over = True
    try:
        over = await child.wait(GRACE)
    finally:
        if not child.ended:
            child.kill()
        code, _ = child.close()
    return over or code == 0


def _notes(made: CommandResult, left_out: Sequence[str], env: Mapping[str, str]) -> list[str]:
    notes = []
    if left_out:
        names = ", ".join(name or "(no name)" for name in left_out)
        notes.append(
            f"{names} cannot be passed as an environment variable (128 KiB at most); standard input has everything"
        )
    if made.truncated and not made.error:
        notes.append(f"only the first {KEPT >> 20} MiB of what it printed counts")
    if made.stderr and "CRU_JAQ" not in env and jq.missed(made.stderr):
        notes.append(jq.MISSING)
    return notes


def _why(error: OSError | ValueError, argv: Sequence[str], cwd: Path) -> str:
    if isinstance(error, ValueError):
        return "a command cannot hold a NUL character" if "null byte" in str(error) else f"cannot be run: {error}"
    if error.errno == errno.E2BIG:
        return "the command and its environment are too long; write the command to a file and run that"
    if not cwd.is_dir():
        return f"the folder {cwd} is gone"
    return f"cannot start {argv[0]}: {error.strerror}"
