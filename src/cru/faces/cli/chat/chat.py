"""The chat: turn by turn on a terminal, with the terminal's own scrollback."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.commands.errors import NotHere
from cru.core.compose import Start
from cru.core.turn.attachments import may_name_image
from cru.core.turn.background import has_report, wait_for_report
from cru.core.turn.commands import CommandResult, split_command
from cru.core.turn.prompts import find_unanswered
from cru.core.turn.turn import DONE
from cru.faces.cli.chat.first_prompt import FirstPrompt
from cru.faces.cli.chat.lines import LineScreen
from cru.faces.cli.chat.status import StatusLine
from cru.faces.cli.console import (
    complain,
    erase_prompt,
    is_dumb_terminal,
    one_line,
    print_above_prompt,
    say,
    write_error,
)
from cru.faces.cli.continuation import chat_command, resume_command, spell_in_chat
from cru.faces.cli.event_loop import run_async
from cru.faces.cli.flags import Parsed
from cru.faces.cli.session_run import RunningSession, can_resume, exit_status, is_left_open, open_run
from cru.faces.cli.terminal.live import LiveRegion
from cru.faces.cli.text_face import TextFace

if TYPE_CHECKING:
    from cru.core.base.config.layers import Settings
    from cru.core.events.payloads import Attachment
    from cru.faces.cli.chat.images import ChatImages
    from cru.faces.cli.chat.themes import Themes
    from cru.faces.cli.command_face import ChatFace

LEAVING = 2.0
"""Seconds within which a second Ctrl-C, in an empty line, leaves."""


def chat(start: Start, parsed: Parsed, first: FirstPrompt) -> tuple[int, tuple[str, str] | None]:
    """Read prompts until Ctrl-D; each is one turn. Returns the exit status, and the flag with which a chat is to be opened again."""
    return run_async(_chat(start, parsed, first))


async def _chat(start: Start, parsed: Parsed, first: FirstPrompt) -> tuple[int, tuple[str, str] | None]:
    live = None if is_dumb_terminal() else LiveRegion()
    face = TextFace(parsed.has("verbose"), live)
    async with open_run(start, parsed, face, f"cru chat in {start.context}") as run:
        with closing(first):
            conversation = Chat(run, face, live, start, first)
            await conversation.run()
    name = run.built.store.current_name() if start.private is None else ""
    if name and conversation.reopened is None:  # else it was deleted meanwhile
        if conversation.unfinished:
            face.say(f"resume with: {resume_command(parsed, name, conversation.failed)}")
        else:
            face.say(f"this conversation: {chat_command(parsed, name)}")
    return run.signals.code, conversation.reopened


def own_command(text: str) -> str:
    """The person's own command in `!command`; "" if it is none."""
    return text[1:].strip() if text.startswith("!") else ""


class Screen(Protocol):
    """What a person types, and where.

    take_keys: keys that were pressed before it was there; `waits`: more of them are to be read
    shown: it stands on the terminal for the block
    next_prompt: what was entered next, None at the end of input
    begin_turn, end_turn: the model works in between, on that prompt
    read_pressed: takes in keys that a signal has overtaken
    take_back: what was entered and waits is put into the input again
    clear_input: empties the input; whether there was something in it
    end_input: as Ctrl-D; what waits is still sent
    """

    def take_keys(self, keys: bytes, waits: bool) -> None: ...
    def shown(self) -> AbstractAsyncContextManager[None]: ...
    async def next_prompt(self) -> str | None: ...
    def begin_turn(self, text: str) -> None: ...
    def end_turn(self) -> None: ...
    def read_pressed(self) -> None: ...
    def take_back(self) -> None: ...
    def clear_input(self) -> bool: ...
    def end_input(self) -> None: ...


