"""How the terminal hands over what is typed: in lines that it shows (for a question), or not shown and kept for later (while an
answer runs, so that nothing typed meanwhile spoils the output; the chat's prompt finds it then)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext


@contextmanager
def input_mode(fd: int, lines: bool) -> Iterator[None]:
    """Change it for the block, if `fd` is a terminal. Ctrl-C and Ctrl-Z work in both; Ctrl-C throws away what was typed at a
    question, and nothing else."""
    import termios

    try:
        before = termios.tcgetattr(fd)
    except termios.error:
        yield
        return
    shown = termios.ICANON | termios.ECHO
    keep = termios.NOFLSH
    local = (before[3] | shown) & ~keep if lines else before[3] & ~shown | keep
    termios.tcsetattr(fd, termios.TCSADRAIN, [*before[:3], local, *before[4:]])
    try:
        yield
    finally:
        try:
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
        except termios.error:
            pass  # the terminal has gone


@contextmanager
def foreground_group(fd: int, group: int) -> Iterator[None]:
    """The terminal's foreground is another process group for the block; nothing changes if that has gone."""
    import signal
    from contextlib import suppress

    def give(to: int) -> None:
        # from the background this would stop us
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
        try:
            with suppress(OSError):
                os.tcsetpgrp(fd, to)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    give(group)
    try:
        yield
    finally:
        give(os.getpgrp())


def discard_typed(fd: int) -> None:
    """What was typed before a question was there is no answer to it."""
    import termios

    try:
        termios.tcflush(fd, termios.TCIFLUSH)
    except termios.error:
        pass  # no real terminal


def hide_prompt() -> AbstractAsyncContextManager[None]:
    """A prompt of the line editor, if one stands on the terminal, goes away for the block, with what is typed in it."""
    editor = sys.modules.get("prompt_toolkit.application")
    return nullcontext() if editor is None else editor.in_terminal()


def read_typed(fd: int) -> str:
    """What was typed up to now and nobody has read: its lines, without keys that are no text; "" if there is nothing."""
    import select

    data = b""
    try:
        while select.select([fd], [], [], 0)[0] and (more := os.read(fd, 4096)):
            data += more
    except OSError:
        pass  # the terminal has gone
    return _text(data.decode("utf-8", "replace").replace("\r", "\n"))


def _text(keys: str) -> str:
    import re

    text = ""
    for key in re.sub(r"\x1b(\[[0-9;]*[@-~]|O.|.)?", "", keys):
        if key in "\x7f\b":
            text = text[:-1]
        elif key == "\n" or key.isprintable():
            text += key
    return text.rstrip("\n")
