"""A client of `cru mcp serve`: the SDK's own, which starts the server or finds it at an address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from tests.kit import HomeDir
from tests.kit.run import program

from mcp import StdioServerParameters

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
    home: HomeDir, *words: str, person: Person | None = None, era: str = "legacy"
) -> AsyncIterator[Caller]:
    """A server on standard input and output for the block."""
    parameters = StdioServerParameters(
        command=str(program()), args=["mcp", "serve", *words], env=home.env, cwd=str(home.project)
    )
    callback = person.elicit if person is not None else None
    async with Client(stdio_client(parameters), elicitation_callback=callback, mode=era) as client:
        yield Caller(client)
