"""How the terminal hands over what is typed: in lines that it shows (for a question), or not shown and kept for later (while an
answer runs, so that nothing typed meanwhile spoils the output; the chat's prompt finds it then)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def typing(fd: int, lines: bool) -> Iterator[None]:
    """Change it for the block, if `fd` is a terminal. Ctrl-C and Ctrl-Z work in both."""
    import termios

    try:
        before = termios.tcgetattr(fd)
    except termios.error:
        yield
        return
    shown = termios.ICANON | termios.ECHO
    local = before[3] | shown if lines else before[3] & ~shown
    termios.tcsetattr(fd, termios.TCSADRAIN, [*before[:3], local, *before[4:]])
    try:
        yield
    finally:
        try:
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
        except termios.error:
            pass  # the terminal has gone
