"""The Tab key in the chat's input: names of commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

from prompt_toolkit.application import in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from cru.engine.session import Session
from cru.faces.cli.console import complain
from cru.values.errors import CruError


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
