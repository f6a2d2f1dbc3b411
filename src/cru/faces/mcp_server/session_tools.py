"""Tools for the conversations of this home: which there are, and a prompt to one of them. They go the road of all calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from cru.core.base.values.messages import ToolSpec
from cru.core.conversations.home import Home
from cru.core.tools.arguments import check_arguments
from cru.core.tools.protocol import Access, Kind, Tool, ToolContext, ToolError, ToolResult, ToolServices
from cru.core.turn.outcomes import describe_end
from cru.core.turn.turn import LegResult

Some = Annotated[str, Meta(min_length=1)]


class ListContexts(Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class SendPrompt(Struct, frozen=True, forbid_unknown_fields=True):
    context: Some
    prompt: Some


LIST_CONTEXTS = ToolSpec(
    "list_contexts",
    "The conversations (contexts) that cru keeps on this machine, as JSON: [{name, busy}]. read_context reads one.",
    {"type": "object", "properties": {}, "additionalProperties": False},
)
SEND_PROMPT = ToolSpec(
    "send_prompt",
    "Send a prompt to one of cru's conversations (made if there is none of that name), let cru's agent work on it in this project until "
    "it is done, and get its answer. The agent has tools and permissions of its own.",
    {
        "type": "object",
        "properties": {
            "context": {"type": "string", "minLength": 1, "description": "the name of the conversation"},
            "prompt": {"type": "string", "minLength": 1},
        },
        "required": ["context", "prompt"],
        "additionalProperties": False,
    },
)
RunTurn = Callable[[str, str], Awaitable[LegResult]]
"""(context, prompt) -> how the turn ended."""


class _SessionTool:
    """What both have in common."""

    parallel = True
    source = "cru mcp serve"
    spec: ToolSpec
    kind: Kind
    arguments: type[Struct]

    def check(self, arguments: str | Mapping[str, object]) -> dict[str, object]:
        return check_arguments(self.arguments, arguments)

    def subject(self, args: Mapping[str, object]) -> str:
        return str(args.get("context", ""))

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        return []


class ListContextsTool(_SessionTool):
    spec, kind, arguments = LIST_CONTEXTS, "query", ListContexts

    def __init__(self, home: Home) -> None:
        self._home = home

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        rows = [{"name": name, "busy": self._home.status(name) == "active"} for name in self._home.names()]
        return ToolResult(msgspec.json.encode(rows).decode())


class SendPromptTool(_SessionTool):
    """One prompt at a time: the others wait for their turn."""

    spec, kind, arguments = SEND_PROMPT, "message", SendPrompt

    def __init__(self, run_turn: RunTurn) -> None:
        self._run_turn = run_turn
        self._alone = asyncio.Lock()

    def preview(self, args: Mapping[str, object]) -> str:
        """What a question shows beside the name of the context."""
        return str(args.get("prompt", ""))[:2000]

    def why_ask(self, args: Mapping[str, object], services: ToolServices | None = None) -> str:
        """Its answer tells what was said there."""
        foreign = services.rules.why_foreign if services is not None else None
        return foreign(self.subject(args)) if foreign is not None else ""

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        async with self._alone:
            result = await self._run_turn(str(args["context"]), str(args["prompt"]))
        if result.is_done:
            return ToolResult(result.response)
        raise ToolError(_failure(result), result.response)


def _failure(result: LegResult) -> str:
    why = f"error: {result.error}" if result.error else describe_end(result)
    return f"the turn is not done: {why}"


class SessionTools:
    """The source of these tools."""

    def __init__(self, home: Home, run_turn: RunTurn) -> None:
        self._tools: list[Any] = [ListContextsTool(home), SendPromptTool(run_turn)]

    def tools(self) -> Iterable[Tool]:
        return self._tools
