"""A client of `cru mcp serve`: the SDK's own. One test has it start the server; for the others the kit does, so that it is forked."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.server.stdio import stdio_server
from tests.kit import HomeDir
from tests.kit.forked import run_process
from tests.kit.run import program
from tests.kit.waiting import PATIENCE

ERAS = ("legacy", "2026-07-28")
"""The two forms of the protocol: with a handshake, and without."""


class Person:
    """Who sits at the client, and answers each question with the next of `answers`: a decision, decline or cancel.

    questions: what was asked
    """

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.questions: list[types.ElicitRequestFormParams] = []

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        self.questions.append(params)
        answer = self._answers.pop(0)
        if answer == "decline" or answer == "cancel":
            return types.ElicitResult.model_validate({"action": answer})
        decision, _, reason = answer.partition(" ")
        return types.ElicitResult(action="accept", content={"decision": decision, "reason": reason})


class Caller:
    """Calls tools; the text of their results, and whether they are errors."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, name: str, **args: Any) -> str:
        result = await self.client.call_tool(name, args)
        [content] = result.content
        assert isinstance(content, types.TextContent)
        return f"ERROR {content.text}" if result.is_error else content.text

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]


@asynccontextmanager
async def served(
    home: HomeDir,
    *words: str,
    person: Person | None = None,
    era: str = "legacy",
    started: bool = False,
    context: str = "mcp",
) -> AsyncIterator[Caller]:
    """A server on standard input and output for the block; `started`: by the SDK, as other agents do."""
    callback = person.elicit if person is not None else None
    transport = _started(home, *words) if started else _forked(home, context, *words)
    async with Client(transport, elicitation_callback=callback, mode=era) as client:
        yield Caller(client)


def _started(home: HomeDir, *words: str) -> Any:
    parameters = StdioServerParameters(
        command=str(program()), args=["mcp", "serve", *words], env=home.env, cwd=str(home.project)
    )
    return stdio_client(parameters)


@asynccontextmanager
async def _forked(home: HomeDir, context: str, *words: str) -> AsyncIterator[Any]:
    """The streams of a server; its input is closed after the block, and it has to end then."""
    with run_process(
        [str(program()), "-C", context, "mcp", "serve", *words],
        cwd=home.project, env=home.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        assert server.stdin is not None and server.stdout is not None
        with io.TextIOWrapper(server.stdout, "utf-8") as output, io.TextIOWrapper(server.stdin, "utf-8") as input:
            async with stdio_server(anyio.wrap_file(output), anyio.wrap_file(input)) as streams:
                try:
                    yield streams
                finally:
                    input.close()
                    await _end(server)


async def _end(server: subprocess.Popen[bytes]) -> None:
    with anyio.CancelScope(shield=True):
        try:
            await anyio.to_thread.run_sync(server.wait, PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            raise


def use(
    home: HomeDir,
    work: Callable[[Caller], Awaitable[None]],
    *words: str,
    person: Person | None = None,
    era: str = "legacy",
    started: bool = False,
    context: str = "mcp",
) -> None:
    async def run() -> None:
        async with served(home, *words, person=person, era=era, started=started, context=context) as call:
            await work(call)

    asyncio.run(run())
