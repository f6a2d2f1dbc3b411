"""`cru.shell`: programs, started without a shell in between. Four names are refused (rm, sudo, chmod, chown)."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.namespace.arguments import function, number, options, table, text, texts, tostring
from cru.namespace.host import NamespaceError, call, host

if TYPE_CHECKING:
    from asyncio import StreamReader
    from asyncio.subprocess import Process

    from cru.process.capture import Capture

BLOCKED = ("rm", "sudo", "chmod", "chown")
_OPTIONS = ("cwd", "env", "stdin", "timeout")
PIECE, LONGEST = 64 << 10, 1 << 20
"""Bytes that are read at a time, and of a line; of a longer one, each piece of about that size counts as a line."""


class _ProgramCall(Struct, frozen=True):
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdin: bytes | None = None
    timeout: float | None = None


async def exec_(cmd: str, args: list[str] | None = None, opts: dict[str, Any] | None = None) -> dict[str, Any]:
    """shell.exec(cmd, args?, {cwd, env, stdin, timeout}?) -> {success, exit_code, stdout, stderr, truncated}. Another exit code than 0
    is no error; -1 means that a signal ended it. Of more than 10 Mi characters of output the first and the last half are kept, with
    `truncated` = true. cwd defaults to the project root, env is added to the environment of tools, there is no
    time limit unless `timeout` (seconds) is given. Raises NamespaceError if it cannot be started, is refused, or ran too long.

    Example: cru.shell.exec("echo", {"hi"}).stdout --> "hi\\n"
    """
    command = _read("cru.shell.exec", cmd, args, opts, _OPTIONS)
    out, err = _capture(), _capture()
    code = await _run(command, _keep(out), _keep(err))
    return _result(code, out, err)


async def spawn(cmd: str, args: list[str] | None = None, opts: dict[str, Any] | None = None) -> dict[str, Any]:
    """shell.spawn(cmd, args?, {cwd, env, stdin, timeout, on_line}?) -> as exec. `on_line(stream, line)` gets each line as it comes,
    stream is "stdout" or "stderr"; an error in it is raised again once the child has ended.

    Example: cru.shell.spawn("echo", {"hi"}, {on_line=function(stream, line) end}).success --> true
    """
    command = _read("cru.shell.spawn", cmd, args, opts, (*_OPTIONS, "on_line"))
    given = (opts or {}).get("on_line")
    lines = None if given is None else _LineCallback(function("cru.shell.spawn", "on_line", given))
    out, err = _capture(), _capture()
    if lines is None:
        code = await _run(command, _keep(out), _keep(err))
    else:
        code = await _run(command, lines.of("stdout", out), lines.of("stderr", err))
        if lines.error is not None:
            raise lines.error
    return _result(code, out, err)


def which(name: str) -> str | None:
    """shell.which(name) -> the path of that program, or nil.

    Example: cru.shell.which("no-such-program") --> nil
    """
    from cru.tools.shell import find_program

    text("cru.shell.which", "name", name)
    if "/" in name:
        place = os.path.join(host().session.parts.root, name)
        return place if os.access(place, os.X_OK) and os.path.isfile(place) else None
    return find_program(name, host().session.parts.env.get("PATH", "")) if name and "\0" not in name else None


def _read(where: str, cmd: str, args: Any, opts: Any, known: tuple[str, ...]) -> _ProgramCall:
    text(where, "cmd", cmd)
    if cmd.rpartition("/")[2] in BLOCKED:
        raise NamespaceError(f"Command '{cmd}' is not allowed by shell policy")
    given = options(where, opts, known)
    parts = host().session.parts
    cwd, stdin, timeout = given.get("cwd"), given.get("stdin"), given.get("timeout")
    added = {str(k): tostring(v) for k, v in table(where, "env", given.get("env")).items()}
    return _ProgramCall(
        (cmd, *texts(where, "args", args)),
        os.path.join(parts.root, text(where, "cwd", cwd)) if cwd is not None else str(parts.root),
        {**parts.env, **added},
        text(where, "stdin", stdin).encode("utf-8", "surrogateescape") if stdin is not None else None,
        number(where, "timeout", timeout, 0) if timeout is not None else None,
    )


Reader = Callable[["StreamReader"], Awaitable[None]]


async def _run(command: _ProgramCall, stdout: Reader, stderr: Reader) -> int:
    """Run it to its end; whatever ends this earlier ends the child's whole group."""
    import asyncio

    from cru.namespace.programs import end, start

    pipe = asyncio.subprocess.PIPE
    stdin = asyncio.subprocess.DEVNULL if command.stdin is None else pipe
    process = await start(command.argv, command.cwd, command.env, stdin=stdin, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(command.timeout):
            assert process.stdout is not None
            assert process.stderr is not None
            await asyncio.gather(_feed(process, command.stdin), stdout(process.stdout), stderr(process.stderr))
            return await process.wait()
    except TimeoutError as error:
        raise NamespaceError(f"{command.argv[0]} ran longer than {command.timeout:g} s and was ended") from error
    finally:
        await end(process)


async def _feed(process: Process, data: bytes | None) -> None:
    if data is None or process.stdin is None:
        return
    try:
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()
        await process.stdin.wait_closed()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it did not want to read everything


def _capture() -> Capture:
    from cru.process.capture import Capture

    return Capture(errors="surrogateescape")


def _keep(into: Capture) -> Reader:
    async def read(stream: StreamReader) -> None:
        while piece := await stream.read(PIECE):
            into.feed(piece)

    return read


class _LineCallback:
    """Hands lines to a function of an extension, one at a time, until it fails."""

    def __init__(self, on_line: Callable[..., Any]) -> None:
        self._on_line = on_line
        self.error: Exception | None = None

    def of(self, name: str, into: Capture) -> Reader:
        async def read(stream: StreamReader) -> None:
            rest = b""
            while piece := await stream.read(PIECE):
                into.feed(piece)
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > LONGEST:
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    await self._tell(name, line)
            if rest:
                await self._tell(name, rest)

        return read

    async def _tell(self, name: str, line: bytes) -> None:
        if self.error is not None:
            return
        try:
            await call(self._on_line, name, line.decode("utf-8", "surrogateescape").removesuffix("\r"))
        except Exception as error:  # noqa: BLE001  raised again once the child has ended
            self.error = self.error or error


def _result(code: int, out: Capture, err: Capture) -> dict[str, Any]:
    told: dict[str, Any] = {
        "success": code == 0,
        "exit_code": max(code, -1),
        "stdout": out.close(),
        "stderr": err.close(),
    }
    if out.left_out or err.left_out:
        told["truncated"] = True
    return told
