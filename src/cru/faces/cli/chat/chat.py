"""The chat: line by line on a terminal, with the terminal's own scrollback. prompt_toolkit loads only here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cru.app import Built, FaceSettings, Start, build
from cru.engine.turn import LegResult
from cru.faces.cli import entry as exits
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import chat_command, resume_command
from cru.faces.cli.signals import Signals
from cru.faces.cli.terminal.keyboard import typed, typing
from cru.values.errors import CruError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from cru.contexts.store import FileContext
    from cru.faces.cli.command_face import ChatFace

GREETING = (
    "cru in the context {name}. Ctrl-C stops an answer, Ctrl-D leaves, Alt-Enter starts a new line, /help says more."
)


def chat(start: Start, parsed: Parsed) -> int:
    """Read prompts until Ctrl-D; each is one turn. Returns the exit status."""
    return exits.on_loop(_chat(start, parsed))


async def _chat(start: Start, parsed: Parsed) -> int:
    from cru.faces.cli.one_shot import asker_for, finish
    from cru.faces.cli.text_face import TextFace

    face = TextFace(parsed.has("verbose"))
    built = build(start, asker=asker_for(parsed), command=f"cru chat in {start.context}", watch=face.watch)
    face.dress(built.settings.of(FaceSettings))
    exits.loaded()
    talk = Chat(built, face, start.home)
    try:
        with typing(sys.stdin.fileno(), lines=False):
            face.say(GREETING.format(name=start.context))
            await talk.run()
    finally:
        await finish(built, talk.signals)
        face.close()
    if name := built.store.name_now():  # else it was deleted meanwhile
        resume = resume_command(parsed, name, talk.failed)
        face.say(f"resume with: {resume}" if talk.unfinished else f"this conversation: {chat_command(parsed, name)}")
    return talk.signals.code


class Chat:
    """Prompts and turns by turns. `unfinished` says whether the last turn ended in its middle, `failed` with which exit status it
    would have ended a run (0: it did not fail)."""

    def __init__(self, built: Built, face: Any, home: os.PathLike[str]) -> None:
        self.signals = Signals(built.session, self._leave)
        self.unfinished, self.failed = False, 0
        self._session = built.session
        self._face = face
        built.face = lambda: self._seat(built.store)
        built.session.parts.services.is_chat = True
        typed_before = history(os.path.join(home, "chat_history"))
        self._lines = _lines(typed_before, _keys(self.signals), self._completer, face.status_text)
        self._completions: Completer | None = None
        self._leaving = False
        self._ahead = ""

    async def run(self) -> None:
        while not self._leaving:
            text = await self._read()
            if text is None:
                return
            if text.strip():
                await self._turn(text)

    async def _read(self) -> str | None:
        """The next prompt; None at Ctrl-D. Ctrl-C clears the line. What was typed before an answer was stopped stands in it."""
        while not self._leaving:
            await self._unasked()
            ahead, self._ahead = self._ahead, ""
            try:
                return await self._lines.prompt_async("> ", default=ahead, set_exception_handler=False)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None
        return None

    async def _unasked(self) -> None:
        """Wait until no question of a plugin stands where the prompt will."""
        free = getattr(self._session.parts.asker, "free", None)
        if free is not None:
            await free()

    async def _turn(self, text: str) -> None:
        """One turn, or one command; its errors are shown and the chat goes on."""
        from cru.faces.cli.one_shot import exit_code, left_open, unfinished

        # The line editor takes SIGINT for itself and gives it back to nobody.
        self.signals.on_interrupt(self._interrupt)
        self._session.submit(text)
        try:
            result: LegResult | None = await self._session.run()
        except (CruError, OSError) as error:
            self.unfinished, self.failed = left_open(self._session, error), getattr(error, "code", 1)
            message, hint = (error.message, error.hint) if isinstance(error, CruError) else (str(error), "")
            exits.complain(message, hint)
            return
        if result is not None:
            self.unfinished, self.failed = unfinished(result), exit_code(result)
            self._face.result(result, 0)
        elif self.unfinished:  # a command may have done away with what was
            self.unfinished = left_open(self._session)

    def _seat(self, store: FileContext) -> ChatFace:
        from cru.faces.cli.command_face import ChatFace

        return ChatFace(store, self.signals.stop_and_go, self._quit)

    def _completer(self) -> Completer:
        if self._completions is None:
            from cru.faces.cli.chat.prompt import CommandCompleter

            self._completions = CommandCompleter(self._session)
        return self._completions

    def _quit(self) -> None:
        self._leaving = True

    def _interrupt(self) -> None:
        """Ctrl-C: nothing that was typed before it is sent by itself."""
        self._ahead += typed(sys.stdin.fileno())
        self._session.interrupt()

    def _leave(self) -> None:
        """A signal asks the chat to end, with or without a turn."""
        self._leaving = True
        self._session.end()
        if self._lines.app.is_running:
            self._lines.app.exit(exception=EOFError)


def history(path: str) -> History:
    """What was typed before; private, and only kept in memory if the file cannot be written."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _lines(
    history: History, keys: KeyBindings, completer: Callable[[], Completer], beside: Callable[[], str]
) -> PromptSession[str]:
    """The line editor; it draws on stderr, so that standard output holds nothing but answers. What plugins say about themselves
    stands to the right."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import DynamicCompleter
    from prompt_toolkit.output import create_output

    return PromptSession(
        history=history,
        key_bindings=keys,
        output=create_output(stdout=sys.stderr),
        completer=DynamicCompleter(completer),
        complete_while_typing=False,
        rprompt=beside,
    )


def _keys(signals: Signals) -> KeyBindings:
    from prompt_toolkit.application import in_terminal
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        async def stop() -> None:
            async with in_terminal():
                await signals.stop_and_go()

        event.app.create_background_task(stop())

    return keys
