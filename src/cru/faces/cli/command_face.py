"""What the command line does for commands (`/name`): a turn's trace, and in the chat pausing, leaving and the Tab key."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import Protocol

from cru.core.command_table import COMMANDS
from cru.core.commands.context import ChatPort, NoFace
from cru.core.commands.errors import NotHere
from cru.core.conversations.store import FileContext
from cru.core.turn.commands import CommandResult
from cru.faces.cli.clipboard import copy_text
from cru.faces.cli.console import takes_escapes
from cru.faces.cli.trace.command import render_turn

KEYS = """\
Enter        sends what you typed           Up, Down   what you typed before
Alt-Enter    a new line in it; so do        Ctrl-R     searches there
             Ctrl-J, and \\ before Enter    Ctrl-G     opens it in your editor
Tab          completes a command            Shift-Tab  changes the mode
Esc, Ctrl-C  stop an answer                 Esc Esc    writes /undo
Ctrl-C       clears the line; twice: leaves
Ctrl-Z       stops cru until `fg`           Ctrl-D     leaves; all is kept
@file        names a file, and completes    !command   runs it, tells the model
What you enter while an answer runs waits in sight and is sent after it; Up
takes the last of it back. A space before a slash or ! makes a prompt of it."""


class ThemeChoice(Protocol):
    """The themes of a chat. change: what `/theme` says; raises CommandError."""

    def names(self) -> list[str]: ...
    def change(self, words: str) -> str: ...


class CliFace(NoFace):
    """A run that asks once."""

    def __init__(self, store: FileContext) -> None:
        self._store = store

    @property
    def draws(self) -> bool:
        """On a terminal that can."""
        return sys.stdin.isatty() and takes_escapes(1)

    @property
    def columns(self) -> int:
        """Those of standard output."""
        try:
            return os.get_terminal_size(1).columns
        except OSError:
            return 0

    async def copy(self, text: str) -> str:
        return await copy_text(text)

    def trace(self, number: int) -> str:
        return render_turn(self._store, number)


class ChatFace(CliFace):
    """The chat."""

    keys = KEYS

    def __init__(
        self,
        store: FileContext,
        suspend: Callable[[str], Awaitable[None]],
        leave: Callable[[], None],
        login: Callable[[str], Awaitable[str]],
        resume: Callable[[], None],
        themes: ThemeChoice | None,
        reopen: Callable[[str, str], None],
        run_in_shell: Callable[[str, str], Awaitable[CommandResult]],
    ) -> None:
        super().__init__(store)
        self._reopen, self._run_in_shell = reopen, run_in_shell
        self._themes = themes
        self._suspend, self._leave, self._login, self._resume = suspend, leave, login, resume

    @property
    def chat(self) -> ChatPort:
        return self

    def theme(self, words: str) -> str:
        if self._themes is None:
            raise NotHere("/theme works on a terminal with colours", COMMANDS["theme"].instead)
        return self._themes.change(words)

    def theme_names(self) -> list[str]:
        return [] if self._themes is None else self._themes.names()

    async def login(self, words: str) -> str:
        return await self._login(words)

    async def pause(self) -> None:
        await self._suspend("/pause")

    def leave(self) -> None:
        self._leave()

    def resume(self) -> None:
        self._resume()

    def reopen(self, flag: str, value: str) -> None:
        self._reopen(flag, value)

    async def run_in_shell(self, name: str, words: str) -> CommandResult:
        return await self._run_in_shell(name, words)
