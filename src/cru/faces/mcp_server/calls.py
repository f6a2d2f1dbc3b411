"""Calls of clients, and the questions within them, in both forms of the protocol.

Up to 2025-11-25 the server asks while the call runs. From 2026-07-28 on it cannot: a call that needs an answer returns the question, and
the client makes the call again with the answer. Meanwhile the call stands still here, under a name that nobody can guess.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import msgspec
from anyio import CancelScope
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cru.faces.mcp_server.asker import CHANNEL, ElicitedAnswer
from cru.faces.mcp_server.served_session import CallResult, ServedSession

QUESTION = "permission"
ANSWER_SECONDS = 600.0
"""For so long a call waits for the answer to its question."""
MOST_WAITING = 1000


class AskingChannel:
    """The earlier form: a request to the client."""

    def __init__(self, context: ServerRequestContext[Any, Any]) -> None:
        self._context = context
        self.is_over = False

    async def elicit(self, message: str, schema: dict[str, Any]) -> ElicitedAnswer | None:
        session = self._context.session
        if self.is_over or not _has_elicitation(self._context) or not session.can_send_request:
            return None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                result = await session.elicit_form(message, schema, related_request_id=self._context.request_id)
        except (TimeoutError, MCPError):
            return None  # nobody has answered
        return _elicitation(result)


class SuspendedCall:
    """The later form: a call that stands still at its questions. It is its own channel.

    asked: how many questions it has asked; an answer is for one of them and no other
    """

    def __init__(self, served: ServedSession, params: CallToolRequestParams, can_ask: bool) -> None:
        self.params = params
        self.asked = 0
        self._can_ask = can_ask
        self._question: asyncio.Future[ElicitRequest] = asyncio.Future()
        self._answer: asyncio.Future[ElicitedAnswer | None] = asyncio.Future()
        token = CHANNEL.set(self)
        self._work = asyncio.ensure_future(_call(served, params))
        CHANNEL.reset(token)

    async def elicit(self, message: str, schema: dict[str, Any]) -> ElicitedAnswer | None:
        if not self._can_ask or self.is_over:
            return None
        self.asked += 1
        self._answer = asyncio.Future()
        params = ElicitRequestFormParams(message=message, requested_schema=schema)
        if self._question.done():  # nobody has come for the last one
            self._question = asyncio.Future()
        self._question.set_result(ElicitRequest(params=params))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._answer
        except TimeoutError:
            return None

    async def next(self) -> CallResult | ElicitRequest:
        """The result, or the next question."""
        try:
            awaited: list[asyncio.Future[Any]] = [self._work, self._question]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            with CancelScope(shield=True):
                await self.end()
            raise
        if self._work.done():
            return self._work.result()
        question = self._question.result()
        self._question = asyncio.Future()
        return question

    def answer(self, elicitation: ElicitedAnswer | None) -> None:
        if not self._answer.done():
            self._answer.set_result(elicitation)

    @property
    def is_over(self) -> bool:
        return self._work.done()

    def cancel(self) -> None:
        self._work.cancel()

    async def end(self) -> None:
        self.cancel()
        await asyncio.wait([self._work])


class ClientCalls:
    """All calls of all clients."""

    def __init__(self, served: ServedSession) -> None:
        self._served = served
        self._waiting: dict[str, tuple[SuspendedCall, int]] = {}

    async def call(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            channel = AskingChannel(context)
            token = CHANNEL.set(channel)
            try:
                return _result(await _call(self._served, params))
            finally:
                channel.is_over = True  # what it has left in the background asks nobody
                CHANNEL.reset(token)
        call = self._continued(params) if params.request_state else self._begun(context, params)
        outcome = await call.next()
        if isinstance(outcome, CallResult):
            return _result(outcome)
        state = secrets.token_urlsafe(32)
        self._waiting[state] = call, call.asked
        return InputRequiredResult(input_requests={QUESTION: outcome}, request_state=state)

    def _begun(self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> SuspendedCall:
        for state, (call, asked) in list(self._waiting.items()):
            if call.is_over or call.asked != asked:  # nobody came back in time
                call.cancel()
                del self._waiting[state]
        if len(self._waiting) >= MOST_WAITING:
            raise MCPError(INVALID_PARAMS, "too many calls wait for an answer")
        return SuspendedCall(self._served, params, _has_elicitation(context))

    def _continued(self, params: CallToolRequestParams) -> SuspendedCall:
        """The call that these answers are for. Raises MCPError."""
        call, asked = self._waiting.get(params.request_state or "", (None, 0))
        if call is None or (call.params.name, call.params.arguments) != (params.name, params.arguments):
            raise MCPError(INVALID_PARAMS, "no such call waits for an answer")
        del self._waiting[params.request_state or ""]
        if call.is_over or call.asked != asked:
            call.cancel()  # its next question reaches nobody
            raise MCPError(INVALID_PARAMS, "the answer comes too late: the call has gone on without it")
        response = (params.input_responses or {}).get(QUESTION)
        call.answer(_elicitation(response) if isinstance(response, ElicitResult) else None)
        return call

    async def end(self) -> None:
        """End those that wait for an answer; the others have ended with their requests."""
        for call, _ in self._waiting.values():
            await call.end()


async def _call(served: ServedSession, params: CallToolRequestParams) -> CallResult:
    return await served.call(params.name, msgspec.json.encode(params.arguments or {}).decode())


def _result(outcome: CallResult) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=outcome.text)], is_error=outcome.is_error)


def _has_elicitation(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client shows forms to a person. (Early clients declare that with an empty object.)"""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _elicitation(result: ElicitResult) -> ElicitedAnswer:
    return ElicitedAnswer(result.action, dict(result.content or {}))
