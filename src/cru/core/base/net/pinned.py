"""Requests whose addresses are judged: a name is looked up once, and what was judged is what is connected to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence

from cru.core.base.net import AddressCheck, ConnectFailed, Response, TimeLimits
from cru.core.base.net.remote import RemoteClient, proxy_for
from cru.core.base.net.web_url import WebUrl, literal_address, parse_web_url


async def send_pinned(
    limits: TimeLimits, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes], check: AddressCheck
) -> Response:
    """Send one request to an address that `check` lets pass; TLS and the header Host have the name. The connection ends with the answer.

    One address that may not be reached refuses the name: which of several is taken must not be luck. Through a proxy, which looks names up
    itself, only what a lookup here gives is judged. Raises NetError, and what `check` raises.
    """
    parts = parse_web_url(url)
    is_proxied = bool(proxy_for(url))
    addresses = await _look_up(parts, limits.connect, must=not is_proxied)
    for address in addresses:
        check(url, address)
    if is_proxied or not addresses:
        return await _send_once(RemoteClient(limits), method, url, headers, body)
    for address in addresses[:-1]:
        try:
            return await _send_once(_pinned_to(limits, parts, address), method, url, headers, body)
        except ConnectFailed:
            continue
    return await _send_once(_pinned_to(limits, parts, addresses[-1]), method, url, headers, body)


def _pinned_to(limits: TimeLimits, parts: WebUrl, address: str) -> RemoteClient:
    return RemoteClient(limits, (parts.host, address, parts.port))


async def _look_up(parts: WebUrl, seconds: float, *, must: bool) -> list[str]:
    """The addresses of a name, IPv4 first; none for what is an address itself. Raises ConnectFailed if there `must` be some."""
    if literal_address(parts.host) is not None:
        return []
    try:
        async with asyncio.timeout(seconds):
            rows = await asyncio.get_running_loop().getaddrinfo(parts.host, parts.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        if not must:
            return []
        why = "no answer in time" if isinstance(error, TimeoutError) else getattr(error, "strerror", "") or str(error)
        raise ConnectFailed(f"the name {parts.host} cannot be looked up: {why}") from error
    addresses = dict.fromkeys(str(row[4][0]) for row in rows)
    return sorted(addresses, key=lambda address: ":" in address)


async def _send_once(
    client: RemoteClient, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes]
) -> Response:
    try:
        response = await client.send(method, url, headers, body)
    except BaseException:
        await client.close()
        raise
    end = response.close

    async def close() -> None:
        await end()
        await client.close()

    response.close = close
    return response
