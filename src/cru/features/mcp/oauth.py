"""Logging in at a server that asks for it: the SDK's flow, with the answer awaited at an address of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from cru.core.base.values.visible import visible
from cru.features.mcp import ServerUnavailable
from cru.features.mcp.tokens import TokenStore

if TYPE_CHECKING:
    from mcp.client.auth.oauth2 import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult

LOGIN_SECONDS = 300.0
PATH = "/callback"
PAGE = b"<!doctype html><title>cru</title><p>You are logged in. This window can be closed.</p>"
LONGEST_REQUEST = 16 * 1024


class LoginListener:
    """Awaits the browser at 127.0.0.1. `port`: where, as long as it is free; else another one."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> LoginListener:
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        except OSError:  # somebody else has it
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: Any) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    async def wait(self) -> AuthorizationCodeResult:
        """What the browser brings. Raises ServerUnavailable if the person refuses, or nobody comes."""
        from mcp.shared.auth import AuthorizationCodeResult

        try:
            answer = await asyncio.wait_for(self._answer, LOGIN_SECONDS)
        except TimeoutError as error:
            raise ServerUnavailable(f"nobody has logged in within {LOGIN_SECONDS:g} s") from error
        if "code" not in answer:
            why = visible(answer.get("error_description") or answer.get("error") or "no code came")[:300]
            raise ServerUnavailable(f"the login failed: {why}")
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await asyncio.wait_for(reader.readline(), 10)
            words = line[:LONGEST_REQUEST].split()
            url = urlsplit(words[1].decode("ascii", "replace")) if len(words) > 1 else urlsplit("")
            is_answer = words[:1] == [b"GET"] and url.path == PATH
            status, page = ("200 OK", PAGE) if is_answer else ("404 Not Found", b"")
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {len(page)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + page)
            await writer.drain()
            if is_answer and not self._answer.done():
                self._answer.set_result({name: values[0] for name, values in parse_qs(url.query).items()})
        except (OSError, TimeoutError, ValueError):  # a browser that goes away, or is none
            pass
        finally:
            writer.close()


def make_auth(
    url: str,
    store: TokenStore,
    redirect: str,
    tell: Callable[[str], Awaitable[None]],
    wait: Callable[[], Awaitable[Any]],
) -> OAuthClientProvider:
    """The SDK's flow; redirect: where the browser is sent back to, tell: gets the address to visit, wait: gives its answer."""
    from mcp.client.auth.oauth2 import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    metadata = OAuthClientMetadata.model_validate({"client_name": "cru", "redirect_uris": [redirect]})
    return OAuthClientProvider(url, metadata, store, tell, wait)


def kept_auth(name: str, url: str, store: TokenStore) -> OAuthClientProvider | None:
    """What uses and renews the tokens of an earlier login; None if there was none. Where they do not do any more, it says so."""
    stored = store.load()
    if stored.tokens is None:
        return None

    async def refuse(_: str) -> None:
        raise login_wanted(name)

    async def wait() -> Any:
        raise login_wanted(name)

    auth = make_auth(url, store, f"http://127.0.0.1:{stored.port}{PATH}", refuse, wait)
    auth.context.token_expiry_time = stored.expiry  # the SDK keeps only how long it holds
    if stored.authority is not None:
        from mcp.shared.auth import OAuthMetadata

        auth.context.oauth_metadata = OAuthMetadata.model_validate(stored.authority)
    return auth


def login_wanted(name: str) -> ServerUnavailable:
    return ServerUnavailable("it wants you to log in", f"cru mcp login {name}")
