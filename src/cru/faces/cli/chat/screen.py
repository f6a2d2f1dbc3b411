"""The chat's screen: finished things go into the terminal's scrollback once; below them stand the live region, the input and a status line.
Loads prompt_toolkit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial

from msgspec import Struct
from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input, raw_mode
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import BaseStyle
from prompt_toolkit.widgets import SearchToolbar

from cru.core.compose.chat_settings import ChatKeys
from cru.faces.cli.chat.completion import reference
from cru.faces.cli.chat.first_prompt import PROMPT
from cru.faces.cli.chat.hidden_marks import HiddenMarks
from cru.faces.cli.chat.keys import KeyActions, chat_keys
from cru.faces.cli.chat.pastes import Pastes
from cru.faces.cli.console import one_line, printable, set_printer, write_error
from cru.faces.cli.terminal.live import LiveRegion
from cru.faces.cli.terminal.size import fit, terminal_size

BUSY_PROMPT = "… "
"""While the model works: what is entered waits in the queue."""
FRAME = 1 / 30
"""Seconds after which a change of the live region is drawn, with all that come meanwhile; a key is drawn at once."""
SEQUENCE, COMBINATION = 0.05, 0.2
"""Seconds to wait after Esc for the rest of a key's sequence, and of a combination with Alt."""
BEGIN_UPDATE, END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"
"""What stands between them appears at once (synchronized output; terminals that do not know it ignore it)."""
MENU_ROWS = 8
SIGNALS = termios.ISIG | termios.NOFLSH


class ChatInput(Vt100Input):
    """Keys as they are pressed. While the model works Ctrl-C and Ctrl-Z are signals, which are heard while the event loop stands still;
    else they are keys as the others, in their order."""

    def __init__(self) -> None:
        super().__init__(sys.stdin)
        self._has_signals = self._had_lines = False

    def raw_mode(self) -> AbstractContextManager[None]:
        return _RawWithSignals(self._fileno) if self._has_signals else raw_mode(self._fileno)

    def cooked_mode(self) -> AbstractContextManager[None]:
        self.expect_lines()
        return super().cooked_mode()

    def expect_lines(self) -> None:
        """What is read next was typed while the terminal handed over lines."""
        self._had_lines = True

    def set_signals(self, on: bool, is_raw: bool) -> None:
        """`is_raw`: the terminal is in raw mode already; else `raw_mode` will heed it."""
        self._has_signals = on
        if is_raw:
            with contextlib.suppress(termios.error):  # the terminal has gone
                mode = termios.tcgetattr(self._fileno)
                mode[3] = mode[3] | SIGNALS if on else mode[3] & ~SIGNALS
                termios.tcsetattr(self._fileno, termios.TCSANOW, mode)

    def read_keys(self) -> list[KeyPress]:
        """What waits behind a time in which the terminal handed over lines may have an Enter of that time, which is Ctrl-J now."""
        keys, had_lines = super().read_keys(), self._had_lines
        self._had_lines = False
        return [KeyPress(Keys.Enter) if had_lines and press.key == Keys.ControlJ else press for press in keys]


class _RawWithSignals(raw_mode):
    @classmethod
    def _patch_lflag(cls, attrs: int) -> int:
        return super()._patch_lflag(attrs) | SIGNALS


class ChatActions(Struct, frozen=True):
    """What the screen asks of the chat.

    status: the text of the status line
    interrupt: what Ctrl-C does, and Esc while the model works
    suspend: what Ctrl-Z does
    next_mode: what Shift-Tab does
    mark_image: what stands for an image whose path was pasted, "" if it is none
    paste_image: what stands for the clipboard's image, "" if there is none
    style: what it is drawn with
    do_at_once: of what is entered while the model works does what does not wait; whether it did
    """

    status: Callable[[], str]
    interrupt: Callable[[], None]
    suspend: Callable[[], Awaitable[None]]
    next_mode: Callable[[], None]
    do_at_once: Callable[[str], bool]
    mark_image: Callable[[str], str]
    paste_image: Callable[[], Awaitable[str]]
    style: BaseStyle


