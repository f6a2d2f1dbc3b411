"""Tools that act on the conversation: send_message, call_user, recurse."""

from __future__ import annotations

from cru.tools.arguments import CallUser, Recurse, SendMessage
from cru.tools.protocol import ToolContext, ToolResult, require
from cru.tools.settings import Options


async def send_message(args: SendMessage, running: ToolContext, options: Options) -> ToolResult:
    send = require(running.services.send, "send")
    return ToolResult(await send(args.to, args.content, args.from_))


async def call_user(args: CallUser, running: ToolContext, options: Options) -> ToolResult:
    return ToolResult(args.message, ends_turn=True)


async def recurse(args: Recurse, running: ToolContext, options: Options) -> ToolResult:
    """The engine starts the next round when it sees a call of this name, whoever provides the tool."""
    return ToolResult("recursion requested")
