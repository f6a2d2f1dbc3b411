"""The chat's greeting and prompt, drawn before anything of the chat is loaded. Whatever is typed meanwhile waits for the line editor."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager

from cru.faces.cli.console import ERASE_LINE, draw_prompt, erase_prompt, is_dumb_terminal, say, write_error
from cru.faces.cli.terminal.keyboard import (
    LEAVE_PASTE,
    MARK_PASTE,
    has_typed,
    input_mode,
    read_typed_lines,
    restore_mode,
)

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

GREETING = "{where} Ctrl-C stops, Ctrl-D leaves, /help says more."
WHERE, UNKEPT = "cru in the context {name}.", "cru: nothing of this chat is kept."
PROMPT = "> "


@contextmanager
def hide_typing() -> Iterator[None]:
    """Hide what is typed while the chat starts; the prompt shows it. A signal that ends the process restores the terminal."""

    def end(number: int, _frame: FrameType | None) -> None:
        restore_mode()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)
    with _hiding:
        _hiding.enter_context(input_mode(0, "unshown"))
        yield


_hiding = ExitStack()


class FirstPrompt:
    """Drawn for the block. Its end gives the terminal back, unless `close` did so before.

    typed: what was typed before the block, up to its last Enter or Ctrl-D; what came after it is still to be read
    waits: whether some of that had come before keys were handed over one by one: its Enter, if there is one, is a newline
    """

    def __init__(self, context: str, is_kept: bool = True) -> None:
        self.typed, self.waits = b"", False
        self._where = WHERE.format(name=context) if is_kept else UNKEPT
        self._terminal = ExitStack()

    def __enter__(self) -> FirstPrompt:
        try:
            self._draw()
        except BaseException:  # a signal in the middle of it, too
            self.close()
            raise
        return self

    def _draw(self) -> None:
        _raise_at_signals()
        self.typed = read_typed_lines(0)
        self._terminal.enter_context(input_mode(0, "keys"))
        _hiding.close()  # so that the end of the prompt restores the terminal as it was found
        self.waits = has_typed(0)
        if self.waits:  # the beginning of a line, which the terminal showed
            write_error(ERASE_LINE)
        say(GREETING.format(where=self._where))
        if not is_dumb_terminal():
            self._terminal.callback(write_error, LEAVE_PASTE)
            self._terminal.callback(erase_prompt)
            draw_prompt(f"{MARK_PASTE}{PROMPT}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._terminal.close()


def _raise_at_signals() -> None:
    """Signals that end the process before the event loop has handlers of its own go through its `finally` blocks."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
