"""The chat: line by line on a terminal, with the terminal's own scrollback."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from typing import TYPE_CHECKING

from cru.app import Start
from cru.engine.background import has_report, wait_for_report
from cru.faces.cli.chat.first_prompt import FirstPrompt
from cru.faces.cli.chat.prompt import LineLeft, PromptLine
from cru.faces.cli.console import complain, erase_prompt
from cru.faces.cli.event_loop import run_async
from cru.faces.cli.flags import Parsed
from cru.faces.cli.session_run import RunningSession, can_resume, exit_status, is_left_open, open_run
from cru.faces.cli.terminal.keyboard import input_mode, read_typed
from cru.faces.cli.text_face import TextFace
from cru.values.errors import CruError

if TYPE_CHECKING:
    from cru.faces.cli.command_face import ChatFace


def chat(start: Start, parsed: Parsed, first: FirstPrompt) -> int:
    """Read prompts until Ctrl-D; each is one turn. Returns the exit status."""
    return run_async(_chat(start, parsed, first))


async def _chat(start: Start, parsed: Parsed, first: FirstPrompt) -> int:
    from cru.faces.cli.continuation import chat_command, resume_command

    face = TextFace(parsed.has("verbose"))
    async with open_run(start, parsed, face, f"cru chat in {start.context}") as run:
        with closing(first):
            conversation = Chat(run, face, start.home, first.typed)
            await conversation.run()
    if name := run.built.store.current_name():  # else it was deleted meanwhile
        if conversation.unfinished:
            face.say(f"resume with: {resume_command(parsed, name, conversation.failed)}")
        else:
            face.say(f"this conversation: {chat_command(parsed, name)}")
    return run.signals.code


class Chat:
    """Prompts and turns by turns.

    unfinished: whether the last turn ended in its middle
    failed: with which exit status it would have ended a run, 0: it did not fail
    """

    def __init__(self, run: RunningSession, face: TextFace, home: os.PathLike[str], typed: bytes) -> None:
        self.unfinished, self.failed = False, 0
        self._face, self._signals = face, run.signals
        self._session = session = run.built.session
        self._store = run.built.store
        run.signals.on_end(self._end)
        run.built.face = self._command_face
        session.parts.services.is_chat = True
        self._line = PromptLine(os.path.join(home, "chat_history"), session, run.signals.suspend, face.status_text)
        self._line.take_keys(typed)
        self._leaving = False
        self._typed_ahead = ""

    async def run(self) -> None:
        while not self._leaving:
            text = await self._read()
            if text is None:
                return
            if text.strip() or has_report(self._session.parts):
                await self._turn(text)

    async def _read(self) -> str | None:
        """The next prompt; None at Ctrl-D. Ctrl-C clears the line. What was typed before an answer was stopped stands in it."""
        while not self._leaving:
            await self._wait_for_questions()
            typed, self._typed_ahead = self._typed_ahead + self._typed_at_questions(), ""
            erase_prompt()
            try:
                return await self._read_or_wake(typed)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None
            except LineLeft:
                return ""
        return None

    async def _read_or_wake(self, typed: str) -> str:
        """What is typed; raises LineLeft if something that runs in the background has ended meanwhile."""
        waking = asyncio.ensure_future(wait_for_report(self._session.parts))
        waking.add_done_callback(self._wake)
        try:
            return await self._line.read(typed)
        finally:
            waking.cancel()

    def _wake(self, waking: asyncio.Future[bool]) -> None:
        if not waking.cancelled() and waking.result():
            self._typed_ahead = self._line.leave()

    async def _wait_for_questions(self) -> None:
        """Wait until no question of a plugin stands where the prompt will."""
        free = getattr(self._session.parts.asker, "free", None)
        if free is not None:
            await free()

    def _typed_at_questions(self) -> str:
        """What was typed while a question stood there, and was no answer to it."""
        take = getattr(self._session.parts.asker, "take_typed", None)
        return take() if take is not None else ""

    async def _turn(self, text: str) -> None:
        """One turn, or one command; its errors are shown and the chat goes on."""
        # The line editor takes SIGINT for itself and gives it back to nobody.
        self._signals.on_interrupt(self._interrupt)
        if text:
            self._session.submit(text)
        try:
            with input_mode(0, "kept"):
                result = await self._session.run()
        except (CruError, OSError, MemoryError) as error:
            self._session.withdraw(text)
            self._show_failure(error)
            return
        if result is not None:
            self.unfinished, self.failed = can_resume(result), exit_status(result)
            self._face.result(result, 0)
        elif self.unfinished:  # a command may have done away with what was
            self.unfinished = is_left_open(self._session)

    def _show_failure(self, error: CruError | OSError | MemoryError) -> None:
        message, hint = (
            (error.message, error.hint) if isinstance(error, CruError) else (str(error) or "out of memory", "")
        )
        complain(message, hint)
        self.unfinished, self.failed = is_left_open(self._session, error), getattr(error, "code", 1)

    def _command_face(self) -> ChatFace:
        from cru.faces.cli.command_face import ChatFace

        return ChatFace(self._store, self._signals.suspend, self._leave)

    def _leave(self) -> None:
        self._leaving = True

    def _interrupt(self) -> None:
        """Ctrl-C: nothing that was typed before it is sent by itself."""
        self._typed_ahead += read_typed(0)
        self._session.interrupt()

    def _end(self) -> None:
        """A signal asks the chat to end, with or without a turn."""
        self._leaving = True
        self._session.end()
        self._line.close()
