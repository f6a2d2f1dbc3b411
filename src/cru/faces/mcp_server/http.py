"""The server over HTTP (MCP's "streamable HTTP", at /mcp): who may connect, and from where."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.faces.mcp_server.stdio import ServeError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.types import ASGIApp, Receive, Scope, Send

    from cru.faces.mcp_server.served_session import Tell

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
CLOSE_SECONDS = 2.0


class HttpPlace(Struct, frozen=True):
    """Where to listen.

    token: what a client must show, "" for nothing
    names: what else clients call this machine by, with a port (`box.example:9000`) or without
    """

    host: str
    port: int
    token: str = ""
    names: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class TokenGuard:
    """Nothing of the application is reached without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_known(scope):
            headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"a bearer token is needed"})
            return
        await self._app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(shown) == 1 and hmac.compare_digest(shown[0], self._expected)


def security(place: HttpPlace) -> TransportSecuritySettings:
    """Which Host and Origin a request may have: a page in a browser, whatever its name resolves to, is not among them."""
    from mcp.server.transport_security import TransportSecuritySettings

    names = [*LOOPBACK] if place.is_loopback or _is_any(place.host) else []
    if not _is_any(place.host):
        names.append(_bracketed(place.host))
    hosts = [f"{name}:{place.port}" for name in names]
    for name in place.names:  # behind a proxy or a tunnel the port is another one, or none
        has_port = re.search(r":\d+$", name) is not None and (name.startswith("[") or name.count(":") == 1)
        hosts += [name] if has_port else [_bracketed(name), f"{_bracketed(name)}:{place.port}"]
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


def _is_any(host: str) -> bool:
    return host in ("0.0.0.0", "::")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


async def serve_http(server: Server[Any], place: HttpPlace, tell: Tell) -> None:
    """Serve until cancelled. Raises ServeError if the address cannot be had."""
    import uvicorn

    listening = _listen(place)
    port = listening.getsockname()[1]
    place = HttpPlace(place.host, port, place.token, place.names)
    app: Any = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=security(place), host=place.host
    )
    if place.token:
        app = TokenGuard(app, place.token)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=int(CLOSE_SECONDS)
    )

    class HttpListener(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # signals are the command's

    listener = HttpListener(config)
    serving = asyncio.ensure_future(listener.serve([listening]))
    tell(f"http://{_bracketed(place.host)}:{port}{PATH}")
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        listener.should_exit = True
        await asyncio.wait([serving], timeout=CLOSE_SECONDS + 1)
        raise
    finally:
        listening.close()


def _listen(place: HttpPlace) -> socket.socket:
    try:
        kind = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        listening = socket.socket(kind, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((place.host, place.port))
    except OSError as error:
        raise ServeError(f"{place.host}:{place.port}: {error.strerror or error}") from error
    listening.listen(128)
    return listening
