"""`cru.shell`: programs, started without a shell in between. Four names are refused (rm, sudo, chmod, chown)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.core.api.arguments import function, number, options, table, text, texts, tostring
from cru.core.api.host import NamespaceError, call, host
from cru.core.base.files.search_path import find_program
from cru.core.base.process.capture import TextCapture
from cru.core.base.process.child import Child, Program
from cru.core.base.process.errors import StartError
from cru.core.base.process.pipes import PipeReader
from cru.core.base.process.run import run_program

if TYPE_CHECKING:
    from cru.core.base.process.capture import Capture
    from cru.core.base.process.run import ProcessResult, Wait

BLOCKED = ("rm", "sudo", "chmod", "chown")
_OPTIONS = ("cwd", "env", "stdin", "timeout")
LONGEST = 1 << 20
"""Bytes of a line; of a longer one, each piece of about that size counts as a line."""


class _ProgramCall(Struct, frozen=True):
    """A program and the seconds that it may take, None: as many as it likes."""

    program: Program
    seconds: float | None


async def exec_(cmd: str, args: list[str] | None = None, opts: dict[str, object] | None = None) -> dict[str, object]:
    """shell.exec(cmd, args?, {cwd, env, stdin, timeout}?) -> {success, exit_code, stdout, stderr, truncated}. Another exit code than 0
    is no error; -1 means that a signal ended it. Of more than 10 Mi characters of output the first and the last half are kept, with
    `truncated` = true. cwd defaults to the project root, env is added to the environment of cru (without its own keys), there is no
    time limit unless `timeout` (seconds) is given. Raises NamespaceError if it cannot be started, is refused, or ran too long.

    Example: cru.shell.exec("echo", {"hi"}).stdout --> "hi\\n"
    """
    return await _exec(_read("cru.shell.exec", cmd, args, opts, _OPTIONS))


async def spawn(cmd: str, args: list[str] | None = None, opts: dict[str, object] | None = None) -> dict[str, object]:
    """shell.spawn(cmd, args?, {cwd, env, stdin, timeout, on_line}?) -> as exec. `on_line(stream, line)` gets each line as it comes,
    stream is "stdout" or "stderr"; an error in it is raised again once the child has ended.

    Example: cru.shell.spawn("echo", {"hi"}, {on_line=function(stream, line) end}).success --> true
    """
    command = _read("cru.shell.spawn", cmd, args, opts, (*_OPTIONS, "on_line"))
    on_line = (opts or {}).get("on_line")
    if on_line is None:
        return await _exec(command)
    return await _exec_with_lines(command, _LineCallback(function("cru.shell.spawn", "on_line", on_line)))


def which(name: str) -> str | None:
    """shell.which(name) -> the path of that program, or nil.

    Example: cru.shell.which("no-such-program") --> nil
    """
    text("cru.shell.which", "name", name)
    if "/" in name:
        place = os.path.join(host().parts.place.root, name)
        return place if os.access(place, os.X_OK) and os.path.isfile(place) else None
    return find_program(name, host().session.parts.place.env.get("PATH", "")) if name and "\0" not in name else None


def _read(where: str, cmd: str, args: object, opts: object, known: tuple[str, ...]) -> _ProgramCall:
    text(where, "cmd", cmd)
    if cmd.rpartition("/")[2] in BLOCKED:
        raise NamespaceError(f"Command '{cmd}' is not allowed by shell policy")
    chosen = options(where, opts, known)
    parts = host().parts
    cwd, stdin, timeout = chosen.get("cwd"), chosen.get("stdin"), chosen.get("timeout")
    added = {str(k): tostring(v) for k, v in table(where, "env", chosen.get("env")).items()}
    program = Program(
        (cmd, *texts(where, "args", args)),
        Path(parts.place.root, text(where, "cwd", cwd)) if cwd is not None else parts.place.root,
        {**parts.place.env, **added},
        text(where, "stdin", stdin).encode("utf-8", "surrogateescape") if stdin is not None else b"",
        is_marked=True,
        linger=None,
    )
    return _ProgramCall(program, number(where, "timeout", timeout, 0) if timeout is not None else None)


def _capture() -> TextCapture:
    return TextCapture(errors="surrogateescape")


async def _exec(command: _ProgramCall) -> dict[str, object]:
    ended = await _run(command, _capture(), _capture())
    return _result(ended, ended.output, ended.errors, ended.is_cut)


async def _exec_with_lines(command: _ProgramCall, callback: _LineCallback) -> dict[str, object]:
    """A program whose lines nobody takes waits in its next write."""
    streams = [(name, PipeReader(), _capture()) for name in ("stdout", "stderr")]
    (_, out, kept_out), (_, err, kept_err) = streams

    async def wait(child: Child, seconds: float | None) -> bool:
        out.started()
        err.started()
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(callback.read(*stream) for stream in streams))
                return await child.wait()
        except TimeoutError:
            return True

    try:
        ended = await _run(command, out.child_end, err.child_end, wait)
    finally:
        out.close()
        err.close()
    if callback.error is not None:
        raise callback.error
    return _result(ended, kept_out.close(), kept_err.close(), kept_out.is_cut or kept_err.is_cut)


async def _run(
    command: _ProgramCall, output: Capture | int, errors: Capture | int, wait: Wait | None = None
) -> ProcessResult:
    """Raises NamespaceError if it cannot be started, or ran too long."""
    name = command.program.argv[0]
    try:
        ended = await run_program(command.program, command.seconds, output, errors, wait=wait or Child.wait)
    except StartError as error:
        raise NamespaceError(f"cannot start {name}: {error.reason}{_shell_hint(name)}") from error
    if ended.timed_out:
        raise NamespaceError(f"{name} ran longer than {command.seconds:g} s and was ended")
    return ended


def _shell_hint(name: str) -> str:
    """How a command line is run, if the name of a program looks like one."""
    if not any(character in name for character in " |;&<>$`"):
        return ""
    return '; it takes one program and its arguments, and a shell runs a command line: ("sh", {"-c", "…"})'


class _LineCallback:
    """Hands lines to a function of an extension, one at a time, until it fails."""

    def __init__(self, on_line: Callable[..., Any]) -> None:
        self._on_line = on_line
        self.error: Exception | None = None

    async def read(self, name: str, pipe: PipeReader, capture: TextCapture) -> None:
        """All lines of a stream."""
        rest = b""
        while piece := await pipe.read():
            capture.feed(piece)
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > LONGEST:
                lines, rest = [*lines, rest], b""
            for line in lines:
                await self._call(name, line)
        if rest:
            await self._call(name, rest)

    async def _call(self, name: str, line: bytes) -> None:
        if self.error is not None:
            return
        try:
            await call(self._on_line, name, line.decode("utf-8", "surrogateescape").removesuffix("\r"))
        except Exception as error:  # noqa: BLE001  raised again once the child has ended
            self.error = self.error or error


def _result(ended: ProcessResult, output: str, errors: str, is_cut: bool) -> dict[str, object]:
    result: dict[str, object] = {
        "success": ended.exit_status == 0,
        "exit_code": max(ended.exit_status, -1),
        "stdout": output,
        "stderr": errors,
    }
    if is_cut:
        result["truncated"] = True
    return result
