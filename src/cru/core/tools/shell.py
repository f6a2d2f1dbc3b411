"""The tool `bash`, and how tools run programs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from cru.core.base.files.search_path import find_program, own_path
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Program
from cru.core.base.process.run import ProcessResult, run_program
from cru.core.base.values.errors import CruError
from cru.core.tools.arguments import Bash
from cru.core.tools.protocol import (
    BackgroundTasks,
    CommandRequest,
    ToolContext,
    ToolError,
    ToolOptions,
    ToolResult,
    ToolServices,
    ToolTimeout,
    require,
)

if TYPE_CHECKING:
    from cru.core.base.process.confined import PreparedCommand

END_OF_INPUT = "\x04"
"""Typed alone (Ctrl-D) it closes the input of a command."""


async def bash(args: Bash, running: ToolContext, options: ToolOptions) -> ToolResult:
    """Run the command in the project root, or in the background, or type it into one that runs there.

    An exit code other than 0 is an error result that keeps the output. Processes that a command leaves behind keep running until the
    session ends, in the group that the result names; their output is no longer read.
    """
    if args.input_to is not None:
        return await tasks_of(running.services).send_input(args.input_to, args.command, args.typed_before or "")
    # a command that begins with a sign would be taken for an option
    command = f" {args.command}" if args.command[0] in "-+" else args.command
    argv = (_shell(running.env.get("PATH", ""), str(running.root)), "-c", command)
    confined = await _confine(args, argv, running)
    if args.background:
        explain = partial(running.secrets.explain, args.command)
        request = CommandRequest(args.command, argv, args.timeout, args.stdin, args.detached, confined, explain)
        try:
            return await tasks_of(running.services).start_command(request, running)
        except ToolError:
            if confined is not None:
                confined.settle()
            raise
    seconds = options.settings.bash_timeout if args.timeout is None else args.timeout
    program, capture = Program(argv, running.root, running.env, is_bound=True), TextCapture(running.emit)
    try:
        ended = await run_program(confined.put_around(program) if confined else program, seconds, capture)
    except asyncio.CancelledError:
        keep_printed(running, capture)
        raise
    finally:
        put_aside = confined.settle() if confined is not None else []
    if ended.timed_out:
        raise ToolTimeout(
            f"the command ran longer than {seconds:g} s and was ended, with everything that it started; "
            "a larger `timeout` (at most 3600) gives it more time",
            ended.output,
        )
    lines = [_text(ended)]
    if confined is not None:
        lines += _notes_of_sandbox(confined, put_aside, ended)
    elif running.services.commands.take_note is not None:
        lines.append(bracketed(running.services.commands.take_note()))
    if running.secrets.names:
        lines.append(running.secrets.explain(args.command, ended.output if ended.exit_status else None))
    return ToolResult("\n".join(filter(None, lines)), is_error=ended.exit_status != 0)


def _notes_of_sandbox(confined: PreparedCommand, put_aside: Sequence[str], ended: ProcessResult) -> list[str]:
    from cru.core.base.process.confined import tell_put_aside

    why = confined.explain(ended.output, ended.exit_status)
    return [bracketed(tell_put_aside(put_aside)), bracketed(why)]


async def _confine(args: Bash, argv: tuple[str, ...], running: ToolContext) -> PreparedCommand | None:
    """None: it runs as it is. Raises ToolError."""
    confine = running.services.commands.confine
    if confine is None:
        return None
    if args.outside_sandbox:
        return _run_outside(args, argv, running)
    try:
        return await confine(argv, args.detached)
    except (CruError, OSError) as error:
        raise ToolError(f"the command has not run, since there is no sandbox for it: {error}") from error


def _run_outside(args: Bash, argv: tuple[str, ...], running: ToolContext) -> PreparedCommand:
    """It runs as it is; if a rule permits it, and not a person, alone. Raises ToolError."""
    from cru.core.base.process.confined import PreparedCommand

    outside, env = running.services.commands.outside, None
    if outside is not None and running.services.commands.outside_env is not None:
        env = running.secrets.without(
            running.services.commands.outside_env(running.root, outside.is_by_rule(args.command))
        )
    release = outside.hold(args.command) if outside is not None else None
    if outside is not None and release is None:
        raise ToolError(
            "the command has not run: something has begun in the sandbox since a rule permitted this run outside",
            "call it again when that has ended, or so that a person is asked",
        )

    def settle() -> list[str]:
        if release is not None:
            release()
        return []

    if args.detached:  # nobody sees its end
        settle()
    own = running.services.commands.env_of_own_programs(running.root, running.env)
    words = (_shell(own.get("PATH", ""), str(running.root)), *argv[1:])
    return PreparedCommand(words, lambda output, exit_status: "", settle, has_monitor=False, env=env)


def bracketed(text: str) -> str:
    """What cru says behind the output of a command; "" stays that."""
    return f"[{text}]" if text else ""


def tasks_of(services: ToolServices) -> BackgroundTasks:
    """Raises ToolError."""
    return require(services.spawner, "spawner")().commands()


def complete_input(args: dict[str, object], services: ToolServices) -> dict[str, object]:
    """The arguments of a call that types, with what was typed before and waits for more in front of `command`: rules and hooks judge what
    a shell would run, however it is cut in pieces (docs/decisions/background.md)."""
    completed = {name: value for name, value in args.items() if name != "typed_before"}
    try:
        typed_before = tasks_of(services).typed_into(str(args["input_to"])).unfinished
    except ToolError:  # there is no such task, which the call itself will tell
        return completed
    if not typed_before or args["command"] == END_OF_INPUT:
        return completed
    return {**completed, "command": f"{typed_before}{args['command']}", "typed_before": typed_before}


def receiving_command(args: Mapping[str, object], services: ToolServices) -> str:
    """The command into which a call types, "" if there is none: then nothing is typed."""
    try:
        return tasks_of(services).typed_into(str(args["input_to"])).command
    except ToolError:
        return ""


def _text(ended: ProcessResult) -> str:
    lines = [ended.output.removesuffix("\n") or "(no output)"]
    if ended.left_behind:
        lines.append(
            "[processes keep running in the background until the session ends, their output is no longer read; "
            f"`kill -- -{ended.left_behind}` ends them]"
        )
    if ended.exit_status < 0:
        lines.append(f"[ended by signal {-ended.exit_status}]")
    elif ended.exit_status:
        lines.append(f"[exit code {ended.exit_status}]")
    return "\n".join(lines)


@lru_cache(maxsize=4)
def _shell(path: str, root: str) -> str:
    return (
        find_program("bash", own_path(path, root)) or find_program("bash", "/bin:/usr/bin:/usr/local/bin") or "/bin/sh"
    )


def keep_printed(running: ToolContext, capture: TextCapture) -> None:
    """What the program of a cancelled call has printed is kept for the call's result."""
    if output := capture.close():
        running.services.interrupted[running.call_id] = output
