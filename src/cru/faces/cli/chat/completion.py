"""What the chat's input completes: names of commands with Tab, files behind `@` while they are typed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable

from prompt_toolkit.application import get_app, in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from cru.core.base.values.errors import CruError
from cru.core.turn.commands import split_command
from cru.core.turn.session import Session
from cru.faces.cli.chat.project_files import Matches, ProjectFiles
from cru.faces.cli.console import complain

REFERENCE = re.compile(r"(?<!\S)@([^\s\"]*|\"[^\"\n]*)\Z")
FILES = 50
ARGUMENTS = 500
"""How many are offered."""
POLL = 0.1
"""Seconds between two looks whether all names of files are read."""


def reference(document: Document) -> str | None:
    """What stands behind the `@` of the word that is being typed; None: it has none."""
    match = REFERENCE.search(document.text_before_cursor)
    return None if match is None else match[1]


def _file_completions(matches: Matches, replaced: int) -> Iterable[Completion]:
    """The note stands beside the first file: the menu shows only the first rows of a long list."""
    for at, name in enumerate(matches.names):
        note = f"… {matches.note}" if matches.note and not at else None
        yield Completion(f'"{name}"' if " " in name else name, -replaced, display=name, display_meta=note)
    if matches.note and not matches.names:
        yield Completion("", display=f"… {matches.note}")


class ChatCompleter(Completer):
    """Completes the first word of a line that begins with a slash, and files. Plugins bring commands, too: the session is opened first."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._has_opened = False
        self._files = ProjectFiles(session.parts.place.root)
        self._is_waiting = False

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if not before.startswith("/") or any(c.isspace() for c in before):
            return
        for command in self._session.parts.services.commands.all():
            if command.name.startswith(before[1:]):
                yield Completion(f"/{command.name}", -len(before), display_meta=command.about)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        if not self._has_opened and document.text_before_cursor.startswith("/"):
            self._has_opened = True
            async with in_terminal():
                await self._open_session()
        if (characters := reference(document)) is not None:
            matches = await asyncio.to_thread(self._files.matching, characters.removeprefix('"'), FILES)
            for completion in _file_completions(matches, len(characters)):
                yield completion
            if matches.is_partial and not self._is_waiting:
                self._is_waiting = True
                asyncio.get_running_loop().call_later(POLL, self._offer_again)
        for completion in self.get_completions(document, complete_event):
            yield completion
        for name in await self._arguments(document.text_before_cursor):
            yield Completion(name, -len(document.text_before_cursor.rpartition(" ")[2]))

    def _offer_again(self) -> None:
        """Once all names are read, renew the menu that shows some of them, unless the user is choosing from it."""
        self._is_waiting = self._files.is_reading
        if self._is_waiting:
            asyncio.get_running_loop().call_later(POLL, self._offer_again)
            return
        buffer = get_app().current_buffer
        state = buffer.complete_state
        if state is not None and state.complete_index is None and reference(buffer.document) is not None:
            buffer.cancel_completion()  # a buffer that has a menu starts no other one
            buffer.start_completion()

    async def _arguments(self, before: str) -> list[str]:
        """What the arguments of a command may go on with."""
        named = split_command(before) if " " in before else None
        if named is None or " " in named[1]:
            return []
        commands = {command.name: command for command in self._session.parts.services.commands.all()}
        complete = commands[named[0]].complete if named[0] in commands else None
        try:
            return (await complete(named[1]))[:ARGUMENTS] if complete is not None else []
        except CruError:
            return []  # the command itself says it

    async def _open_session(self) -> None:
        try:
            await self._session.open()
        except CruError as error:
            complain(error.message, error.hint)
        except OSError as error:
            complain(str(error))
