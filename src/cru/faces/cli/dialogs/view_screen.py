"""A plugin's view on the terminal: drawn in its place until it is closed, with the keys that are its own. Loads prompt_toolkit."""

from __future__ import annotations

import asyncio
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from cru.core.base.values.oil.layout import is_moving, lay_out
from cru.core.base.values.oil.model import OilNode, OilStyle
from cru.core.plugins.views import OpenView, ViewFailed
from cru.faces.cli.dialogs.line_editor import COMBINATION, SEQUENCE, LineEditor
from cru.faces.cli.oil.drawing import draw

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent

HINT = "Esc closes"
FRAME = 0.1
"""Seconds between two pictures of a spinner."""
CLOSING = ("escape", "ctrl-c", "ctrl-d")
NAMES = {"c-m": "enter", "c-i": "tab", "c-h": "backspace", "s-tab": "shift-tab", " ": "space"}
COLOURS = {
    "black": "ansiblack", "red": "ansired", "green": "ansigreen", "yellow": "ansiyellow", "blue": "ansiblue", "magenta": "ansimagenta",
    "cyan": "ansicyan", "white": "ansiwhite", "gray": "ansigray", "darkgray": "ansibrightblack", "reset": "default",
}  # fmt: skip


async def show_view(line: LineEditor, opened: OpenView) -> dict[str, object]:
    """Until it is closed; {"problem"} tells why it closed by itself. What it showed last stays in the scrollback."""
    line.write(f"{opened.view.name}\n")
    screen = ViewScreen(line, opened)
    problem = await screen.run()
    if screen.view is not None:
        line.write(f"{draw(screen.view, line.fd)}\n")
    return {"problem": problem} if problem else {}


def key_name(key: Keys | str) -> str:
    """What a handler gets: the character, or the name of the key (`up`, `enter`, `ctrl-x`)."""
    name = key.value if isinstance(key, Keys) else key
    name = NAMES.get(name, name)
    return f"ctrl-{name[2:]}" if name.startswith("c-") else name


class ViewScreen:
    """view: what it showed last"""

    def __init__(self, line: LineEditor, opened: OpenView) -> None:
        self.view: OilNode | None = None
        self._line, self._opened = line, opened
        self._frame = 0
        self._moves = asyncio.Event()
        self._size = (0, 0)
        self._keys: asyncio.Queue[KeyPress | None] = asyncio.Queue()
        self._app: Application[None] = Application(
            Layout(Window(FormattedTextControl(self._text, show_cursor=False), dont_extend_height=True)),
            key_bindings=self._bindings(), input=line.keyboard, output=line.screen, erase_when_done=True,
        )  # fmt: skip
        self._app.ttimeoutlen, self._app.timeoutlen = SEQUENCE, COMBINATION

    async def run(self) -> str:
        """Why it closed by itself; "" if the person or the plugin closed it. Raises OSError if the terminal has gone."""
        self._opened.changed = lambda: self._keys.put_nowait(None)
        working = asyncio.ensure_future(self._work())
        clock = asyncio.ensure_future(self._tick())
        try:
            with suppress(EOFError):
                await self._app.run_async(set_exception_handler=False, handle_sigint=False)
        finally:
            clock.cancel()
            working.cancel()
            self.give_back()
            await asyncio.wait([working, clock])
        if working.cancelled():
            return ""
        error = working.exception()
        if isinstance(error, ViewFailed):
            return f"{error.message}{f'; {error.hint}' if error.hint else ''}"
        if error is not None:
            raise error
        return ""

    async def _work(self) -> None:
        """One key after the other; drawn anew behind each. Raises ViewFailed."""
        try:
            while not self._opened.is_closed:
                self._size = size = (self._line.columns, self._line.rows)
                with self._signals():
                    self.view = await self._opened.draw(size[0], max(size[1] - 3, 1))
                (self._moves.set if is_moving(self.view) else self._moves.clear)()
                self._app.invalidate()
                press = await self._keys.get()
                if press is None:
                    continue
                with self._signals():
                    is_taken = await self._opened.press(key_name(press.key))
                if press.key == "q" and not is_taken:
                    return
        finally:
            self._close()

    def give_back(self) -> None:
        """Keys that nobody has looked at are for whoever reads next."""
        presses = [self._keys.get_nowait() for _ in range(self._keys.qsize())]
        later = get_typeahead(self._line.keyboard)
        store_typeahead(self._line.keyboard, [*(press for press in presses if press is not None), *later])

    def _close(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    async def _tick(self) -> None:
        """A spinner moves; nothing happens while there is none."""
        while True:
            await self._moves.wait()
            await asyncio.sleep(FRAME)
            self._frame += 1
            self._app.invalidate()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C is a signal while the plugin works: it is heard while the event loop stands still."""
        try:
            before = termios.tcgetattr(self._line.fd)
        except termios.error:
            yield
            return
        termios.tcsetattr(
            self._line.fd, termios.TCSANOW, [*before[:3], before[3] | termios.ISIG | termios.NOFLSH, *before[4:]]
        )
        try:
            yield
        finally:
            with suppress(termios.error):
                now = termios.tcgetattr(self._line.fd)
                termios.tcsetattr(self._line.fd, termios.TCSANOW, [*now[:3], now[3] & ~termios.ISIG, *now[4:]])

    def _text(self) -> StyleAndTextTuples:
        if self.view is None:
            return [("", "…")]
        size = (self._line.columns, self._line.rows)
        if size != self._size:
            self._size = size
            self._keys.put_nowait(None)
        columns, rows = size[0], max(size[1] - 3, 1)
        lines = lay_out(self.view, columns - 1, rows, self._frame)
        parts: StyleAndTextTuples = []
        for row in lines[:rows]:
            parts += [(prompt_style(span.style), span.text) for span in row]
            parts.append(("", "\n"))
        rest = len(lines) - rows
        more = f"… {rest} more lines, " if rest > 0 else ""
        return [*parts, ("fg:ansibrightblack", f"{more}{HINT}")]

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add(Keys.Any)
        @keys.add("<sigint>")
        @keys.add("escape")
        def _press(event: KeyPressEvent) -> None:
            for press in event.key_sequence:
                name = key_name(press.key)
                if name in CLOSING or name == "<sigint>":
                    self._close()
                    return
                self._keys.put_nowait(press)

        @keys.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            for char in event.data:
                self._keys.put_nowait(KeyPress(Keys.Enter if char in "\r\n" else char, char))

        return keys


def prompt_style(style: OilStyle) -> str:
    """The style as prompt_toolkit writes it; it knows which colours the terminal has."""
    colours = [
        f"{name}:{COLOURS.get(colour, colour)}" for name, colour in (("fg", style.fg), ("bg", style.bg)) if colour
    ]
    flags = [name for name in ("bold", "dim", "italic", "underline", "reverse") if getattr(style, name)]
    return " ".join([*colours, *flags])
