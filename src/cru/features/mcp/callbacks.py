"""A server's requests in our words: what the SDK calls is answered through the ports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from cru.core.base.values.errors import CruError
from cru.features.mcp.listing import clean_text
from cru.features.mcp.ports import Elicitation, FormField, SamplingRequest, ServerRequests

if TYPE_CHECKING:
    import mcp_types
    from mcp.client.context import ClientRequestContext

KINDS = ("string", "number", "integer", "boolean", "array")
MOST_FIELDS = 50


class Callbacks:
    """Of one server; `waiting` is entered while a person or the model is asked: a call's time does not run then."""

    def __init__(
        self, server: str, requests: ServerRequests, waiting: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._server = server
        self._requests = requests
        self._waiting = waiting

    async def list_roots(self, context: ClientRequestContext) -> mcp_types.ListRootsResult:
        from mcp_types import ListRootsResult, Root

        roots = [Root.model_validate({"uri": path.as_uri(), "name": path.name}) for path in self._requests.roots()]
        return ListRootsResult(roots=roots)

    async def elicit(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        from mcp_types import ElicitResult

        with self._waiting():
            values = await self._requests.elicit(self._elicitation(params))
        return ElicitResult(action="decline") if values is None else ElicitResult(action="accept", content=values)

    def _elicitation(self, params: mcp_types.ElicitRequestParams) -> Elicitation:
        message = clean_text(params.message)
        if params.mode == "url":
            return Elicitation(self._server, message, url=clean_text(params.url, 2000))
        properties = params.requested_schema.get("properties")
        required = params.requested_schema.get("required") or ()
        items = list(properties.items())[:MOST_FIELDS] if isinstance(properties, dict) else []
        fields = tuple(_field(name, schema, name in required) for name, schema in items if isinstance(schema, dict))
        return Elicitation(self._server, message, fields)

    async def sample(
        self, context: ClientRequestContext, params: mcp_types.CreateMessageRequestParams
    ) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
        from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

        messages = tuple((message.role, _texts(message.content)) for message in params.messages)
        system = params.system_prompt or ""
        try:
            with self._waiting():
                sample = await self._requests.sample(SamplingRequest(self._server, messages, system, params.max_tokens))
        except CruError as error:
            return ErrorData(code=INVALID_REQUEST, message=error.message)
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=sample.text),
            model=sample.model,
            stop_reason="endTurn",
        )


def _field(name: str, schema: dict[str, Any], required: bool) -> FormField:
    kind = schema.get("type")
    title = " – ".join(filter(None, (clean_text(str(schema.get(key) or ""), 500) for key in ("title", "description"))))
    source = schema.get("items") if kind == "array" and isinstance(schema.get("items"), dict) else schema
    assert isinstance(source, dict)
    return FormField(
        name, title or clean_text(name, 100), kind if kind in KINDS else "string", _choices(source), required
    )


def _choices(schema: dict[str, Any]) -> tuple[str, ...]:
    listed = schema.get("enum")
    if isinstance(listed, list):
        return tuple(str(value) for value in listed)
    options = schema.get("oneOf") or schema.get("anyOf")
    if not isinstance(options, list):
        return ()
    return tuple(str(option["const"]) for option in options if isinstance(option, dict) and "const" in option)


def _texts(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(block.text if block.type == "text" else f"[{block.type}]" for block in blocks)
