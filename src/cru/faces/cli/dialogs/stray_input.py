"""What a person types while a question comes, and what is no answer to it: it is kept for the prompt, never taken as an answer."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from cru.faces.cli.terminal.keyboard import (
    PASTE_BEGINS,
    PASTE_ENDS,
    editor_text,
    has_typed,
    input_mode,
    insert_typed,
    pastes_marked,
    typed_text,
)

QUIET = 0.25
"""Seconds without a key before a question says what it takes: a person needs longer to read it."""
PAUSE = 1.0
"""The same if somebody is seen typing."""
PASTE = 0.03
"""What comes within so many seconds of a line was pasted with it."""


class StrayInput:
    """Keys on the terminal `fd` that answer no question. `kept`: those for which no prompt of the line editor was there."""

    def __init__(self, fd: int) -> None:
        self.kept = ""
        self._fd = fd
        self._keys = bytearray()

    async def settle(self) -> bool:
        """Take keys until the keyboard is quiet; whether somebody was typing. Raises OSError if the terminal has gone."""
        with input_mode(self._fd, "kept"):
            is_typing = bool(self._keys or editor_text() or has_typed(self._fd))
            while data := await read_within(self._fd, PAUSE if is_typing else QUIET):
                self._keys += data
                is_typing = True
        return is_typing

    def take_waiting(self) -> None:
        """Take what was typed up to now; it is for nobody who reads the terminal next."""
        with input_mode(self._fd, "kept"), suppress(OSError):  # the terminal has gone
            while has_typed(self._fd) and (data := os.read(self._fd, 4096)):
                self._keys += data

    async def is_pasted(self, line: bytes) -> bool:
        """Whether more came together with this line: then all of it is kept."""
        with input_mode(self._fd, "kept"):
            data = await read_within(self._fd, PASTE)
        if data:
            self._keys += line + data
        return bool(data)

    async def read_keys(self) -> bytes:
        """One key, or keys that came so close together that they are a line or none: up to a pause. Raises OSError if the terminal has
        gone."""
        data = b""
        with input_mode(self._fd, "kept"), pastes_marked(self._fd):
            while not data:
                data = await read_within(self._fd, None)
            while more := await read_within(self._fd, _pause_behind(data)):
                data += more
        return data

    def add(self, line: bytes) -> None:
        self._keys += line

    def hand_over(self) -> None:
        """To the prompt: into the one that stands there, else into `kept`. No line of it is sent by itself."""
        text = typed_text(bytes(self._keys))
        self._keys.clear()
        if text and not insert_typed(text):
            self.kept += text

    def take_kept(self) -> str:
        text, self.kept = self.kept, ""
        return text


def _pause_behind(keys: bytes) -> float:
    """Seconds within which more is a part of these keys: a paste goes on to its end."""
    if keys.rfind(PASTE_BEGINS) > keys.rfind(PASTE_ENDS):
        return PAUSE
    return PASTE if keys[-1:] in (b"\r", b"\n") else QUIET


async def read_within(fd: int, seconds: float | None) -> bytes:
    """The next keys; nothing if none comes within that time (None: it waits). Raises OSError if the terminal has gone."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await asyncio.wait_for(ready.wait(), seconds)
    except TimeoutError:
        return b""
    finally:
        loop.remove_reader(fd)
    data = os.read(fd, 4096)
    if not data:
        raise OSError("the terminal has gone")
    return data
