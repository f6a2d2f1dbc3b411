"""A plugin's program as a process: its environment, what it is given, what came of it. Calls of tools and of hooks end here."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.extensions.errors import HookFailed
from cru.extensions.executables.executable import Executable, ToolSchema
from cru.tools.protocol import ToolResult, ToolTimeout

LONGEST = 100 << 10
"""Bytes of JSON that an environment variable is trusted with; Linux passes on 128 KiB with the name."""
ERRORS = "[standard error]\n"
"""Stands before what a program that failed said there."""
SCRUBBED = ("CHIBI_HOOK", "CHIBI_TOOL", "CHIBI_VERBOSE")


Lend = Callable[[int], AbstractAsyncContextManager[None]]


class ProgramContext(Struct, frozen=True):
    """Where programs run: `env` is the environment of tools, provider keys removed; `warn` tells the person; `lend` gives the terminal to
    a process group for a block, None where nobody sits at one."""

    cwd: Path
    root: Path
    home: Path
    env: Mapping[str, str]
    context: str
    warn: Callable[[str], None]
    verbose: bool = False
    lend: Lend | None = None


class ProgramResult(Struct, frozen=True):
    """What came of a run. code: its exit status, negative for a signal; problem: why it could not be started or was ended."""

    out: str
    err: str = ""
    code: int = 0
    problem: str = ""
    timed_out: bool = False
    cut: bool = False


async def call_tool(
    executable: Executable, tool: ToolSchema, args: Mapping[str, Any], where: ProgramContext, emit: Callable[[str], None] | None = None
) -> ToolResult:  # fmt: skip
    """Run the tool; what it prints is the result, as it is. Anything but exit status 0 is an error result with all that is known.
    `emit` gets what it prints as it comes. Raises ToolTimeout."""
    given = msgspec.json.encode(args)
    if executable.era == "env" and len(given) > LONGEST:
        return ToolResult(_too_long(executable, "the arguments", len(given)), is_error=True)
    extra = {"CHIBI_TOOL_NAME": tool.name}
    if where.verbose:
        extra["CHIBI_VERBOSE"] = "1"
    if executable.era == "env":
        extra["CHIBI_TOOL_ARGS"] = given.decode()
    stdin = None if executable.era == "env" else given
    ran = await run(executable, where, environment(where, extra), stdin, executable.timeout, emit)
    if ran.timed_out:
        raise ToolTimeout(
            f"{tool.name} ran longer than {executable.timeout:g} s and was ended, with everything that it started "
            f"(`[plugins.{executable.name}] timeout` gives it more)",
            ran.out,
        )
    return ToolResult(ran.out) if not ran.problem and ran.code == 0 else ToolResult(_failure(ran), is_error=True)


async def call_hook(executable: Executable, hook: str, payload: Mapping[str, Any], where: ProgramContext) -> str:
    """Run it for a hook. What it printed, without blanks around it. Raises HookFailed."""
    given = msgspec.json.encode(payload, enc_hook=str)
    extra = {"CHIBI_HOOK": hook}
    if executable.era == "env":
        if len(given) > LONGEST:
            raise HookFailed(_too_long(executable, "the payload", len(given)))
        extra["CHIBI_HOOK_DATA"] = given.decode()
    stdin = b"" if executable.era == "env" else given
    ran = await run(executable, where, environment(where, extra), stdin, executable.hook_timeout)
    problem = ran.problem or ("it printed too much" if ran.cut else "")
    if ran.timed_out:
        problem = f"it ran longer than {executable.hook_timeout:g} s and was ended"
    elif ran.code and not problem:
        problem = how(ran.code)
    if problem:
        raise HookFailed(problem)
    return ran.out.strip()


def environment(where: ProgramContext, extra: Mapping[str, str]) -> dict[str, str]:
    """What a program sees: nothing of a call or hook that cru itself was started from, and where cru works."""
    env = {name: value for name, value in where.env.items() if not name.startswith(SCRUBBED)}
    env |= {"CHIBI_CONTEXT": where.context, "CHIBI_PROJECT_ROOT": str(where.root), "CHIBI_HOME": str(where.home)}
    folder = _programs(where)
    if folder:
        env["PATH"] = f"{folder}{os.pathsep}{env.get('PATH') or os.defpath}"
    return {**env, **extra}


def _programs(where: ProgramContext) -> str:
    """The folder with the command `chibi`; "" if it cannot be made, which is told."""
    from cru.extensions.executables.shim import programs

    try:
        return str(programs(where.home))
    except OSError as error:
        where.warn(f"plugins find no command chibi: {error}")
        return ""


async def run(
    executable: Executable,
    where: ProgramContext,
    env: Mapping[str, str],
    stdin: bytes | None,
    seconds: float,
    emit: Callable[[str], None] | None = None,
) -> ProgramResult:
    """Run the program to its end, at most `seconds` without the time that a person takes. `stdin` is what it reads; None: the terminal, if
    somebody sits there. Its standard error goes on to ours as it comes. Cancelled, or at its limit, all that it started is ended."""
    from cru.extensions.executables.terminal import Errors, interrupted_too, opened
    from cru.process.capture import Capture
    from cru.process.child import Child
    from cru.process.run import end

    with opened(where.lend, ready="CHIBI_TOOL_NAME" in env) as terminal:
        capture, errors = Capture(emit), Errors(held=terminal is not None)
        given = stdin if stdin is not None else b"" if terminal is None else terminal.fd
        try:
            child = Child(
                (str(executable.path),), where.cwd, env, capture.feed,
                errors=errors.feed, stdin=given, alone=terminal is None,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            return ProgramResult("", problem=not_started(executable.path, where.cwd, error))
        try:
            timed_out = await (child.wait(seconds) if terminal is None else terminal.wait(child, seconds, errors))
        finally:
            try:
                if not child.ended:
                    await end(child)
            finally:
                code, behind = child.close()
                out, err = capture.close(), errors.close()
    if terminal is not None and terminal.lent:
        await interrupted_too(code)
    if behind:
        where.warn(f"{executable.name} left something running; what that prints from now on is not read")
    return ProgramResult(out, err, code, "", timed_out, capture.left_out > 0)


def not_started(path: Path, cwd: Path, error: OSError | ValueError) -> str:
    """Why a program cannot be run."""
    if isinstance(error, ValueError):
        return f"cannot be run: {error}"
    if not path.exists():
        return f"{path} is gone"
    if not cwd.is_dir():
        return f"the folder {cwd} is gone"
    if error.errno == errno.ENOEXEC:
        return f"{path} is no program: its first line must be #! and an interpreter"
    if error.errno == errno.ENOENT:
        return with_cr(path) or f"{path}: the interpreter that its first line names is not there"
    return f"cannot start {path}: {error.strerror}"


def with_cr(path: Path) -> str:
    """What is wrong with a script that was saved with the ends of lines of Windows; "" if that is not it."""
    try:
        with path.open("rb") as file:
            first = file.readline(4096)
    except OSError:
        return ""
    is_so = first.startswith(b"#!") and first.rstrip(b"\n").endswith(b"\r")
    return (
        f"{path}: its first line ends with CR LF, and no interpreter has such a name: dos2unix {path}" if is_so else ""
    )


def _too_long(executable: Executable, what: str, size: int) -> str:
    return (
        f"{what} of {size:,} bytes are too long for {executable.path.name}, which reads them from an environment variable: "
        f"at most {LONGEST:,}"
    )


def _failure(ran: ProgramResult) -> str:
    """Everything that is known of a call that failed."""
    err = ran.err.strip()
    parts = [ran.out.removesuffix("\n"), f"{ERRORS}{err}" if err else "", f"[{ran.problem or how(ran.code)}]"]
    return "\n".join(part for part in parts if part)


def how(code: int) -> str:
    """An exit status in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
