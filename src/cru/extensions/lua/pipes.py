"""`os.execute` and `io.popen` of Lua: programs that are waited for as anything else is, and ended with all that they started.

What a file of io.popen makes of the bytes is in pipes.lua. Without a session (a bare machine) a program gets our own environment.
"""

from __future__ import annotations

import asyncio
import errno
import os
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from cru.namespace.callbacks import run_in_background
from cru.namespace.host import NamespaceError, NoSession, Object, Values, host
from cru.namespace.programs import PIECE, end, start

ERRORS = 2
"""Where a program prints to: standard output belongs to cru."""
GRACE = 1.0
T = TypeVar("T")
_kept: set[asyncio.Task[None]] = set()


async def execute(command: str) -> Values:
    """(true or nil, "exit" or "signal", number), as in Lua 5.4. Raises NamespaceError if the shell cannot be started."""
    process = await _shell(command, stdin=DEVNULL, stdout=ERRORS)
    try:
        await process.wait()
    finally:
        await end(process)
    return _outcome(process)


async def popen(command: str, mode: str) -> Program | Values:
    """What the command prints (mode "r"), or what it reads ("w"); (nil, message, number) if the shell cannot be started."""
    try:
        process = await _shell(command, stdin=PIPE if mode == "w" else DEVNULL, stdout=PIPE if mode == "r" else ERRORS)
    except NamespaceError as error:
        cause = error.__cause__
        return Values((None, error.message, cause.errno if isinstance(cause, OSError) else errno.EINVAL))
    return Program(process, _keeper(process))


class Program(Object):
    """A running command. What is ended while it waits for one (a limit, Ctrl-C) ends the command."""

    METHODS = ("read", "write", "close")

    def __init__(self, process: Process, keeper: asyncio.Task[None]) -> None:
        self._process = process
        self._keeper = keeper

    def __del__(self) -> None:
        """Nobody will read what it prints; one that reads goes on to the end of its input."""
        if self._keeper.done() or self._keeper.get_loop().is_closed():
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        else:
            self._keeper.cancel()

    async def read(self) -> bytes | None:
        """The next piece, None at the end."""
        assert self._process.stdout is not None
        return await self._awaited(self._process.stdout.read(PIECE)) or None

    async def write(self, text: str) -> bool | Values:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(text.encode("utf-8", "surrogateescape"))
            await self._awaited(self._process.stdin.drain())
        except (BrokenPipeError, ConnectionResetError):
            return Values((None, os.strerror(errno.EPIPE), errno.EPIPE))
        return True

    async def close(self) -> Values:
        """Wait for its end: as `execute`."""
        for number in (0, 1):
            pipe = getattr(self._process, "_transport").get_pipe_transport(number)  # noqa: B009  as in programs.py
            if pipe is not None:
                pipe.close()
        await self._awaited(self._process.wait())
        return _outcome(self._process)

    async def _awaited(self, waiting: Coroutine[Any, Any, T]) -> T:
        try:
            return await waiting
        except asyncio.CancelledError:
            await end(self._process)
            raise


async def _shell(command: str, *, stdin: int, stdout: int) -> Process:
    try:
        env: Mapping[str, str] = host().session.parts.env
    except NoSession:
        env = os.environ
    return await start(("/bin/sh", "-c", command), os.getcwd(), env, stdin=stdin, stdout=stdout, stderr=None)


def _keeper(process: Process) -> asyncio.Task[None]:
    """Ends the command with its plugin, or with the session."""

    async def keep() -> None:
        try:
            await process.wait()
        finally:
            await end(process, GRACE)

    try:
        return run_in_background(host(), keep)
    except NoSession:
        task = asyncio.get_running_loop().create_task(keep())
        _kept.add(task)
        task.add_done_callback(_kept.discard)
        return task


def _outcome(process: Process) -> Values:
    code = process.returncode or 0
    return Values((True if code == 0 else None, "signal" if code < 0 else "exit", abs(code)))
