"""A proxy on a Unix socket for the programs in one sandbox, which have no other network: only hosts that a rule names are reached.

A name is looked up once, every address that it leads to is judged, and what was judged is connected to.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine, Sequence
from typing import Any

from cru.core.base.net.web_url import literal_address
from cru.core.base.values.errors import CruError
from cru.core.guard.sandbox.hosts import HostRule, find_rule, why_address_refused
from cru.core.guard.sandbox.requests import LARGEST, BadRequest, ProxyRequest, read_request

MOST = 64
"""Connections at a time; the others wait."""
HEAD_SECONDS = 10.0
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 300.0
PIECE = 64 << 10
MOST_REFUSED, LONGEST_REFUSAL = 20, 500
"""Hosts, and characters of what is told of one."""


class HostRefused(CruError):
    """No rule names the host, or it leads to an address that may not be reached."""


class HostUnreachable(CruError):
    """The host's name is unknown, or nobody answers there."""


STATUS = {BadRequest: b"400 Bad Request", HostRefused: b"403 Forbidden", HostUnreachable: b"502 Bad Gateway"}


class HostProxy:
    """Serves until it is closed. `forwards`: the ports of this machine that rules write out."""

    def __init__(self, folder: str, name: str, rules: Sequence[HostRule]) -> None:
        """Raises OSError. The socket is `folder`/`name`, for this user alone."""
        self.path = os.path.join(folder, name)
        self._refused: dict[str, None] = {}
        self._others = 0
        """Further refusals, which are only counted."""
        self.forwards = tuple(rule.text for rule in rules if rule.is_of_this_machine)
        self._rules = rules
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: set[socket.socket] = set()
        self._room = asyncio.Semaphore(MOST)
        self._server = _listen(folder, name)
        self._start(self._accept())

    def describe_refused(self) -> str:
        """Why which hosts were not reached, for whoever wants to know why a program failed; "" if none was refused."""
        return "; ".join([*self._refused, *([f"and {self._others:,} more"] if self._others else [])])

    def _note_refused(self, text: str) -> None:
        text = text if len(text) <= LONGEST_REFUSAL else f"{text[: LONGEST_REFUSAL - 1]}…"
        if len(self._refused) < MOST_REFUSED:
            self._refused[text] = None
        elif text not in self._refused:
            self._others += 1

    def close(self) -> None:
        """Nobody is served any more; `finish` waits until everything is let go of."""
        for task in self._tasks:
            task.cancel()
        os.unlink(self.path)

    async def finish(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for opened in (self._server, *self._clients):
            opened.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room.acquire()
            client, _ = await loop.sock_accept(self._server)
            client.setblocking(False)
            self._clients.add(client)
            self._start(self._serve(client))

    async def _serve(self, client: socket.socket) -> None:
        try:
            await self._answer(client)
        except (OSError, TimeoutError):  # one of the two sides is gone, or silent: the other one sees the end
            pass
        finally:
            self._clients.discard(client)
            client.close()
            self._room.release()

    async def _answer(self, client: socket.socket) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head, rest = await _read_head(client)
            request = read_request(head)
            server = await self._connect(request)
        except (BadRequest, HostRefused, HostUnreachable) as error:
            if isinstance(error, HostRefused):
                self._note_refused(error.message)
            await _refuse(client, error)
            return
        try:
            if request.head:
                await _pass_on(client, server, request, rest)
            else:
                await asyncio.get_running_loop().sock_sendall(client, b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _tunnel(client, server, rest)
        finally:
            server.close()

    async def _connect(self, request: ProxyRequest) -> socket.socket:
        """Raises HostRefused, HostUnreachable."""
        host, port = request.host, request.port
        rule = find_rule(self._rules, host, port)
        where = host if port in (80, 443) else f"{host}:{port}"
        if rule is None:
            known = ", ".join(rule.text for rule in self._rules)
            raise HostRefused(f"{where} is not among `hosts` in [sandbox] of config.toml, which are {known}")
        addresses = await _look_up(host, port)
        for address in addresses:
            if why := why_address_refused(rule, address):
                raise HostRefused(
                    f"{where} leads to {address}, and {why}: a rule in `hosts` of [sandbox] must write that address out"
                )
        problem = ""
        for address in addresses:
            try:
                return await _open(address, port)
            except (OSError, TimeoutError) as error:
                problem = getattr(error, "strerror", None) or "no answer in time"
        raise HostUnreachable(f"no connection to {where}: {problem}")


def _listen(folder: str, name: str) -> socket.socket:
    """A path of a socket has at most 107 bytes, so the folder goes by its descriptor."""
    server = socket.socket(socket.AF_UNIX)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        server.bind(f"/proc/self/fd/{held}/{name}")
        server.listen(MOST)
        server.setblocking(False)
    except BaseException:
        server.close()
        raise
    finally:
        os.close(held)
    return server


async def _look_up(host: str, port: int) -> list[str]:
    """The addresses of a host, IPv4 first. Raises HostUnreachable."""
    literal = literal_address(host)
    if literal is not None:
        return [str(literal)]
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise HostUnreachable(f"the name {host} cannot be looked up") from error
    return sorted(dict.fromkeys(str(row[4][0]) for row in rows), key=lambda address: ":" in address)


async def _open(address: str, port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        server.setblocking(False)
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(server, (address, port))
    except BaseException:
        server.close()
        raise
    return server


async def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """What comes before the blank line, and behind it. Raises BadRequest."""
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0:
        piece = await asyncio.get_running_loop().sock_recv(client, PIECE)
        if not piece or len(data) + len(piece) > LARGEST:
            raise BadRequest("the head of the request is cut off, or too long")
        data += piece
    return data[:end], data[end + 4 :]


async def _refuse(client: socket.socket, error: CruError) -> None:
    """The reason stands in the first line, too: most programs show nothing else."""
    code = STATUS[type(error)].partition(b" ")[0]
    text = error.message.encode("ascii", "replace") + b"\n"
    head = b"HTTP/1.1 %s %s\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    await asyncio.get_running_loop().sock_sendall(client, head % (code, text[:400].rstrip(), len(text)) + text)


async def _tunnel(client: socket.socket, server: socket.socket, rest: bytes) -> None:
    pumps = [asyncio.ensure_future(_pump(client, server, rest)), asyncio.ensure_future(_pump(server, client))]
    try:
        await asyncio.gather(*pumps)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pass_on(client: socket.socket, server: socket.socket, request: ProxyRequest, rest: bytes) -> None:
    """One request: nothing but its body follows its head, whatever the client sends, and its answer ends the connection."""
    await asyncio.get_running_loop().sock_sendall(server, request.head)
    sending = asyncio.ensure_future(_send_body(client, server, rest[: request.body], request.body))
    try:
        await _pump(server, client)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send_body(client: socket.socket, server: socket.socket, data: bytes, left: int) -> None:
    loop = asyncio.get_running_loop()
    while left and data:
        await loop.sock_sendall(server, data)
        left -= len(data)
        data = await loop.sock_recv(client, min(PIECE, left)) if left else b""


async def _pump(source: socket.socket, target: socket.socket, data: bytes = b"") -> None:
    """Until the source ends, which the target then sees. Raises TimeoutError if nothing moves for too long."""
    loop = asyncio.get_running_loop()
    while True:
        async with asyncio.timeout(IDLE_SECONDS):
            if data:
                await loop.sock_sendall(target, data)
            data = await loop.sock_recv(source, PIECE)
        if not data:
            break
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:  # it is gone already
        pass