class ChatScreen:
    """A `Screen` for the whole chat. It draws on stderr, so that standard output holds nothing but answers."""

    def __init__(
        self, history: History, completer: Completer, live: LiveRegion, actions: ChatActions, settings: ChatKeys
    ) -> None:
        self._live, self._actions, self._pastes = live, actions, Pastes()
        self._arrived = asyncio.Event()
        self._is_busy = self._has_ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[Callable[[], object]] = []
        self.buffer = Buffer(
            history=history, completer=completer, complete_while_typing=Condition(self._is_in_reference), multiline=True
        )
        keys = chat_keys(
            KeyActions(
                self._enter,
                self._take_last,
                self._paste,
                self._remove_paste,
                self._paste_image,
                self._open_editor,
                self._open_undo,
                self.end_input,
                actions.interrupt,
                actions.suspend,
                actions.next_mode,
            ),
            Condition(lambda: self._is_busy),
            Condition(lambda: not self.buffer.text),
            settings,
        )
        # It need not ask where the cursor is: each print would wait for the terminal's answer.
        output = Vt100_Output(
            sys.stderr, partial(terminal_size, 2), term=os.environ.get("TERM"), enable_bell=False, enable_cpr=False,
            default_color_depth=ColorDepth.from_env(),
        )  # fmt: skip
        self._input = ChatInput()
        self._app: Application[None] = Application(
            self._layout(), style=actions.style, key_bindings=keys, input=self._input, output=output,
            erase_when_done=True,
        )  # fmt: skip
        self._app.ttimeoutlen, self._app.timeoutlen = SEQUENCE, COMBINATION

    def _layout(self) -> Layout:
        search = SearchToolbar()
        control = BufferControl(
            self.buffer,
            search_buffer_control=search.control,
            preview_search=True,
            input_processors=[HiddenMarks()],
        )
        live = Window(FormattedTextControl(self._live_text), dont_extend_height=True)
        field = Window(
            control, wrap_lines=True, dont_extend_height=True, height=self._field_height, get_line_prefix=self._mark
        )
        menu = Float(CompletionsMenu(max_height=MENU_ROWS, scroll_offset=1), xcursor=True, ycursor=True)
        status = Window(FormattedTextControl(self._status_text), height=1, dont_extend_height=True)
        return Layout(
            HSplit([
                ConditionalContainer(live, Condition(lambda: bool(self._live_text()))),
                FloatContainer(field, [menu]),
                search,
                ConditionalContainer(status, Condition(lambda: bool(self._actions.status()))),
            ]),
            field,
        )  # fmt: skip

    def _mark(self, line: int, wraps: int) -> StyleAndTextTuples:
        """What stands before each line of the input."""
        return [("class:mark", "  " if line or wraps else BUSY_PROMPT if self._is_busy else PROMPT)]

    def _field_height(self) -> int | None:
        """Room for the menu of completions, while it stands there."""
        return MENU_ROWS if self.buffer.complete_state is not None else None

    def _live_text(self) -> StyleAndTextTuples:
        size = terminal_size(2)
        lines = self._live.lines(size.columns, size.rows)
        return [(style, line if at == 0 else f"\n{line}") for at, (style, line) in enumerate(lines)]

    def _status_text(self) -> StyleAndTextTuples:
        return [("class:status", fit(one_line(self._actions.status()), terminal_size(2).columns))]

    def _is_in_reference(self) -> bool:
        return reference(self.buffer.document) is not None

    def take_keys(self, keys: bytes, waits: bool) -> None:
        """Keys that were pressed before it was there. `waits`: more of them are to be read, and may come as a line."""
        if waits:
            self._input.expect_lines()
        presses: list[KeyPress] = []
        Vt100Parser(presses.append).feed_and_flush(keys.decode("utf-8", "replace"))
        store_typeahead(self._app.input, presses)

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """It stands on the terminal for the block."""
        running = asyncio.create_task(self._run())
        self._live.changed = self._draw_soon
        set_printer(self.print_above)
        try:
            yield
        finally:
            set_printer(None)
            if self._app.is_running:
                self._app.exit()
            await running

    def _draw_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FRAME, self._draw)

    def _draw(self) -> None:
        self._timer = None
        self._app.invalidate()

    async def _run(self) -> None:
        clock = asyncio.create_task(self._tick())
        try:
            # a terminal that has gone ends it
            with contextlib.suppress(EOFError):
                await self._app.run_async(set_exception_handler=False, handle_sigint=False)
        finally:
            clock.cancel()
            if self._timer is not None:
                self._timer.cancel()
            self.end_input()

    async def _tick(self) -> None:
        """Clocks go on once a second; nothing happens while nothing runs."""
        while True:
            await asyncio.sleep(1.0)
            if self._live.is_busy:
                self._app.invalidate()

    # input ----------------------------------------------------------------------------------------------------------------------------

    async def next_prompt(self) -> str | None:
        """What was entered next; None at the end of input, from then on always."""
        while not self._live.queue:
            if self._has_ended:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._live.queue.pop(0)

    def begin_turn(self, text: str) -> None:
        """The model works, on that prompt if there is one: it goes into the scrollback."""
        self._set_busy(True)
        if text:
            shown = "\n  ".join(printable(self._pastes.fold_again(text)).split("\n"))
            self.print_above(lambda: write_error(f"{PROMPT}{shown}\n"))
        self._app.invalidate()

    def end_turn(self) -> None:
        self._set_busy(False)
        self.print_above(_nothing)

    def _set_busy(self, is_busy: bool) -> None:
        self._is_busy = is_busy
        self._input.set_signals(is_busy, self._has_keyboard())

    def _has_keyboard(self) -> bool:
        """Whether no question has the terminal."""
        return self._app.is_running and not self._app._running_in_terminal

    def read_pressed(self) -> None:
        """Take in the keys that were pressed up to now: a signal overtakes them."""
        if self._has_keyboard():
            self._app.key_processor.feed_multiple(self._app.input.read_keys())
            self._app.key_processor.process_keys()

    def take_back(self) -> None:
        """What waits in the queue is put into the input again."""
        if self._live.queue:
            waiting = [self._pastes.fold_again(text) for text in self._live.queue]
            self._set_input("\n".join([*waiting, *([self.buffer.text] if self.buffer.text else [])]))
            self._live.queue.clear()

    def _set_input(self, text: str) -> None:
        self.buffer.text, self.buffer.cursor_position = text, len(text)

    def clear_input(self) -> bool:
        """Empty the input; whether there was something in it."""
        had_text = bool(self.buffer.text or self._live.queue)
        self.take_back()
        self.buffer.reset()
        self._app.invalidate()
        return had_text

    def _enter(self) -> None:
        text = self._pastes.unfold(self.buffer.text)
        if text.strip() and text not in self.buffer.history.get_strings()[-1:]:
            self.buffer.history.append_string(text)
        self.buffer.reset()
        if text.strip() and not (self._is_busy and self._actions.do_at_once(text)):
            self._live.queue.append(text)
            self._arrived.set()

    def _take_last(self) -> bool:
        """Put the last prompt that waits into the input, if that is empty; whether it did."""
        if self.buffer.text or not self._live.queue:
            return False
        self._set_input(self._pastes.fold_again(self._live.queue.pop()))
        return True

    def _paste(self, text: str) -> None:
        mark = self._actions.mark_image(text)
        self.buffer.insert_text(self._pastes.keep(mark) if mark else self._pastes.fold(text))

    def _paste_image(self) -> None:
        async def insert() -> None:
            if mark := await self._actions.paste_image():
                self.buffer.insert_text(self._pastes.keep(mark))

        self._app.create_background_task(insert())

    def _remove_paste(self) -> bool:
        mark = self._pastes.mark_before(self.buffer.document.text_before_cursor)
        self.buffer.delete_before_cursor(len(mark))
        return bool(mark)

    def _open_editor(self) -> None:
        """With all of what was pasted."""
        self._set_input(self._pastes.unfold(self.buffer.text))
        self.buffer.open_in_editor()

    def _open_undo(self) -> None:
        self._set_input("/undo")

    def end_input(self) -> None:
        """As Ctrl-D: what waits is still sent."""
        self._has_ended = True
        self._arrived.set()

    # output ---------------------------------------------------------------------------------------------------------------------------

    def print_above(self, work: Callable[[], object]) -> None:
        """Let `work` print above the screen, from the beginning of a line to the end of one. It waits while a question has the terminal."""
        self._waiting.append(work)
        if not self._app.is_running:
            self._print_waiting()
        elif self._app._running_in_terminal:
            if len(self._waiting) == 1:
                run_in_terminal(self._print_waiting)
        else:
            self._redraw_after(self._print_waiting)

    def _print_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for work in waiting:
            work()

    def _redraw_after(self, work: Callable[[], object]) -> None:
        output = self._app.output
        output.write_raw(BEGIN_UPDATE)
        self._app.renderer.erase()
        try:
            work()
        finally:
            self._app._redraw()
            output.write_raw(END_UPDATE)
            output.flush()


def _nothing() -> None:
    """What is on the screen is drawn anew."""
