"""A server at an address, over streamable HTTP. The SDK follows redirects within the address's own host only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from cru.core.base.config.secret import mask_url
from cru.core.base.net.web_url import literal_address, why_address_inner
from cru.core.base.values.visible import visible
from cru.features.mcp import BadServer, McpServer, RequestFailed, ServerUnavailable
from cru.features.mcp.limits import NotificationGate
from cru.features.mcp.listing import screen_result
from cru.features.mcp.oauth import kept_auth, login_wanted
from cru.features.mcp.sdk import ATTEMPT
from cru.features.mcp.tokens import TokenStore

if TYPE_CHECKING:
    import httpx2

    from cru.features.mcp.definition import ServerDefinition
    from cru.features.mcp.place import ServerPlace

LARGEST_EVENT = 64 * 1024 * 1024
"""Bytes of one message."""
CONNECT_SECONDS = 30.0
SESSION = "mcp-session-id"
"""The header of a request within a session: the status 404 says then that the server has forgotten it, and did nothing."""


class ScreenedStream:
    """The SDK's stream of messages, looked through on the way."""

    def __init__(self, stream: Any, problems: list[str]) -> None:
        self._stream = stream
        self._problems = problems
        self._gate = NotificationGate()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> ScreenedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stream.__aexit__(*error)

    def __aiter__(self) -> ScreenedStream:
        return self

    async def __anext__(self) -> Any:
        from mcp_types import JSONRPCNotification

        while True:
            item = await self._stream.__anext__()
            message = getattr(item, "message", None)
            if isinstance(message, JSONRPCNotification):
                try:
                    if not self._gate.admits():
                        continue
                except RequestFailed as failure:
                    return failure
            screen_result(message, self._problems)
            return item


class HttpTransport:
    """A ServerTransport. It is gone only when it is left: each request has a connection of its own. `auth`: what logs in."""

    def __init__(
        self,
        definition: ServerDefinition,
        server: McpServer,
        place: ServerPlace,
        secrets: set[str],
        auth: httpx2.Auth | None = None,
    ) -> None:
        self.ended = asyncio.Event()
        self.secrets = secrets
        self.problems: list[str] = []
        self.refusal: ServerUnavailable | None = None
        self._name = definition.name
        self._of_project = definition.of_project
        self._server = server
        self._place = place
        self._auth = auth

    @property
    def streams(self) -> Any:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Any]:
        from httpx2 import Timeout
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        limits = Timeout(CONNECT_SECONDS, read=self._server.call_timeout + 1)
        headers = {"accept-encoding": "identity", **self._server.headers}
        client = create_mcp_http_client(headers, limits, self._auth or self._kept_auth())
        client.event_hooks = {"request": [self._check_request], "response": [self._check_response]}
        async with client:
            transport = streamable_http_client(self._server.url, http_client=client, max_sse_event_size=LARGEST_EVENT)
            async with transport as (read_stream, write_stream):
                yield ScreenedStream(read_stream, self.problems), write_stream

    def _kept_auth(self) -> httpx2.Auth | None:
        """What an earlier login gave; not if a header logs in."""
        if any(name.lower() == "authorization" for name in self._server.headers):
            return None
        return kept_auth(self._name, self._server.url, TokenStore(self._place.home, self._name, self._server.url))

    async def _check_request(self, request: httpx2.Request) -> None:
        """Requests of a login go where the server says: not into a private network, nor where a rule forbids. Names that a server or a
        project has chosen do not lead to this machine, nor to what serves credentials to clouds. Raises BadServer."""
        url = str(request.url)
        is_own = request.url.host == _host(self._server.url)
        if self._of_project or not is_own:
            await self._check_addresses(request.url)
        if is_own:
            return
        why = self._place.why_private(url) or self._place.why_not(url)
        if why:
            raise BadServer(f"it leads to {request.url.host}, and {why}")

    async def _check_addresses(self, url: httpx2.URL) -> None:
        """Looked up once more when it is connected to, and by a proxy if there is one: this is no wall. Raises BadServer."""
        if (
            literal_address(url.host) is not None or url.host == "localhost"
        ):  # the address itself was shown, or is judged as such
            return
        for address in await _look_up(url.host):
            if why := why_address_inner(address):
                raise BadServer(f"{url.host} leads to {address}, and {why}", "set that server in your own config.toml")

    async def _check_response(self, response: httpx2.Response) -> None:
        from cru.features.mcp.http_body import bound_body

        bound_body(response, LARGEST_EVENT)
        if response.status_code == 404 and SESSION in response.request.headers:
            attempt = ATTEMPT.get()
            if attempt is not None:
                attempt.is_forgotten = True
        elif response.status_code == 401:
            self.refusal = login_wanted(self._name)
        elif response.status_code in (403, 404) or 300 <= response.status_code < 400:
            self.refusal = ServerUnavailable(f"it answered with the status {response.status_code}{_target(response)}")
        else:
            self.refusal = None

    def describe_end(self) -> str:
        return ""

    async def wait_end(self) -> str:
        return ""

    def last_words(self) -> str:
        return ""


async def _look_up(host: str) -> list[str]:
    """The addresses of a name; none if nobody knows it, which who connects tells."""
    try:
        rows = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return []
    return [str(row[4][0]) for row in rows]


def _host(url: str) -> str:
    from httpx2 import URL

    return URL(url).host


def _target(response: httpx2.Response) -> str:
    """Where a redirect leads: the address without what may be secret in it."""
    location = response.headers.get("location", "")
    if not 300 <= response.status_code < 400 or not location:
        return ""
    target = visible(mask_url(str(response.url.join(location))))
    return f": it leads to {target}, which is not followed; set that `url` if it is meant"
