"""What built-in commands work with: the session, its models, and the face that the user sits at."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from cru.core.commands.errors import NotHere
from cru.core.turn.commands import Command
from cru.core.turn.model_pool import ModelPool
from cru.core.turn.session import Session

if TYPE_CHECKING:
    from cru.core.plugins.manager import Extensions


class Face(Protocol):
    """What only a face can do. `keys` explains the keys, "" if there are none to explain. `draws`: it shows views that change.
    `columns`: of the terminal that shows what a command says, 0 if none does."""

    keys: str

    @property
    def draws(self) -> bool: ...

    @property
    def columns(self) -> int: ...

    def trace(self, number: int) -> str:
        """What happened in a turn (1 = the oldest, -1 = the last)."""
        ...

    async def pause(self) -> None:
        """Hand control to whoever started cru. Raises NotHere."""
        ...

    def leave(self) -> None:
        """End the chat. Raises NotHere."""
        ...

    def reopen(self, flag: str, value: str) -> None:
        """End the chat, carry out this flag, and open a chat again. Raises NotHere."""
        ...

    async def copy(self, text: str) -> str:
        """Put a text into the clipboard; what came of it. Raises NotHere."""
        ...

    def commands(self) -> Iterable[Command]:
        """Commands that only this face has."""
        ...

    def resume(self) -> None:
        """Go on with the turn that was left in its middle, behind this command. Raises NotHere."""
        ...

    def theme(self, words: str) -> str:
        """All themes of the chat, or use the one of that name there; what came of it. Raises NotHere, CommandError."""
        ...

    def theme_names(self) -> list[str]:
        """Those that `theme` takes."""
        ...

    async def login(self, words: str) -> str:
        """Ask for a key of a provider, and keep it; what came of it. Raises NotHere, ListUnavailable and KeysUnusable."""
        ...


class NoFace:
    """Nobody sits here."""

    keys = ""

    @property
    def draws(self) -> bool:
        return False

    @property
    def columns(self) -> int:
        return 0

    def trace(self, number: int) -> str:
        raise NotHere("there is nobody to show a turn to", "use `cru trace`")

    async def pause(self) -> None:
        raise NotHere("/pause works in the chat only", "Ctrl-Z stops any other run, `fg` goes on with it")

    def theme(self, words: str) -> str:
        raise NotHere("/theme works in the chat on a terminal with colours", 'set it for good: theme = "light"')

    def theme_names(self) -> list[str]:
        return []

    async def login(self, words: str) -> str:
        raise NotHere("/login asks on the chat's terminal", "use `cru login`")

    def resume(self) -> None:
        raise NotHere("/resume works in the chat only", "use `cru --resume`")

    def leave(self) -> None:
        raise NotHere("this is no chat: there is nothing to leave", "a run ends by itself")

    def reopen(self, flag: str, value: str) -> None:
        raise NotHere("only a chat goes on in another conversation", f"use `cru {flag} {value} …`")

    async def copy(self, text: str) -> str:
        raise NotHere("there is no terminal to copy from", "`cru -g 1` prints the last answer")

    def commands(self) -> Iterable[Command]:
        return ()


class CommandContext(Struct):
    """What a built-in command works with.

    session: the session it was typed in
    models: the models that can be chosen there
    face: what only the face can do that the user sits at
    extensions: the session's plugins, None if there are none
    """

    session: Session
    models: ModelPool
    face: Face
    extensions: Extensions | None = None


NARROW = 20
"""Columns below which a description is left to the terminal."""


def table_row(head: str, about: str, columns: int) -> str:
    """`about` behind `head`, broken at words below its own column; in one line for 0 columns (what is no terminal)."""
    if not columns or len(head) + len(about) < columns or columns - len(head) <= NARROW:
        return f"{head}{about}".rstrip()
    return textwrap.fill(
        about, columns - 1, initial_indent=head, subsequent_indent=" " * len(head),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
