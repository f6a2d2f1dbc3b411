"""One HTTP transport: bytes out, a stream of bytes in. Here: what may go wrong between here and a server, URLs in parts, and answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from cru.core.base.values.errors import CruError


class NetError(CruError):
    """A request got no (whole) answer. No message holds headers or bodies, so none holds a key.

    NetError
    ├── BadUrl          not an absolute http(s) URL, or a header that cannot be sent
    ├── ConnectFailed   nobody answers, the name is unknown
    │   └── CertificateUntrusted  the certificate is not trusted, or there are none to trust
    ├── ConnectionLost  the connection broke before the answer was whole
    ├── TimedOut        nothing arrived for too long
    ├── UnknownEncoding the answer is compressed in a way that nobody asked for
    └── TooManyRedirects
    """


class BadUrl(NetError):
    pass


class ConnectFailed(NetError):
    pass


class CertificateUntrusted(ConnectFailed):
    pass


class ConnectionLost(NetError):
    pass


class TimedOut(NetError):
    pass


class UnknownEncoding(NetError):
    pass


class TooManyRedirects(NetError):
    pass


class TimeLimits(Struct, frozen=True):
    """How long a request may wait, in seconds.

    connect: for a connection
    first_byte: for the beginning of the answer
    idle: for the next bytes of the answer
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 300.0


def no_answer(limits: TimeLimits) -> TimedOut:
    return TimedOut(
        f"no answer within {limits.first_byte:g} s",
        "is the server busy? `first_byte_timeout` sets how long an answer may take to begin",
    )


def gone_silent(limits: TimeLimits) -> TimedOut:
    return TimedOut(
        f"the server sent nothing for {limits.idle:g} s", "`idle_timeout` sets how long it may be silent in an answer"
    )


class Response(Struct):
    """A streamed answer. Whoever gets one must close it.

    status: of HTTP
    headers: by names in lower case
    chunks: the body as it comes
    close: ends the exchange at any point; only a fully read connection is kept for the next request
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncGenerator[bytes, None]
    close: Callable[[], Awaitable[None]]

    async def read(self, limit: int) -> bytes:
        """The body's first `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= limit:
                break
        return b"".join(parts)[:limit]


class WholeResponse(Struct, frozen=True):
    """A whole answer.

    status: of HTTP
    headers: by names in lower case
    body: as much of it as the limit allows
    url: the one that answered, after redirects
    truncated: the limit cut the body
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    truncated: bool = False


AddressCheck: TypeAlias = Callable[[str, str], None]
"""(URL, IP address that its host's name leads to): raises if that may not be connected to."""

_PORTS = {"http": 80, "https": 443}


class Url(Struct, frozen=True):
    """An absolute http(s) URL in parts.

    scheme: http or https
    host: without brackets
    port: the scheme's own unless the URL names one
    target: path and query
    authority: host and port as written
    """

    scheme: str
    host: str
    port: int
    target: str
    authority: str


@lru_cache(maxsize=64)
def split_url(url: str) -> Url:
    """Take a URL apart. Raises BadUrl; user names and passwords in URLs are refused."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise BadUrl(f"not a URL: {url!r} ({error})") from error
    if parts.scheme not in _PORTS or not host:
        raise BadUrl(f"not an http or https URL: {url!r}", "write it as https://host/path")
    if "@" in parts.netloc:
        raise BadUrl(f"a URL with a user name or password is refused: {host}", "use a key setting instead")
    if any(c <= " " or c == "\x7f" for c in url):
        raise BadUrl(f"a URL may not hold blanks or control characters: {url!r}")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Url(parts.scheme, host, port or _PORTS[parts.scheme], target, parts.netloc)


def is_loopback(host: str) -> bool:
    """Whether a host name can only mean this machine."""
    return host in ("localhost", "::1") or (host.startswith("127.") and host.replace(".", "").isdigit())
