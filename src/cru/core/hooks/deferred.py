"""What hooks have to say to the model when no request is near: it waits in the context's folder for the next one, of any process. Hooks
that run beside the session can also wake an idle chat for it (Claude Code's `asyncRewake`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import msgspec

from cru.core.base.files import MAX_BYTES, decode_json
from cru.core.base.files.regular import append_lines, read_regular
from cru.core.hooks.parsing.common import to_json_line

FILE = "hook_context.jsonl"


class DeferredContext:
    """Texts for the next request, one a line of JSON; whoever takes them holds the context. Lines that are none are left out."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def add(self, texts: Iterable[str]) -> None:
        """Keep them at once: the process may end here. Raises OSError."""
        data = b"".join(to_json_line({"text": text}) for text in texts)
        if data:
            append_lines(self._path, data)

    def take(self) -> tuple[str, ...]:
        """All of them, in order; none is left. Raises OSError."""
        try:
            data = read_regular(self._path, MAX_BYTES)
            self._path.unlink()
        except FileNotFoundError:
            return ()
        texts = []
        for line in data.splitlines():
            try:
                texts.append(decode_json(line, _Line).text)
            except msgspec.DecodeError:  # a torn line
                continue
        return tuple(texts)


class _Line(msgspec.Struct, frozen=True):
    text: str


WOKEN = "[A hook that ran beside the session has something to say; it stands beside this message.]"


class HookWaker:
    """Set by a hook that wakes; cleared by whatever request takes along what hooks left for the model (cru.core.turn.parts.Waker)."""

    def __init__(self) -> None:
        self._is_set = asyncio.Event()

    def wake(self) -> None:
        self._is_set.set()

    def clear(self) -> None:
        self._is_set.clear()

    def has_report(self) -> bool:
        return self._is_set.is_set()

    def take_report(self) -> str:
        """The words themselves come with the request, as what every asynchronous hook says."""
        if not self._is_set.is_set():
            return ""
        self._is_set.clear()
        return WOKEN

    async def wait_for_any(self) -> bool:
        return await self._is_set.wait()
