"""Answers that come compressed although nobody asked for it."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

from cru.core.base.net import ConnectionLost, Response, UnknownEncoding

_KNOWN = ("gzip", "x-gzip", "deflate")
_EITHER = zlib.MAX_WBITS | 32  # zlib finds out which of its two headers there is
_PIECE = 1 << 20


def decompressed(response: Response, encoding: str) -> Response:
    """The same answer with its body as it was before."""
    headers = {name: value for name, value in response.headers.items() if name != "content-encoding"}
    return Response(response.status, headers, _decompress(response, encoding), response.close)


async def _decompress(response: Response, encoding: str) -> AsyncGenerator[bytes, None]:
    if encoding not in _KNOWN:
        raise UnknownEncoding(
            f"the server compressed its answer with {encoding[:40]!r}, which was not asked for",
            "turn that off at the server, or at the proxy before it",
        )
    stream, chunk = zlib.decompressobj(_EITHER), b""
    try:
        async with aclosing(response.chunks) as chunks:
            async for chunk in chunks:
                rest = chunk
                while rest:
                    yield stream.decompress(rest, _PIECE)
                    rest = stream.unconsumed_tail
        yield stream.flush()
    except zlib.error as error:
        raise ConnectionLost(f"the compressed answer is damaged: {error}") from error
    if chunk and not stream.eof:
        raise ConnectionLost("the connection broke in the middle of the compressed answer")
