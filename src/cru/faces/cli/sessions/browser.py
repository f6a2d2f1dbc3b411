"""The list of conversations on a terminal: filtered as one types, with the last messages of the one that is pointed at, and keys that
act on it. Loads prompt_toolkit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings

from cru.core.base.values.errors import CruError
from cru.core.commands.forks import describe_fork, parse_fork
from cru.faces.cli.console import cut_to_columns, printable
from cru.faces.cli.dialogs.choices import Choices, Selection
from cru.faces.cli.dialogs.line_editor import LineEditor
from cru.faces.cli.dialogs.list_dialog import ListPicker
from cru.faces.cli.sessions.fork import fork_conversation
from cru.faces.cli.sessions.rows import PREVIEWED, SessionRow, when_text

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent

    from cru.core.conversations.home import Home

KEYS = {"c-f": "fork", "c-r": "rename", "c-a": "archive", "c-x": "delete"}
HINT = "Enter opens, ^F forks, ^R renames, ^A archives, ^X deletes"


class SessionPicker(ListPicker):
    """The list while it is on the terminal; `action` is what the key was for that ended it."""

    def __init__(self, line: LineEditor, rows: Sequence[SessionRow], at: int) -> None:
        labels = tuple(f"{'* ' if row.is_current else ''}{row.name}" for row in rows)
        super().__init__(line, Choices(labels, tuple(map(_about, rows)), marked=(at,)), "")
        self._rows = rows
        self.action = "open"

    def below(self) -> StyleAndTextTuples:
        """The last messages of the conversation that is pointed at; always as many lines."""
        row = self._rows[self._shown[self._at]] if self._shown else None
        texts = [] if row is None else [f"{'>' if role == 'user' else ' '} {text}" for role, text in row.preview]
        lines = [*texts, *[""] * (PREVIEWED - len(texts))]
        columns = max(self._line.columns - 5, 10)
        return [("fg:ansibrightblack", f"    {cut_to_columns(text, columns)}".rstrip() + "\n") for text in lines]

    def keys(self) -> KeyBindings:
        keys = super().keys()
        for key, action in KEYS.items():
            self._bind_action(keys, key, action)
        return keys

    def _bind_action(self, keys: KeyBindings, key: str, action: str) -> None:
        @keys.add(key, eager=True)
        def _act(event: KeyPressEvent) -> None:
            if self._shown:
                self.action = action
                event.app.exit(result=Selection((self._shown[self._at],)))

    def _hint(self) -> str:
        return HINT if self._line.columns > len(HINT) + 20 else "Enter opens, Esc leaves"


def _about(row: SessionRow) -> str:
    state = f"[{row.state()}] " if row.state() else ""
    return f"{when_text(row.used)}  {row.counted()}  {state}{row.first}"


class SessionBrowser:
    """The dialog. read: the conversations as they are now; archive: carries it out. Raises OSError if the terminal has gone."""

    def __init__(
        self, fd: int, home: Home, read: Callable[[], list[SessionRow]], archive: Callable[[str], object]
    ) -> None:
        self._line = LineEditor(fd)
        self._home, self._read, self._archive = home, read, archive

    async def choose(self) -> str:
        """The name of the conversation to open; "" if the person left."""
        at = 0
        while rows := self._read():
            picker = SessionPicker(self._line, rows, min(at, len(rows) - 1))
            chosen = await self._line.pick(picker.message, picker.keys(), picker.take_typed, lambda _typed: False)
            if chosen is None:
                return ""
            at = chosen.selected[0]
            if picker.action == "open":
                return rows[at].name
            try:
                await self._act(picker.action, rows[at].name)
            except CruError as error:
                self._say("\n  ".join([error.message, *error.hint.splitlines()]))
        self._say("no conversation is left")
        return ""

    async def _act(self, action: str, name: str) -> None:
        if action == "fork":
            await self._fork(name)
        elif action == "rename":
            new = await self._line.read(f"rename {name} to", name)
            if new and new.strip() != name:
                self._home.rename(name, new.strip())
                self._say(f"{name} is called {new.strip()} now")
        elif await self._confirms(action, name):
            if action == "archive":
                self._archive(name)
            else:
                self._home.delete(name)
                self._say("\n  ".join([f"{name} is deleted", *self._home.failed_removals]))

    async def _fork(self, name: str) -> None:
        typed = await self._line.read(f"fork {name} behind turn (Enter: the last one)")
        if typed is None:
            return
        turn, new = parse_fork(typed.split())
        self._say(describe_fork(name, fork_conversation(self._home, name, turn, new)))

    async def _confirms(self, action: str, name: str) -> bool:
        what = "with all its files" if action == "delete" else "(it starts from nothing, the log is kept)"
        typed = await self._line.read(f"{action} {name} {what}? y/N")
        if (typed or "").strip().lower() in ("y", "yes"):
            return True
        self._say("nothing was changed")
        return False

    def _say(self, text: str) -> None:
        self._line.write(f"  {printable(text)}\n")
