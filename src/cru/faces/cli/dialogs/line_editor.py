"""One dialog's hold on the terminal: printing, and a line that can be edited. Loads prompt_toolkit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.filters import Condition
from prompt_toolkit.input.typeahead import clear_typeahead, get_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from cru.core.api.dialogs.port import hand_over_control
from cru.faces.cli.terminal.keyboard import insert_typed, typed_text
from cru.faces.cli.terminal.size import terminal_size

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent

    from cru.faces.cli.dialogs.choices import Selection

# Seconds to wait after Esc for the rest of an arrow key's sequence, and of a combination with Alt.
SEQUENCE, COMBINATION = 0.05, 0.2
# A second Ctrl-C within so many seconds means the turn: a plugin may ask again and again.
INSISTING = 2.0


class LineEditor:
    """The terminal `fd`; its size may change. Raises OSError when it has gone."""

    _interrupted: ClassVar[float] = -INSISTING

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._output = open(fd, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115  it is not ours to close
        keyboard = Vt100Input(open(fd, encoding="utf-8", errors="replace", closefd=False))  # noqa: SIM115
        clear_typeahead(keyboard)
        # It need not ask where the cursor is: an answer that comes late would be read as typed.
        screen = Vt100_Output(
            self._output, partial(terminal_size, fd), term=os.environ.get("TERM"), enable_cpr=False,
            default_color_depth=ColorDepth.from_env(),
        )  # fmt: skip
        self.keyboard, self.screen = keyboard, screen
        self._lines: PromptSession[str | None] = PromptSession(input=keyboard, output=screen, key_bindings=_keys())
        self._lines.app.ttimeoutlen, self._lines.app.timeoutlen = SEQUENCE, COMBINATION

    @property
    def rows(self) -> int:
        return terminal_size(self.fd).rows

    @property
    def columns(self) -> int:
        return terminal_size(self.fd).columns

    def write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()

    def hand_over(self) -> None:
        """What was typed behind the end of a dialog goes into the prompt that stood there before, if there is one."""
        keys = "".join(press.data for press in get_typeahead(self.keyboard))
        if text := typed_text(keys.encode("utf-8", "replace")):
            insert_typed(text)

    async def read(self, hint: str, default: str = "", *, hidden: bool = False) -> str | None:
        """What is typed behind the hint up to Enter, `default` edited; None for Esc, Ctrl-C and Ctrl-D. hidden: stars are shown instead."""
        try:
            return await self._lines.prompt_async(
                f"  {hint} > ",
                default=default,
                set_exception_handler=False,
                handle_sigint=False,
                is_password=hidden,
            )
        except EOFError:
            raise OSError("the terminal has gone") from None

    async def pick(
        self,
        message: Callable[[], StyleAndTextTuples],
        keys: KeyBindings,
        typed: Callable[[Buffer], None],
        is_hidden: Callable[[str], bool],
    ) -> Selection | None:
        """What the keys end it with; None as of `read`. It goes away then. typed: hears of each change of what is typed;
        is_hidden: of which text stars are shown instead"""
        session: PromptSession[Selection | None] = PromptSession(
            message,
            input=self.keyboard,
            output=self.screen,
            key_bindings=merge_key_bindings([_keys(), keys]),
            erase_when_done=True,
            is_password=Condition(lambda: is_hidden(session.default_buffer.text.strip())),
        )
        session.app.ttimeoutlen, session.app.timeoutlen = SEQUENCE, COMBINATION
        session.default_buffer.on_text_changed += typed
        try:
            return await session.prompt_async(set_exception_handler=False, handle_sigint=False)
        except EOFError:
            raise OSError("the terminal has gone") from None


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape")
    @keys.add("c-d")
    def _cancel(event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    @keys.add("c-c")
    def _interrupt(event: KeyPressEvent) -> None:
        before, LineEditor._interrupted = LineEditor._interrupted, time.monotonic()
        if LineEditor._interrupted - before < INSISTING:
            os.kill(os.getpid(), signal.SIGINT)
        event.app.exit(result=None)

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        async def stop() -> None:
            async with in_terminal(), hand_over_control("SIGTSTP", "SIGCONT"):
                os.kill(os.getpid(), signal.SIGSTOP)

        event.app.create_background_task(stop())

    return keys
