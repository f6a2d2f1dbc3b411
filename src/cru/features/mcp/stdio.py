"""A server that is a program here: its process, ended as all children are, and its messages, one a line."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cru.core.base.process.child import Child, Program
from cru.core.base.process.pipes import PipeReader, PipeWriter
from cru.core.base.process.run import end
from cru.core.base.values.visible import visible
from cru.features.mcp import RequestFailed, ServerUnavailable
from cru.features.mcp.limits import NotificationGate
from cru.features.mcp.listing import screen_result

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

    from cru.core.base.process.confined import PreparedCommand

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one message."""
MOST_UNREADABLE = 10_000
"""Lines that are no messages."""
STDERR_KEPT = 8 * 1024
LAST_WORDS = 600
GRACE = 2.0
"""Seconds for a server to end by itself once its input is closed."""


class StdioTransport:
    """A ServerTransport. Entering it, as the SDK's client does, starts the program; leaving it ends all that the program started."""

    def __init__(
        self,
        argv: tuple[str, ...],
        cwd: Path,
        env: Mapping[str, str],
        secrets: set[str],
        confine: Callable[[], Awaitable[PreparedCommand | None]] | None = None,
    ) -> None:
        """confine: what runs it in the sandbox; None: it runs as it is"""
        self._argv, self._cwd, self._env = argv, cwd, env
        self._confine = confine
        self._confined: PreparedCommand | None = None
        self.secrets = secrets
        self.problems: list[str] = []
        self.refusal: ServerUnavailable | None = None
        self.ended = asyncio.Event()
        self._closed = asyncio.Event()
        self.unreadable = 0
        """Lines that are no messages."""
        self.gate = NotificationGate()
        self._stderr = bytearray()
        self._child: Child | None = None
        self._is_ended_here = False
        self._tasks: list[asyncio.Task[None]] = []
        self._streams: list[Any] = []

    async def __aenter__(self) -> Any:
        """Raises StartError."""
        import anyio

        self._confined = confined = await self._confine() if self._confine is not None else None
        self._reader, self._writer = PipeReader(), PipeWriter()
        program = Program(self._argv, self._cwd, self._env, self._writer.child_end, is_marked=True)
        try:
            self._child = Child(
                program if confined is None else confined.put_around(program), self._reader.child_end, self._keep_stderr
            )
        except BaseException:
            self._reader.close()
            self._writer.close()
            if confined is not None:
                confined.settle()
            raise
        self._reader.started()
        self._writer.started()
        to_session, read_stream = anyio.create_memory_object_stream[Any](0)
        write_stream, from_session = anyio.create_memory_object_stream[Any](0)
        self._streams = [to_session, read_stream, write_stream, from_session]
        self._tasks = [
            asyncio.create_task(_until_closed(self._read(to_session.send), to_session.aclose)),
            asyncio.create_task(_until_closed(self._write(from_session), to_session.aclose)),
        ]
        return read_stream, write_stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        child = self._child
        assert child is not None
        try:
            self._is_ended_here = not self.ended.is_set()
            self._writer.close()
            try:
                await child.wait(GRACE)
            finally:
                if child.alive():
                    await end(child)
        finally:
            for task in self._tasks:
                task.cancel()
            self._reader.close()
            child.close()
            for stream in self._streams:
                stream.close()
            self.ended.set()
            self._closed.set()
            if self._confined is not None:
                self._confined.settle()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def streams(self) -> StdioTransport:
        return self

    def describe_end(self) -> str:
        """How the program ended, and what it printed last on standard error; "" if it runs, or was ended here."""
        status = None if self._child is None else self._child.exit_status
        if status is None or self._is_ended_here:
            return ""
        how = f"exit code {status}" if status >= 0 else f"signal {-status}"
        last = self.last_words()
        why = "" if self._confined is None else self._confined.explain(last, status)
        return "; ".join(filter(None, (how, last, why)))

    async def wait_end(self) -> str:
        """The same, as soon as that is known."""
        try:
            await asyncio.wait_for(self._closed.wait(), 2 * GRACE)
        except TimeoutError:
            return ""
        return self.describe_end()

    def last_words(self) -> str:
        """The last lines of standard error, as one."""
        lines = bytes(self._stderr).decode("utf-8", "replace").strip().splitlines()[-3:]
        return visible(" | ".join(line.strip() for line in lines))[-LAST_WORDS:]

    def _keep_stderr(self, data: bytes) -> None:
        self._stderr += data
        del self._stderr[: max(0, len(self._stderr) - STDERR_KEPT)]

    async def _read(self, send: Callable[[Any], Awaitable[None]]) -> None:
        """Lines become messages; the program waits as long as nobody takes them."""
        line = bytearray()
        try:
            while data := await self._reader.read():
                *whole, rest = data.split(b"\n")
                for piece in whole:
                    line += piece
                    await self._deliver(bytes(line), send)
                    line.clear()
                line += rest
                if len(line) > LONGEST_LINE:
                    raise RequestFailed(f"a message is longer than {LONGEST_LINE:,} bytes")
        except RequestFailed as failure:
            await send(failure)
        finally:
            self.ended.set()

    async def _deliver(self, line: bytes, send: Callable[[Any], Awaitable[None]]) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCNotification, jsonrpc_message_adapter

        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            mended = self._mend(line)
            if mended is None:
                return
            message = mended
        if isinstance(message, JSONRPCNotification) and not self.gate.admits():
            return
        screen_result(message, self.problems)
        await send(SessionMessage(message))

    def _mend(self, line: bytes) -> JSONRPCMessage | None:
        """Return the message that a line was meant to be; None if it is something else. Raises RequestFailed if there are too many."""
        from cru.features.mcp.mend import read_unreadable

        message = read_unreadable(line)
        self.unreadable += message is None
        if self.unreadable > MOST_UNREADABLE:
            raise RequestFailed(f"it prints more than {MOST_UNREADABLE:,} lines that are no messages")
        return message

    async def _write(self, messages: Any) -> None:
        async for item in messages:
            message: SessionMessage = item
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await self._writer.write(text.encode() + b"\n")


async def _until_closed(work: Awaitable[None], close: Callable[[], Awaitable[None]]) -> None:
    """A side that goes away ends the connection for both: no request waits for ever."""
    import anyio

    try:
        await work
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, BrokenPipeError):
        pass
    finally:
        await close()