class Chat:
    """Prompts and turns by turns.

    unfinished: whether the last turn ended in its middle
    failed: with which exit status it would have ended a run, 0: it did not fail
    reopened: the flag, and its value, with which a chat is to be opened again
    """

    def __init__(
        self, run: RunningSession, face: TextFace, live: LiveRegion | None, start: Start, first: FirstPrompt
    ) -> None:
        self.unfinished, self.failed = False, 0
        self.reopened: tuple[str, str] | None = None
        self._start = start
        self._face, self._signals = face, run.signals
        self._session = session = run.built.session
        self._store, self._home, self._cwd = run.built.store, start.home, start.cwd
        run.signals.on_end(self._end)
        run.signals.on_interrupt(self._interrupt)
        run.built.face = self._command_face
        session.parts.services.face.is_chat = True
        self._status = StatusLine(session, face.status_text)
        self._themes: Themes | None = None
        self._screen = LineScreen() if live is None else self._open_screen(live, run.built.settings, start)
        self._screen.take_keys(first.typed, first.waits)
        self._is_leaving = self._is_in_turn = self._has_begun = self._resumes = False
        self._is_plain, self._live = live is None, live
        self._interrupted = -LEAVING
        self._images: ChatImages | None = None
        self._own: asyncio.Future[str] | None = None

    def _open_screen(self, live: LiveRegion, settings: Settings, start: Start) -> Screen:
        from cru.core.compose.chat_settings import ChatKeys, KeyTable
        from cru.faces.cli.chat.call_results import SHOWN, CallResults, styled
        from cru.faces.cli.chat.completion import ChatCompleter
        from cru.faces.cli.chat.history import open_history
        from cru.faces.cli.chat.keys import unknown_keys
        from cru.faces.cli.chat.screen import ChatActions, ChatScreen
        from cru.faces.cli.chat.themes import open_themes
        from cru.faces.cli.chat.todos import show_todos

        live.watch(self._session.parts.bus.stream)
        show_todos(self._session.parts.bus.stream, live.show_todos)
        self._themes = themes = open_themes(start.home, settings)
        results = CallResults(self._session.parts)
        self._face.show_results(SHOWN, lambda call: styled(results.lines(call), themes.escape))
        actions = ChatActions(
            self._status.text,
            self._interrupt,
            self._signals.suspend,
            self._next_mode,
            self._do_at_once,
            self._mark_image,
            self._paste_image,
            themes.screen_style(),
        )
        keys = settings.of(KeyTable).keys if settings.has(KeyTable) else ChatKeys()
        for problem in unknown_keys(keys):
            complain(problem)
        history = open_history(start.home / "chat_history", start.root, start.private is None)
        return ChatScreen(history, ChatCompleter(self._session), live, actions, keys)

    async def run(self) -> None:
        erase_prompt()
        async with self._screen.shown(), self._opening():
            while not self._is_leaving:
                text = await self._next_prompt()
                if text is None:
                    return
                if text or has_report(self._session.parts):
                    await self._turn(text)

    @asynccontextmanager
    async def _opening(self) -> AsyncIterator[None]:
        """The end of the conversation comes above the prompt while that can be typed at already, unless a turn was quicker."""
        showing = asyncio.ensure_future(self._show_opening())
        try:
            if self._is_plain:
                await showing
            yield
        finally:
            showing.cancel()

    async def _show_opening(self) -> None:
        from cru.faces.cli.chat.opening import read_opening

        plain = self._is_plain or bool(os.environ.get("NO_COLOR"))
        try:
            opening = await asyncio.to_thread(read_opening, self._store.folder, self._session.parts.place.root, plain)
        except CruError:
            return  # whoever opens the session tells it
        if self._has_begun or not opening.text:
            return
        print_above_prompt(lambda: write_error(opening.text))
        if opening.unfinished:
            self._face.say(f"cru: the last prompt was not finished: “{opening.unfinished}”\n  /resume goes on with it")

    async def _next_prompt(self) -> str | None:
        """The next prompt; None at the end of input, "" if something that ran in the background has ended."""
        entered = asyncio.ensure_future(self._screen.next_prompt())
        report = asyncio.ensure_future(wait_for_report(self._session.parts))
        try:
            await asyncio.wait((entered, report), return_when=asyncio.FIRST_COMPLETED)
            if not entered.done() and not report.result():  # nothing runs that could bring one
                await asyncio.wait((entered,))
            return entered.result() if entered.done() else ""
        finally:
            entered.cancel()
            report.cancel()

    async def _turn(self, text: str) -> None:
        """One turn, or one command; its errors are shown and the chat goes on."""
        self._has_begun = True
        self._screen.begin_turn(text)
        self._is_in_turn = True
        if command := own_command(text):
            await self._run_own(command)
            return
        try:
            if text:
                self._session.submit(text, attachments=await self._take_images(text))
            result = await self._session.run()
            if self._resumes:
                self._resumes = False
                result = await self._session.resume()
        except (CruError, OSError, MemoryError) as error:
            self._session.withdraw(text)
            self._show_failure(error)
            return
        finally:
            self._is_in_turn = False
            self._screen.end_turn()
        if result is not None:
            self.unfinished, self.failed = can_resume(result), exit_status(result)
            if result.outcome.kind == "needs_person":  # the question stands above, and the person reads it
                result = replace(result, cause="done", outcome=DONE)
            self._face.result(replace(result, hint=spell_in_chat(result.hint)) if result.hint else result, 0)
            if self.unfinished and find_unanswered(self._store.visible()) is not None:
                self._face.say(
                    "/resume tries it again, the up arrow lets you edit it; it is not sent with another prompt"
                )
            if result.cause == "done":
                await self._status.measure()
        elif self.unfinished:  # a command may have done away with what was
            self.unfinished = is_left_open(self._session)

    def _chat_images(self) -> ChatImages:
        from cru.faces.cli.chat.images import ChatImages

        self._images = self._images or ChatImages(self._session, self._cwd)
        return self._images

    def _mark_image(self, pasted: str) -> str:
        return self._chat_images().mark_path(pasted) if may_name_image(pasted) else ""

    async def _paste_image(self) -> str:
        try:
            return await self._chat_images().mark_clipboard()
        except CruError as error:
            print_above_prompt(partial(complain, error.message, error.hint))
            return ""

    async def _take_images(self, text: str) -> tuple[Attachment, ...]:
        """Those that the text names, or that stand for pasted ones in it."""
        if self._images is None and not may_name_image(text):
            return ()
        return await self._chat_images().take_in(text)

    async def _run_own(self, command: str) -> None:
        from cru.faces.cli.chat.own_commands import run_own_command

        def show(text: str) -> None:
            self._show_running("")  # what it has printed leaves the live region before all of it is printed above
            self._face.show_block(text)

        self._own = asyncio.ensure_future(run_own_command(self._session.parts, command, show))
        self._show_running(f"running {one_line(command, 40)}")
        try:
            self._session.add_context([await self._own])
        except CruError as error:
            print_above_prompt(partial(complain, error.message, error.hint))
        except asyncio.CancelledError:
            if not self._own.cancelled():
                raise
            self._face.say("cru: interrupted")
        finally:
            self._show_running("")
            self._own, self._is_in_turn = None, False
            self._screen.end_turn()

    def _show_running(self, activity: str) -> None:
        if self._live is not None:
            self._live.show(activity)

    def _show_failure(self, error: CruError | OSError | MemoryError) -> None:
        message, hint = (
            (error.message, error.hint) if isinstance(error, CruError) else (str(error) or "out of memory", "")
        )
        print_above_prompt(lambda: complain(message, spell_in_chat(hint)))
        self.unfinished, self.failed = is_left_open(self._session, error), getattr(error, "code", 1)

    def _command_face(self) -> ChatFace:
        from cru.faces.cli.command_face import ChatFace

        return ChatFace(
            self._store, self._signals.suspend, self._leave, self._login, self._resume, self._themes, self._reopen, self._run_in_shell
        )  # fmt: skip

    async def _run_in_shell(self, name: str, words: str) -> CommandResult:
        from cru.faces.cli.chat.shell_commands import run_in_shell

        return await run_in_shell(self._start, self._session.parts.services.face.asker, name, words)

    def _reopen(self, flag: str, value: str) -> None:
        if self._start.private is not None:
            raise NotHere("this chat keeps nothing, so it has no conversation to leave", "Ctrl-D ends it")
        self.reopened = flag, value
        self._is_leaving = True

    async def _login(self, words: str) -> str:
        from cru.faces.cli.setup.login import login_here

        return await login_here(self._session.parts.services.face.asker, self._home, words)

    def _do_at_once(self, text: str) -> bool:
        """A command that does not wait for the end of a turn (/stop)."""
        named = split_command(text)
        if named is None or not self._session.parts.services.commands.at_once(named[0]):
            return False
        self._screen.take_back()
        self._session.submit(text)
        return True

    def _next_mode(self) -> None:
        from cru.core.commands.mode import next_mode

        sentence = next_mode(self._session.parts)
        print_above_prompt(partial(say, sentence))

    def _resume(self) -> None:
        """Behind the command that asks for it."""
        self._resumes = True

    def _leave(self) -> None:
        self._is_leaving = True

    def _interrupt(self) -> None:
        """Ctrl-C: a turn ends, and nothing that waits is sent by itself; else the line is cleared. Twice, without a line, it leaves."""
        if self._is_in_turn:
            self._screen.read_pressed()
            self._screen.take_back()
            self._interrupt_work()
            return
        before, self._interrupted = self._interrupted, time.monotonic()
        if self._screen.clear_input():
            self._interrupted = -LEAVING
        elif self._interrupted - before < LEAVING:
            self._screen.end_input()

    def _interrupt_work(self) -> None:
        if self._own is not None:
            self._own.cancel()
        else:
            self._session.interrupt()

    def _end(self) -> None:
        """A signal asks the chat to end, with or without a turn."""
        self._is_leaving = True
        if self._own is not None:
            self._own.cancel()
        self._session.end()
        self._screen.end_input()
