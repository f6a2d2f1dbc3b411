"""What keeps the output of a child: text with its beginning and its end, or the first bytes."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import Callable
from typing import Protocol

LIMIT = 10 * 1024 * 1024
PAUSE = 0.05
PIECE = 64 * 1024


class Capture(Protocol):
    """Takes the output of a child as it comes."""

    def feed(self, data: bytes) -> bool:
        """True if that is enough: the child is to be ended."""

    def close(self) -> str:
        """Return what was kept; called at the end."""

    @property
    def is_cut(self) -> bool:
        """Whether something was left out."""


class TextCapture:
    """Text within bounds, passed on in pieces.

    emit: gets pieces of at most 50 ms or about 64 Ki characters
    limit: of more characters than that, the first and the last half are kept
    errors: how what is no UTF-8 is decoded
    ends_at_limit: whether the child is ended when the limit is passed
    """

    def __init__(
        self,
        emit: Callable[[str], None] | None = None,
        limit: int = LIMIT,
        errors: str = "replace",
        *,
        ends_at_limit: bool = False,
    ) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors).decode
        self._emit = emit
        self._ends_at_limit = ends_at_limit
        self._head: list[str] = []
        self._head_room = limit - limit // 2
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._tail_limit = limit // 2
        self._pending: list[str] = []
        self._pending_size = 0
        self._timer: asyncio.TimerHandle | None = None
        self.left_out = 0
        """Characters."""

    @property
    def is_cut(self) -> bool:
        return self.left_out > 0

    def feed(self, data: bytes) -> bool:
        text = self._decode(data)
        self._pending.append(text)
        self._pending_size += len(text)
        if self._pending_size >= PIECE:
            self._flush()
        elif self._emit is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._flush)
        return self._ends_at_limit and self.left_out > 0

    def close(self) -> str:
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


class ByteCapture:
    """The first bytes of an output.

    kept: how many of them are kept
    most: the child is ended once it has printed more
    size: how many it has printed
    """

    def __init__(self, kept: int, most: int) -> None:
        self._kept = kept
        self._most = most
        self._parts: list[bytes] = []
        self.size = 0

    @property
    def is_cut(self) -> bool:
        return self.size > self._kept

    @property
    def is_too_much(self) -> bool:
        return self.size > self._most

    def feed(self, data: bytes) -> bool:
        if self.size < self._kept:
            self._parts.append(data[: self._kept - self.size])
        self.size += len(data)
        return self.is_too_much

    def content(self) -> bytes:
        return b"".join(self._parts)

    def close(self) -> str:
        return self.content().decode("utf-8", "replace")
