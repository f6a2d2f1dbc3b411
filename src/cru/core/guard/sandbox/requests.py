"""What a client of the proxy asks for: the head of its request, read strictly."""

from __future__ import annotations

import re

from msgspec import Struct

from cru.core.base.net import BadUrl
from cru.core.base.net.web_url import parse_web_url
from cru.core.base.values.errors import CruError

LARGEST = 64 << 10
"""Bytes of a head."""
_LINE = re.compile(rb"([A-Z]{1,20}) ([!-~]{1,16000}) HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n\0]*)")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_OF_THIS_HOP = frozenset(
    b"connection host keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade".split()
)


class BadRequest(CruError):
    """The request cannot be understood, or is of a kind that is not passed on; the client reads the message."""


class ProxyRequest(Struct, frozen=True):
    """host: as it is connected to; an address of IPv6 in brackets
    head: what the server reads; b"": bytes go both ways as they are (CONNECT)
    body: bytes of the body that follow
    """

    host: str
    port: int
    head: bytes = b""
    body: int = 0


def read_request(head: bytes) -> ProxyRequest:
    """Of a head up to its blank line. Raises BadRequest."""
    first, *lines = head.split(b"\r\n")
    match = _LINE.fullmatch(first)
    if match is None:
        raise BadRequest("this is no request to a proxy")
    method, target = match[1], match[2].decode("ascii")
    is_tunnel = method == b"CONNECT"
    if is_tunnel != ("/" not in target) or not (is_tunnel or target.lower().startswith("http://")):
        raise BadRequest("the proxy of the sandbox takes CONNECT host:port and http://…")
    try:
        url = parse_web_url(f"https://{target}/" if is_tunnel else target)
    except BadUrl as error:
        raise BadRequest(error.message) from error
    if is_tunnel:
        return ProxyRequest(url.host, url.port)
    headers, length = _read_headers(lines)
    path = url.text.partition("://")[2].partition("/")[2]
    shown = url.host if url.port == 80 else f"{url.host}:{url.port}"
    begin = b"%s /%s HTTP/1.1\r\nhost: %s\r\nconnection: close\r\n" % (
        method,
        path.encode("ascii"),
        shown.encode("ascii"),
    )
    return ProxyRequest(url.host, url.port, begin + b"".join(headers) + b"\r\n", length)


def _read_headers(lines: list[bytes]) -> tuple[list[bytes], int]:
    """Those that are passed on, and the length of the body. Raises BadRequest."""
    kept: list[bytes] = []
    lengths: set[bytes] = set()
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise BadRequest("a header cannot be understood")
        name, value = match[1].lower(), match[2].strip(b" \t")
        if name == b"transfer-encoding":
            raise BadRequest("a body needs its length (content-length)")
        if name == b"content-length":
            lengths.add(value)
        if name not in _OF_THIS_HOP:
            kept.append(b"%s: %s\r\n" % (name, value))
    if not lengths:
        return kept, 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(value := lengths.pop()):
        raise BadRequest("the length of the body cannot be understood")
    return kept, int(value)
