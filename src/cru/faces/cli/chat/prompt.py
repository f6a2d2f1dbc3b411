"""The chat's prompt: a line editor with a history and the Tab key for names of commands. Loads prompt_toolkit."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import create_output

from cru.engine.session import Session
from cru.faces.cli.chat.first_prompt import PROMPT
from cru.faces.cli.console import complain
from cru.values.errors import CruError

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.key_binding.key_processor import KeyPress


class LineLeft(Exception):
    """The line was left for something else; it is to be read again."""


class PromptLine:
    """The line editor; it draws on stderr, so that standard output holds nothing but answers. `status` stands to the right of it;
    `suspend` is what Ctrl-Z does."""

    def __init__(
        self, history: str, session: Session, suspend: Callable[[], Awaitable[None]], status: Callable[[], str]
    ) -> None:
        self._editor: PromptSession[str] = PromptSession(
            history=_history(history),
            key_bindings=_keys(suspend),
            output=create_output(stdout=sys.stderr),
            completer=CommandCompleter(session),
            complete_while_typing=False,
            rprompt=status,
        )

    def take_keys(self, keys: bytes) -> None:
        """Keys that were pressed before; `read` begins with them."""
        presses: list[KeyPress] = []
        Vt100Parser(presses.append).feed_and_flush(keys.decode("utf-8", "replace"))
        store_typeahead(self._editor.input, presses)

    async def read(self, typed: str) -> str:
        """What is typed behind the prompt up to Enter, with what was typed already. Raises KeyboardInterrupt and EOFError."""
        return await self._editor.prompt_async(PROMPT, default=typed, set_exception_handler=False)

    def leave(self) -> str:
        """End it without an answer; what is typed there so far. `read` raises LineLeft."""
        text = self._editor.default_buffer.text
        if self._editor.app.is_running:
            self._editor.app.exit(exception=LineLeft)
        return text

    def close(self) -> None:
        """End it as Ctrl-D does."""
        if self._editor.app.is_running:
            self._editor.app.exit(exception=EOFError)


class _PromptHistory(FileHistory):
    """What cannot be written is kept in memory, as all of it is: no reason to refuse what was typed."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def _history(path: str) -> History:
    """What was typed before; private, and only kept in memory if the file cannot be written."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return _PromptHistory(path)


def _keys(suspend: Callable[[], Awaitable[None]]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        async def stop() -> None:
            async with in_terminal():
                await suspend()

        event.app.create_background_task(stop())

    return keys


class CommandCompleter(Completer):
    """Completes the first word of a line that begins with a slash. Plugins bring commands too, so the session is opened first."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._has_opened = False

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if not before.startswith("/") or any(c.isspace() for c in before):
            return
        for command in self._session.parts.commands.all():
            if command.name.startswith(before[1:]):
                yield Completion(f"/{command.name}", -len(before), display_meta=command.about)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        if not self._has_opened and document.text_before_cursor.startswith("/"):
            self._has_opened = True
            async with in_terminal():
                await self._open_session()
        for completion in self.get_completions(document, complete_event):
            yield completion

    async def _open_session(self) -> None:
        try:
            await self._session.open()
        except CruError as error:
            complain(error.message, error.hint)
        except OSError as error:
            complain(str(error))
