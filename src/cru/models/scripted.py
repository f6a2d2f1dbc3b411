"""A model that plays a file: for tests, and for people who test their hooks without a provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec

from cru.models import script
from cru.models.encoding import FragmentCache, LastValue
from cru.models.exchange import Sleep
from cru.models.failures import ErrorObject, RequestFacts, error_for
from cru.models.protocol import BrokenReply, ModelUnavailable
from cru.values.messages import CallPart, Delta, End, Message, Request, Text, Thought

_encode = msgspec.json.encode
_TURN = b',"turn":'


class ScriptedModel:
    """See protocol.Model. Which reply is played: the number of assistant messages in the request, plus the tries of this process
    that left no text behind; so a resumed conversation goes on where it was. `by: order` counts requests instead."""

    provider = "scripted"
    tools_by_default = True

    def __init__(self, path: Path, *, sleep: Sleep = asyncio.sleep) -> None:
        self.name = str(path)
        self._script = script.load_script(path)
        self._sleep = sleep
        self._facts = RequestFacts("scripted", self.name)
        self._messages, self._head = FragmentCache(_encode_message), LastValue()
        self._failed = 0
        self._order = 0

    def encode(self, request: Request) -> bytes:
        """The request as JSON: all but the messages, the messages, and at the end the number of assistant messages."""
        key = (request.model, request.system, request.tools, request.parameters)
        head = self._head.get(key, lambda: _encode_head(request))
        turn = sum(1 for message in request.messages if message.role == "assistant")
        fragments = b",".join(self._messages.encode_all(request.messages))
        return b"".join((head, b',"messages":[', fragments, b"]", _TURN, str(turn).encode(), b"}"))

    async def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        """Plays the next reply. Raises what its items say, BrokenReply if the script has no more replies."""
        number = self._number(body)
        reply = self._reply(number)
        spoke = whole = False
        try:
            calls = 0
            for item in reply.items:
                if isinstance(item, Text | Thought):
                    spoke = spoke or isinstance(item, Text)
                    yield item
                elif isinstance(item, CallPart):
                    yield CallPart(calls, f"call_{number}_{calls}", item.name, item.arguments)
                    calls += 1
                else:
                    await self._do(item, spoke)
            whole = True
            yield End(reply.end.reason or ("tool_calls" if calls else "stop"), reply.end.usage)
        finally:
            if not whole and not spoke:
                self._failed += 1

    async def close(self) -> None:
        """Nothing is open."""

    def _number(self, body: bytes) -> int:
        if self._script.by_order:
            self._order += 1
            return self._order - 1
        return int(body.rpartition(_TURN)[2].rstrip(b"}")) + self._failed

    def _reply(self, number: int) -> script.ScriptedReply:
        replies = self._script.replies
        if not replies or (number >= len(replies) and not self._script.loop):
            error = BrokenReply(
                f"{self.name}: the script has {len(replies)} replies and reply {number + 1} was asked for",
                "add a reply, or begin the script with `loop: yes`",
            )
            error.retryable = False
            raise error
        return replies[number % len(replies)]

    async def _do(self, item: script.ScriptedDelay | script.ScriptedFailure | script.ScriptedDrop, spoke: bool) -> None:
        match item:
            case script.ScriptedDelay(seconds):
                await self._sleep(seconds)
            case script.ScriptedFailure(status, text):
                raise error_for(self._facts, status, ErrorObject(text))
            case script.ScriptedDrop():
                kind = BrokenReply if spoke else ModelUnavailable
                raise kind(f"{self.name}: the connection was lost, as the script says")


def _encode_head(request: Request) -> bytes:
    head: dict[str, object] = {"model": request.model, "parameters": request.parameters, "system": request.system}
    return _encode({**head, "tools": request.tools})[:-1]


def _encode_message(message: Message) -> bytes:
    return _encode(message)
