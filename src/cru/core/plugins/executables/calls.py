"""A plugin's program as a process: its environment, what it is given, what came of it. Calls of tools and of hooks end here."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import atomic
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Child, Program
from cru.core.base.process.confined import describe_put_aside, run_confined
from cru.core.base.process.errors import StartError, StartProblem
from cru.core.base.process.run import run_program
from cru.core.plugins.errors import HookFailed
from cru.core.plugins.executables.executable import Executable, ToolSchema
from cru.core.plugins.executables.terminal import RelayedErrors, open_terminal, share_interrupt
from cru.core.tools.protocol import ToolResult, ToolTimeout

if TYPE_CHECKING:
    from cru.core.base.process.confined import Confine
    from cru.core.base.process.run import ProcessResult
    from cru.core.plugins.executables.terminal import Lend

LONGEST = 100 << 10
"""Bytes of JSON that an environment variable is trusted with; Linux passes on 128 KiB with the name."""
"""Stands before what a program that failed said there."""
SHIM = '#!/bin/sh\nexec {python} -P -m cru.faces.cli.chibi "$@"\n'
"""The command `chibi` that programs find first on their PATH: it is the cru that started them."""
STDIN = 0
SCRUBBED = ("CHIBI_HOOK", "CHIBI_TOOL", "CHIBI_VERBOSE")


class ProgramContext(Struct, frozen=True):
    """Where programs run.

    cwd: the folder that they run in
    root: the project
    home: of cru
    env: the environment of tools, provider keys removed
    context: the name of the conversation
    warn: tells the person
    verbose: whether programs are told that they may say more
    lend: gives the terminal to a process group; None where nobody sits at one
    confine: runs them in the sandbox; None: they run as they are
    """

    cwd: Path
    root: Path
    home: Path
    env: Mapping[str, str]
    context: str
    warn: Callable[[str], None]
    verbose: bool = False
    lend: Lend | None = None
    confine: Confine | None = None


async def call_tool(
    executable: Executable,
    tool: ToolSchema,
    args: Mapping[str, Any],
    where: ProgramContext,
    emit: Callable[[str], None] | None = None,
) -> ToolResult:
    """Run the tool; what it prints is the result, as it is. Anything but exit status 0 is an error result with all that is known.
    `emit` gets what it prints as it comes. Raises ToolTimeout."""
    arguments = msgspec.json.encode(args)
    if executable.era == "env" and len(arguments) > LONGEST:
        return ToolResult(_too_long(executable, "the arguments", len(arguments)), is_error=True)
    extra = {"CHIBI_TOOL_NAME": tool.name}
    if where.verbose:
        extra["CHIBI_VERBOSE"] = "1"
    if executable.era == "env":
        extra["CHIBI_TOOL_ARGS"] = arguments.decode()
    stdin = None if executable.era == "env" else arguments
    try:
        ended = await _run(executable, where, environment(where, extra), stdin, executable.timeout, emit)
    except StartError as error:
        return ToolResult(f"[{not_started(error)}]", is_error=True)
    if ended.timed_out:
        raise ToolTimeout(
            f"{tool.name} ran longer than {executable.timeout:g} s and was ended, with everything that it started "
            f"(`[plugins.{executable.name}] timeout` gives it more)",
            ended.output,
        )
    return _failure(tool.name, ended) if ended.exit_status else ToolResult(ended.output)


async def call_hook(executable: Executable, hook: str, payload: Mapping[str, object], where: ProgramContext) -> str:
    """Run it for a hook. What it printed, without blanks around it. Raises HookFailed."""
    data = msgspec.json.encode(payload, enc_hook=str)
    extra = {"CHIBI_HOOK": hook}
    if executable.era == "env":
        if len(data) > LONGEST:
            raise HookFailed(_too_long(executable, "the payload", len(data)))
        extra["CHIBI_HOOK_DATA"] = data.decode()
    stdin = b"" if executable.era == "env" else data
    try:
        ended = await _run(executable, where, environment(where, extra), stdin, executable.hook_timeout)
    except StartError as error:
        raise HookFailed(not_started(error)) from error
    if ended.timed_out:
        raise HookFailed(f"it ran longer than {executable.hook_timeout:g} s and was ended")
    if ended.is_cut:
        raise HookFailed("it printed too much")
    if ended.exit_status:
        raise HookFailed(exit_words(ended.exit_status))
    return ended.output.strip()


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
    try:
        return str(_install_shim(where.home))
    except OSError as error:
        where.warn(f"plugins find no command chibi: {error}")
        return ""


def _install_shim(home: Path) -> Path:
    """The folder of that command, one for each interpreter that cru is run with. Raises OSError."""
    source = SHIM.format(python=shlex.quote(sys.executable)).encode()
    command = home / "cache" / "bin" / sha256(source).hexdigest()[:12] / "chibi"
    if not command.exists():
        atomic.replace_file(command, source, new_mode=0o700, make_folders=True)
    return command.parent


async def _run(
    executable: Executable,
    where: ProgramContext,
    env: Mapping[str, str],
    stdin: bytes | None,
    seconds: float,
    emit: Callable[[str], None] | None = None,
) -> ProcessResult:
    """Run the program to its end, at most `seconds` without the time that a person takes. `stdin` is what it reads; None: the terminal, if
    somebody sits there, else what is left of our standard input. Its standard error goes on to ours as it comes. Cancelled, or at its
    limit, all that it started is ended. Raises StartError."""
    errors = RelayedErrors(executable.name)
    lend = where.lend if where.confine is None else None  # what is confined has no terminal
    with open_terminal(lend, errors, clear_line="CHIBI_TOOL_NAME" in env) as terminal:
        source = stdin if stdin is not None else _own_input() if terminal is None else terminal.fd
        is_alone = terminal is None
        program = Program((str(executable.path),), where.cwd, env, source, own_session=is_alone, is_marked=True)
        wait = Child.wait if terminal is None else terminal.wait

        async def run(program: Program) -> ProcessResult:
            return await run_program(program, seconds, TextCapture(emit), errors, wait=wait)

        ended = await (run(program) if where.confine is None else run_in_sandbox(executable.name, where, program, run))
    if terminal is not None and terminal.was_lent:
        await share_interrupt(ended.exit_status)
    if ended.left_behind:
        where.warn(f"{executable.name} left something running; what that prints from now on is not read")
    return ended


async def run_in_sandbox(
    name: str, where: ProgramContext, program: Program, run: Callable[[Program], Awaitable[ProcessResult]]
) -> ProcessResult:
    """What it must not make is told, and what the sandbox kept it from."""
    assert where.confine is not None
    result = await run_confined(where.confine, program, run)
    if text := describe_put_aside(result.put_aside):
        where.warn(f"{name}: {text}")
    if result.why and result.ended.exit_status:
        return replace(result.ended, errors=f"{result.ended.errors.rstrip()}\n[{result.why}]")
    if result.why:
        where.warn(f"{name}: {result.why}")
    return result.ended


def _own_input() -> int | bytes:
    """Where answers come from that nobody types (`yes | cru -p NAME`): standard input, as far as no prompt was read from it. A terminal
    that nobody can lend answers nothing."""
    return b"" if os.isatty(STDIN) else STDIN


def not_started(error: StartError) -> str:
    """Why a program cannot be run."""
    match error.problem:
        case StartProblem.NUL_CHARACTER | StartProblem.UNUSABLE_TEXT:
            return f"cannot be run: {error.reason}"
        case StartProblem.PROGRAM_NOT_FOUND:
            return f"{error.program} is gone"
        case StartProblem.FOLDER_GONE:
            return f"the folder {error.folder} is gone"
        case StartProblem.NOT_A_PROGRAM:
            return f"{error.program} is no program: its first line must be #! and an interpreter"
        case StartProblem.WINDOWS_LINE_END:
            return windows_line_end(error.program)
        case StartProblem.INTERPRETER_NOT_FOUND:
            return f"{error.program}: the interpreter that its first line names is not there"
        case _:
            return f"cannot start {error.program}: {error.reason}"


def windows_line_end(program: str) -> str:
    return f"{program}: its first line ends with CR LF, and no interpreter has such a name: dos2unix {program}"


def exit_words(status: int) -> str:
    """An exit status in words."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def _too_long(executable: Executable, what: str, size: int) -> str:
    return (
        f"{what} of {size:,} bytes are too long for {executable.path.name}, which reads them from an environment variable: "
        f"at most {LONGEST:,}"
    )


def _failure(name: str, ended: ProcessResult) -> ToolResult:
    """Everything that is known of a call that failed."""
    output, errors, end = ended.output.removesuffix("\n"), ended.errors.strip(), exit_words(ended.exit_status)
    if not errors:
        return ToolResult(f"{output}\n[{end}]" if output else f"[{end}]", is_error=True)
    content = "\n".join(filter(None, (output, f"[standard error]\n{errors}", f"[{end}]")))
    return ToolResult(content, is_error=True, brief=f"{output}\n[{end}]" if output else f"{name}: {end}")
