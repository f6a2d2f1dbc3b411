"""The one way out: requests to local servers go over plain streams, all others through the HTTP library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from cru.core.base.net import (
    AddressCheck,
    BadUrl,
    Response,
    TimedOut,
    TimeLimits,
    TooManyRedirects,
    WholeResponse,
    is_loopback,
    split_url,
)

if TYPE_CHECKING:
    from cru.core.base.net.loopback import LoopbackClient
    from cru.core.base.net.remote import RemoteClient

_REDIRECTS = (301, 302, 303, 307, 308)


class Reach(Struct, frozen=True):
    """What of the network a request may reach; see `Transport.get`."""

    allow: Callable[[str], None] | None = None
    allow_address: AddressCheck | None = None

    def check(self, url: str) -> str:
        """The URL in its one spelling. Raises BadUrl, and what `allow` raises."""
        from cru.core.base.net.web_url import parse_web_url

        text = parse_web_url(url).text
        if self.allow is not None:
            self.allow(text)
        return text


RedirectLeave: TypeAlias = Callable[[str, str], "Reach | None"]
"""(URL, where it leads to) -> what the rest of the request may reach, None: what it might before. Refuses a redirect by raising."""


class _Way(Struct, frozen=True):
    """How many redirects are followed, what may be reached from the start, and what judges redirects."""

    hops: int
    reach: Reach | None
    leave: RedirectLeave | None


class Transport:
    """Sends requests. One for a process; use it on the event loop's thread only. A streamed answer as a whole has no limit here."""

    def __init__(self, limits: TimeLimits | None = None) -> None:
        self._limits = limits or TimeLimits()
        self._loopback: LoopbackClient | None = None
        self._remote: RemoteClient | None = None

    async def post_stream(self, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Response:
        """POST a body, in parts, and get the answer as it comes, whatever its status. Cancelling closes the connection.

        Raises NetError: BadUrl, ConnectFailed, ConnectionLost, TimedOut; the last two also while reading `chunks`."""
        return await self._send("POST", url, headers, body)

    async def get(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        limit_bytes: int = 1 << 20,
        timeout: float = 30.0,  # noqa: ASYNC109  (a limit on all hops together)
        max_redirects: int = 5,
        allow: Callable[[str], None] | None = None,
        allow_address: AddressCheck | None = None,
        leave: RedirectLeave | None = None,
    ) -> WholeResponse:
        """GET a whole page: at most `limit_bytes` of it, within `timeout` seconds. `allow` is called with the URL of every hop, in its one
        spelling, and refuses it by raising; `allow_address` does so with each address that its host's name leads to, and what is then
        connected to is one of these, whatever a second lookup would say. `leave` judges redirects alone. Headers are not sent on to
        another host. Raises NetError."""
        reach = None if allow is None and allow_address is None else Reach(allow, allow_address)
        way = _Way(max_redirects, reach, leave)
        return await self._fetch_whole("GET", url, dict(headers or {}), b"", limit_bytes, timeout, way)

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        limit_bytes: int = 64 << 20,
        timeout: float = 30.0,  # noqa: ASYNC109  (a limit on all hops together)
        max_redirects: int = 10,
        leave: RedirectLeave | None = None,
    ) -> WholeResponse:
        """Send any request and get the whole answer, whatever its status; limits and `leave` as in `get`. After 301, 302 (a POST) and 303
        the redirect is followed with a GET, as browsers do. Raises NetError."""
        way = _Way(max_redirects, None, leave)
        return await self._fetch_whole(method, url, dict(headers or {}), body, limit_bytes, timeout, way)

    async def close(self) -> None:
        """Close what is idle. The transport can be used again."""
        if self._loopback is not None:
            await self._loopback.close()
        if self._remote is not None:
            await self._remote.close()

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes], reach: Reach | None = None
    ) -> Response:
        response = await self._exchange(method, url, headers, body, reach)
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding in ("", "identity"):
            return response
        from cru.core.base.net.compressed import decompressed

        return decompressed(response, encoding)

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes], reach: Reach | None
    ) -> Response:
        parts = split_url(url)
        if parts.scheme == "http" and is_loopback(parts.host):
            if self._loopback is None:
                from cru.core.base.net.loopback import LoopbackClient

                self._loopback = LoopbackClient(self._limits)
            return await self._loopback.send(method, parts, headers, body)
        if reach is not None and reach.allow_address is not None:
            from cru.core.base.net.pinned import send_pinned

            return await send_pinned(self._limits, method, url, headers, body, reach.allow_address)
        if self._remote is None:
            from cru.core.base.net.remote import RemoteClient

            self._remote = RemoteClient(self._limits)
        return await self._remote.send(method, url, headers, body)

    async def _fetch_whole(
        self, method: str, url: str, headers: dict[str, str], body: bytes, limit: int, seconds: float, way: _Way
    ) -> WholeResponse:
        import asyncio

        try:
            async with asyncio.timeout(seconds):
                return await self._follow(method, url, headers, body, limit, way)
        except TimeoutError as error:
            raise TimedOut(f"no whole answer from {split_url(url).host} within {seconds:g} s") from error

    async def _follow(
        self, method: str, url: str, headers: dict[str, str], body: bytes, limit: int, way: _Way
    ) -> WholeResponse:
        from urllib.parse import urljoin

        reach = way.reach
        for _ in range(way.hops + 1):
            if reach is not None:
                url = reach.check(url)
            response = await self._send(method, url, headers, (body,), reach)
            try:
                if response.status not in _REDIRECTS or "location" not in response.headers:
                    read = await response.read(limit + 1)
                    return WholeResponse(response.status, response.headers, read[:limit], url, len(read) > limit)
            finally:
                await response.close()
            target = urljoin(url, response.headers["location"])
            if split_url(target).authority != split_url(url).authority:
                headers = {}
            if response.status == 303 or (response.status in (301, 302) and method == "POST"):
                method, body = "HEAD" if method == "HEAD" else "GET", b""
                headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
            if url.startswith("https:") and not target.startswith("https:"):
                raise BadUrl(f"refused: {split_url(url).host} redirects from https to http")
            reach = reach if way.leave is None else way.leave(url, target) or reach
            url = target
        raise TooManyRedirects(f"more than {way.hops} redirects, the last one to {url}")
