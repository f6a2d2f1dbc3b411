"""HTTP to everybody else, through pyreqwest: TLS with the system's trust store, proxies by environment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cru.core.base.net import (
    BadUrl,
    CertificateUntrusted,
    ConnectFailed,
    ConnectionLost,
    NetError,
    Response,
    TimedOut,
    TimeLimits,
    gone_silent,
    no_answer,
    split_url,
)

if TYPE_CHECKING:
    from pyreqwest.client import Client
    from pyreqwest.exceptions import PyreqwestError
    from pyreqwest.request import StreamRequest
    from pyreqwest.response import Response as Answer


_STRAY = "check the key and base_url settings for stray characters"


class RemoteClient:
    """One client, built at the first request on the thread that asks (the event loop's): a client whose thread has ended
    crashes the process later."""

    def __init__(self, limits: TimeLimits, pin: tuple[str, str, int] | None = None) -> None:
        """pin: (host, IP address, port): connections to that host go there, and through no proxy."""
        self._limits = limits
        self._pin = pin
        self._client: Client | None = None

    def _build(self) -> Client:
        from datetime import timedelta

        from pyreqwest.client import ClientBuilder

        builder = ClientBuilder().follow_redirects(False).referer(False)
        builder = builder.connect_timeout(timedelta(seconds=self._limits.connect))
        if self._pin is not None:
            builder = builder.resolve(*self._pin).no_proxy()
        # closes the connection of a request that was given up; our own limits come first
        longest = self._limits.connect + self._limits.first_byte + self._limits.idle
        with _errors_as(_no_client):
            return builder.read_timeout(timedelta(seconds=longest)).build()

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Response:
        """Send one request and wait for the head of its answer. Raises ConnectFailed, ConnectionLost, TimedOut."""
        if self._client is None:
            self._client = self._build()
        try:
            with _errors_as(lambda error: _to_net_error(error, url)):
                request = (
                    self._client.request(method, url)
                    .headers(dict(headers))
                    .body_bytes(b"".join(body))  # cheaper than a stream, whose parts cross threads one by one
                    .streamed_read_buffer_limit(0)  # by default the first 64 KiB are gathered before any is handed out
                    .build_streamed()
                )
                async with asyncio.timeout(self._limits.first_byte):
                    answer = await request.__aenter__()
        except TimeoutError as error:
            raise no_answer(self._limits) from error

        return Response(
            answer.status,
            {name.lower(): value for name, value in answer.headers.items()},
            _read_chunks(answer, url, self._limits),
            _make_close(request),
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None


def _make_close(request: StreamRequest) -> Callable[[], Awaitable[None]]:
    """Ends an exchange once; closing it again does nothing."""
    open_: list[StreamRequest] = [request]

    async def close() -> None:
        if open_:
            await open_.pop().__aexit__(None, None, None)

    return close


async def _read_chunks(answer: Answer, url: str, limits: TimeLimits) -> AsyncGenerator[bytes, None]:
    read = answer.body_reader.read_chunk
    try:
        with _errors_as(lambda error: _to_net_error(error, url)):
            while True:
                async with asyncio.timeout(limits.idle):
                    chunk = await read()
                if chunk is None:
                    return
                yield chunk.to_bytes()
    except TimeoutError as error:
        raise gone_silent(limits) from error


@contextmanager
def _errors_as(translate: Callable[[PyreqwestError], NetError]) -> Iterator[None]:
    """The library's errors as ours, also those that are a TimeoutError. Their classes, which bring a JSON parser along, are loaded when
    something has failed."""
    try:
        yield
    except Exception as error:
        from pyreqwest.exceptions import PyreqwestError

        if isinstance(error, PyreqwestError):
            raise translate(error) from error
        raise


def _reason(error: PyreqwestError) -> str:
    """The innermost cause. Causes name the reason and the URL, never a header."""
    details = getattr(error, "details", None) or {}
    causes = [cause["message"] for cause in details.get("causes") or ()]
    return causes[-1] if causes else error.message


def _no_client(error: PyreqwestError) -> NetError:
    """The client cannot be made: as a rule because there is no certificate to trust."""
    import os

    reason = _reason(error)
    if "certificate" not in reason:
        return NetError(f"the HTTP client cannot be made: {reason}")
    named = [f"{name}={os.environ[name]}" for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)]
    if named:
        return CertificateUntrusted(
            f"no certificates to trust in {' or '.join(named)}", "name a file of certificates, or unset it"
        )
    return CertificateUntrusted(
        "this system has no certificates to trust",
        "install the package ca-certificates, or name a file of certificates in SSL_CERT_FILE",
    )


def _to_net_error(error: PyreqwestError, url: str) -> NetError:
    """The library's error as ours."""
    from pyreqwest.exceptions import BuilderError, ConnectError, ConnectTimeoutError, RequestTimeoutError

    reason = _reason(error)
    if isinstance(error, BuilderError):
        return BadUrl(f"this request cannot be sent: {reason}", _STRAY)
    if isinstance(error, ConnectTimeoutError):
        proxy = proxy_for(url)
        return ConnectFailed(f"no connection in time{f' through {proxy}' if proxy else ''}: {reason}")
    if isinstance(error, RequestTimeoutError):
        return TimedOut(f"the server sent nothing for too long: {reason}")
    if isinstance(error, ConnectError):
        if "certificate" in reason:
            return CertificateUntrusted(
                f"no connection: {reason}", "SSL_CERT_FILE names a file of certificates to trust"
            )
        if proxy := proxy_for(url):
            hint = f"is the proxy right and running? NO_PROXY={split_url(url).host} goes around it"
            return ConnectFailed(f"no connection through {proxy}: {reason}", hint)
        return ConnectFailed(f"no connection: {reason}")
    return ConnectionLost(f"the connection broke: {reason}")


def proxy_for(url: str) -> str:
    """The proxy that the environment names for a URL, for messages: its address without what is secret, and the variable."""
    import os
    from urllib.request import getproxies_environment, proxy_bypass

    parts = split_url(url)
    proxies = getproxies_environment()
    scheme = next((name for name in (parts.scheme, "all") if proxies.get(name)), "")
    if not scheme or proxy_bypass(parts.host):
        return ""
    address = proxies[scheme].rpartition("@")[2].rpartition("//")[2]
    variable = f"{scheme}_proxy"
    return f"the proxy {address} ({variable if os.environ.get(variable) else variable.upper()})"
