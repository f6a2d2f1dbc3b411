"""The chat line by line, for terminals without escape sequences (TERM=dumb) and for screen readers: nothing that stands there changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cru.faces.cli.chat.first_prompt import PROMPT
from cru.faces.cli.console import write_error
from cru.faces.cli.terminal.keyboard import input_mode


class LineScreen:
    """A `Screen`. The terminal itself edits the line; what is typed while the model works waits there."""

    def __init__(self) -> None:
        self._data = b""
        self._has_ended = False
        self._arrived = asyncio.Event()

    def take_keys(self, keys: bytes, waits: bool) -> None:
        self._data = keys.replace(b"\r", b"\n")

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        with input_mode(0, "lines"):
            yield

    async def next_prompt(self) -> str | None:
        """The next line; None at the end of input."""
        write_error(PROMPT)
        loop = asyncio.get_running_loop()
        loop.add_reader(0, self._read)
        try:
            while b"\n" not in self._data and not self._has_ended:
                self._arrived.clear()
                await self._arrived.wait()
        finally:
            loop.remove_reader(0)
        line, _, self._data = self._data.partition(b"\n")
        return None if self._has_ended and not line else line.decode("utf-8", "replace")

    def _read(self) -> None:
        try:
            data = os.read(0, 4096)
        except OSError:
            data = b""
        self._data += data
        self._has_ended = self._has_ended or not data
        self._arrived.set()

    def begin_turn(self, text: str) -> None:
        """The terminal has shown it."""

    def end_turn(self) -> None:
        """The next prompt comes when it is asked for."""

    def read_pressed(self) -> None:
        """It is the terminal's."""

    def take_back(self) -> None:
        """Ctrl-C has thrown away what was typed."""

    def clear_input(self) -> bool:
        write_error(f"\n{PROMPT}")
        return True

    def end_input(self) -> None:
        self._has_ended = True
        self._arrived.set()
