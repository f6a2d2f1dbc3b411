"""The output of a child: decoded as it comes, passed on in pieces, kept within bounds."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import Callable

LIMIT = 10 * 1024 * 1024
PAUSE = 0.05
PIECE = 64 * 1024


class Capture:
    """Bytes in, text out. Of more than `limit` characters the first and the last half are kept. `emit` gets pieces of at
    most 50 ms or about 64 Ki characters. `errors`: how what is no UTF-8 is decoded."""

    def __init__(self, emit: Callable[[str], None] | None = None, limit: int = LIMIT, errors: str = "replace") -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors).decode
        self._emit = emit
        self._head: list[str] = []
        self._head_room = limit - limit // 2
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._tail_limit = limit // 2
        self._pending: list[str] = []
        self._pending_size = 0
        self._timer: asyncio.TimerHandle | None = None
        self.left_out = 0

    def feed(self, data: bytes) -> None:
        text = self._decode(data)
        self._pending.append(text)
        self._pending_size += len(text)
        if self._pending_size >= PIECE:
            self._flush()
        elif self._emit is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._flush)

    def close(self) -> str:
        """Everything that was kept. Call it once, at the end."""
        self._pending.append(self._decode(b"", True))
        self._flush()
        if not self.left_out:
            return "".join([*self._head, *self._tail])
        cut = f"\n[... {self.left_out:,} characters left out ...]\n"  # ASCII: a wider character would double the text
        return "".join([*self._head, cut, *self._tail])

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        piece = "".join(self._pending)
        self._pending.clear()
        self._pending_size = 0
        if not piece:
            return
        self._keep(piece)
        if self._emit is not None:
            self._emit(piece)

    def _keep(self, piece: str) -> None:
        if self._head_room:
            self._head.append(piece[: self._head_room])
            rest = piece[self._head_room :]
            self._head_room -= len(piece) - len(rest)
            piece = rest
        if not piece:
            return
        self._tail.append(piece)
        self._tail_size += len(piece)
        while self._tail_size - len(self._tail[0]) >= self._tail_limit:
            lost = len(self._tail.popleft())
            self._tail_size -= lost
            self.left_out += lost
