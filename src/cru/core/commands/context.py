"""What built-in commands work with: the session, its models, and the face that the user sits at."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from cru.core.commands.errors import NotHere
from cru.core.turn.commands import CommandResult
from cru.core.turn.model_pool import ModelPool
from cru.core.turn.session import Session

if TYPE_CHECKING:
    from cru.core.plugins.manager import Extensions


class ChatPort(Protocol):
    """What only a chat can do."""

    async def pause(self) -> None:
        """Hand control to the program that started cru. Raises NotHere."""
        ...

    def leave(self) -> None:
        """End the chat."""
        ...

    def reopen(self, flag: str, value: str) -> None:
        """End the chat, carry out this flag, and open a chat again. Raises NotHere."""
        ...

    def resume(self) -> None:
        """Continue the interrupted turn after this command. Raises NotHere."""
        ...

    def theme(self, words: str) -> str:
        """Return all themes, or use the one of that name and return what changed. Raises NotHere, CommandError."""
        ...

    def theme_names(self) -> list[str]:
        """Return the names that `theme` takes."""
        ...


class Face(Protocol):
    """What a face can do. `keys` explains the keys, "" if there are none to explain. `draws`: it shows views that change.
    `columns`: of the terminal that shows what a command says, 0 if none does. `chat`: None if it asks once."""

    keys: str

    @property
    def chat(self) -> ChatPort | None: ...

    @property
    def draws(self) -> bool: ...

    @property
    def columns(self) -> int: ...

    def trace(self, number: int) -> str:
        """Return what happened in a turn (1 = the oldest, -1 = the last)."""
        ...

    async def copy(self, text: str) -> str:
        """Copy a text to the clipboard; return what came of it. Raises NotHere."""
        ...

    async def run_in_shell(self, name: str, words: str) -> CommandResult:
        """Run `cru NAME WORDS` on the terminal. Raises BadCommand, NotHere."""
        ...

    async def login(self, words: str) -> str:
        """Ask for a key of a provider, and keep it; return what came of it. Raises NotHere, ListUnavailable and KeysUnusable."""
        ...


class NoFace:
    """A session without a terminal."""

    keys = ""

    @property
    def chat(self) -> ChatPort | None:
        return None

    @property
    def draws(self) -> bool:
        return False

    @property
    def columns(self) -> int:
        return 0

    def trace(self, number: int) -> str:
        raise NotHere("there is no terminal to show a turn on", "use `cru trace`")

    async def login(self, words: str) -> str:
        raise NotHere("/login asks on the chat's terminal", "use `cru login`")

    async def copy(self, text: str) -> str:
        raise NotHere("there is no terminal to copy from", "`cru -g 1` prints the last answer")

    async def run_in_shell(self, name: str, words: str) -> CommandResult:
        raise NotHere(f"/{name} runs on the chat's terminal", f"use `cru {name}`")


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

    @property
    def chat(self) -> ChatPort:
        """The chat of a command that works only there."""
        assert self.face.chat is not None, "the table says that it works only in the chat"
        return self.face.chat


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
