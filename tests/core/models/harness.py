"""What the tests of the adapters share: a model against a wire, with waits that take no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from cru.core.base.net import TimeLimits
from cru.core.base.net.transport import Transport
from cru.core.base.values.messages import CallPart, Delta, Message, Request, Text, ToolCall, ToolSpec
from cru.core.models.anthropic import AnthropicModel
from cru.core.models.anthropic import endpoint as anthropic_endpoint
from cru.core.models.exchange import Exchange, ReplyLimits
from cru.core.models.failures import RequestFacts
from cru.core.models.openai_compatible import OpenAICompatibleModel
from cru.core.models.openai_compatible import endpoint as openai_endpoint

KEY = "sk-very-secret-key"
LS = ToolSpec("ls", "List files", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})


class Harness:
    """An adapter that talks to `base_url`; `said` and `waits` record what the user heard and how long was waited."""

    def __init__(
        self,
        base_url: str,
        provider: str = "openai_compatible",
        limits: TimeLimits | None = None,
        reply_limits: ReplyLimits | None = None,
        clock: Callable[[], float] = monotonic,
        key: str = KEY,
    ) -> None:
        self.said: list[str] = []
        self.waits: list[float] = []
        self.transport = Transport(limits)
        asked = RequestFacts(provider, "m1", "TEST_API_KEY", key)
        headers = {"authorization": f"Bearer {key}"}
        is_anthropic = provider == "anthropic"
        url = anthropic_endpoint(base_url) if is_anthropic else openai_endpoint(base_url)
        exchange = Exchange(
            self.transport,
            url,
            headers,
            asked,
            say=self.said.append,
            sleep=self._sleep,
            limits=reply_limits,
            clock=clock,
        )
        self.model: AnthropicModel | OpenAICompatibleModel = (
            AnthropicModel("m1", exchange, say=self.said.append)
            if is_anthropic
            else OpenAICompatibleModel(provider, "m1", exchange, say=self.said.append)
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def ask(self, request: Request | None = None) -> list[Delta]:
        body = self.model.encode(request or request_of("hi"))
        try:
            return [delta async for delta in self.model.stream(body)]
        finally:
            await self.transport.close()


def request_of(*texts: str, tools: tuple[ToolSpec, ...] = (), **parameters: Any) -> Request:
    return Request("m1", messages=tuple(Message("user", text) for text in texts), tools=tools, parameters=parameters)


def text_of(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, Text))


def calls_of(deltas: Sequence[Delta]) -> list[ToolCall]:
    """Fragments put together by index, as the engine does it."""
    calls: dict[int, list[str]] = {}
    for part in deltas:
        if isinstance(part, CallPart):
            call = calls.setdefault(part.index, ["", "", ""])
            call[0], call[1] = call[0] or part.id, call[1] + part.name
            call[2] += part.arguments
    return [ToolCall(*call) for _, call in sorted(calls.items())]
