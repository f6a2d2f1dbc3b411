"""The bytes of HTTP/1.1: a request head out, an answer's head and body in. No I/O here."""

from __future__ import annotations

from collections.abc import Mapping

from cru.net import BadUrl, ConnectionLost
from cru.net.http import Url

_HEX = frozenset(b"0123456789abcdefABCDEF")


def encode_request(method: str, url: Url, headers: Mapping[str, str], body: bytes) -> bytes:
    """A whole request. Line breaks in header values are refused (they would start a new header)."""
    lines = [f"{method} {url.target} HTTP/1.1", f"host: {url.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"content-length: {len(body)}")
    if any("\r" in line or "\n" in line for line in lines):
        raise BadUrl("a request header holds a line break", "check the key and base_url settings for stray newlines")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Status and headers (names in lower case, the last of equal names wins) of `HTTP/1.1 200 OK…` up to the blank line."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isdecimal() and len(words[1]) == 3):
        raise ConnectionLost(f"the server does not speak HTTP: {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return int(words[1]), headers


class BodyDecoder:
    """Takes the framing off a body: chunked, of a given length, or up to the end of the connection.

    `feed` returns payload; `done` says that the body is whole; `leftover` that bytes came after it."""

    def __init__(self, status: int, headers: Mapping[str, str], method: str = "") -> None:
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length", "")
        counted = length.isdecimal() and len(length) < 20  # not isdigit: int() takes no "²", nor a number without end
        self._until_end = not self._chunked and not counted
        self._left = int(length) if counted and not self._chunked else 0
        self._buffer = b""
        self._in_trailer = False
        self.done = (
            method == "HEAD" or status in (204, 304) or (not self._chunked and not self._until_end and self._left == 0)
        )
        self.leftover = False

    def feed(self, data: bytes) -> bytes:
        """Payload bytes in `data`, the raw bytes that came next."""
        if self._chunked:
            return self._decode_chunks(data)
        if self._until_end:
            return data
        payload, rest = data[: self._left], data[self._left :]
        self._left -= len(payload)
        self.done, self.leftover = self._left == 0, bool(rest)
        return payload

    def end(self) -> None:
        """The connection ended. Raises ConnectionLost if something is missing."""
        if self._until_end:
            self.done = True
        if not self.done:
            raise ConnectionLost("the connection broke in the middle of the answer")

    def _decode_chunks(self, data: bytes) -> bytes:
        buffer, out = self._buffer + data, []
        position = 0
        while not self.done:
            if self._left:  # inside a chunk: its bytes and the line break after them
                piece = buffer[position : position + self._left]
                out.append(piece[: max(0, self._left - 2)])
                position += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
                continue
            line_end = buffer.find(b"\n", position)
            if line_end < 0:
                break
            self._read_size_line(buffer[position:line_end].strip())
            position = line_end + 1
        self._buffer = buffer[position:]
        self.leftover = self.done and bool(self._buffer)
        return b"".join(out)

    def _read_size_line(self, line: bytes) -> None:
        if self._in_trailer:
            self.done = not line
            return
        digits = line.partition(b";")[0].strip()
        if not digits or not _HEX.issuperset(digits) or len(digits) > 16:  # int() would take a sign and underscores
            raise ConnectionLost(f"the server broke the chunked encoding: {line[:40]!r}")
        size = int(digits, 16)
        self._in_trailer = size == 0
        self._left = size + 2 if size else 0
