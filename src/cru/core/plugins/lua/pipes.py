"""`os.execute` and `io.popen` of Lua: programs that are waited for as anything else is, and ended with all that they started.

What a file of io.popen makes of the bytes is in pipes.lua. Without a session (a bare machine) a program gets our own environment.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from cru.core.api.callbacks import run_in_background
from cru.core.api.host import NamespaceError, NoSession, Object, Values, host
from cru.core.base.process.child import Child, Program
from cru.core.base.process.errors import StartError
from cru.core.base.process.pipes import PipeReader, PipeWriter
from cru.core.base.process.run import end, run_program

STDERR = 2
"""Where a program prints to: standard output belongs to cru."""
GRACE = 1.0
T = TypeVar("T")


async def execute(command: str) -> Values:
    """(true or nil, "exit" or "signal", number), as in Lua 5.4. Raises NamespaceError if the shell cannot be started."""
    try:
        ended = await run_program(_shell(command), None, STDERR, STDERR)
    except StartError as error:
        raise NamespaceError(_not_started(error)) from error
    return _outcome(ended.exit_status)


async def popen(command: str, mode: str) -> PipedCommand | Values:
    """What the command prints (mode "r"), or what it reads ("w"); (nil, message, number) if the shell cannot be started."""
    pipe = PipeReader() if mode == "r" else PipeWriter()
    try:
        if isinstance(pipe, PipeReader):
            child = Child(_shell(command), pipe.child_end, STDERR)
        else:
            child = Child(_shell(command, stdin=pipe.child_end), STDERR, STDERR)
    except StartError as error:
        pipe.close()
        return Values((None, _not_started(error), error.number or errno.EINVAL))
    pipe.started()
    keeper = _keep(child)
    await asyncio.sleep(0)  # it begins: a task that is cancelled before would end nothing
    return WriterCommand(child, pipe, keeper) if isinstance(pipe, PipeReader) else ReaderCommand(child, pipe, keeper)


class PipedCommand(Object):
    """A running command. What is ended while it waits for one (a limit, Ctrl-C) ends the command."""

    def __init__(self, child: Child, own_end: PipeReader | PipeWriter, keeper: asyncio.Task[None]) -> None:
        self._child = child
        self._own_end = own_end
        self._keeper = keeper

    def __del__(self) -> None:
        self._own_end.close()

    async def close(self) -> Values:
        """Wait for its end: as `execute`."""
        self._own_end.close()
        await self._or_end(asyncio.wait([self._keeper]))
        return _outcome(self._child.exit_status or 0)

    async def _or_end(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except asyncio.CancelledError:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
            raise


class WriterCommand(PipedCommand):
    """A command whose output is read."""

    METHODS = ("read", "close")

    def __init__(self, child: Child, output: PipeReader, keeper: asyncio.Task[None]) -> None:
        super().__init__(child, output, keeper)
        self._output = output

    def __del__(self) -> None:
        """Nobody will read what it prints."""
        super().__del__()
        if not self._keeper.get_loop().is_closed():
            self._keeper.cancel()

    async def read(self) -> bytes | None:
        """The next piece, None at the end."""
        return await self._or_end(self._output.read()) or None


class ReaderCommand(PipedCommand):
    """A command that gets its input; it goes on to the end of that."""

    METHODS = ("write", "close")

    def __init__(self, child: Child, input: PipeWriter, keeper: asyncio.Task[None]) -> None:
        super().__init__(child, input, keeper)
        self._input = input

    async def write(self, text: str) -> bool | Values:
        try:
            await self._or_end(self._input.write(text.encode("utf-8", "surrogateescape")))
        except BrokenPipeError:
            return Values((None, os.strerror(errno.EPIPE), errno.EPIPE))
        return True


def _shell(command: str, stdin: int | bytes = b"") -> Program:
    try:
        env: Mapping[str, str] = host().session.parts.place.env
    except NoSession:
        env = os.environ
    return Program(("/bin/sh", "-c", command), Path.cwd(), env, stdin, is_marked=True)


def _not_started(error: StartError) -> str:
    return f"cannot start {error.program}: {error.reason}"


def _keep(child: Child) -> asyncio.Task[None]:
    """Ends the command with its plugin, or with the session."""

    async def keep() -> None:
        try:
            await child.wait()
        finally:
            try:
                if not child.ended:
                    await end(child, grace=GRACE)
            finally:
                child.close()

    try:
        return run_in_background(host(), keep)
    except NoSession:
        return asyncio.get_running_loop().create_task(keep())


def _outcome(exit_status: int) -> Values:
    how = "signal" if exit_status < 0 else "exit"
    return Values((True if exit_status == 0 else None, how, abs(exit_status)))
