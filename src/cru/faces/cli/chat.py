"""The chat: line by line on a terminal, with the terminal's own scrollback. prompt_toolkit loads only here."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

from cru.app import Built, Start, build
from cru.faces.cli import start as exits
from cru.faces.cli.flags import Parsed
from cru.values.errors import CruError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

GREETING = "cru in the context {name}. Ctrl-C stops an answer, Ctrl-D leaves, Alt-Enter starts a new line."


def chat(start: Start, parsed: Parsed) -> int:
    """Read prompts until Ctrl-D; each is one turn. Returns the exit status."""
    return asyncio.run(_chat(start, parsed))


async def _chat(start: Start, parsed: Parsed) -> int:
    from cru.faces.cli.one_shot import asker_for, finish
    from cru.faces.cli.text_face import TextFace

    face = TextFace(parsed.has("verbose"))
    built = build(start, asker=asker_for(parsed), command=f"cru chat in {start.context}", watch=face.watch)
    lines = _lines(start)
    face.say(GREETING.format(name=start.context))
    try:
        while True:
            text = await _read(lines)
            if text is None:
                break
            if text.strip():
                await _turn(built, face, text)
    finally:
        await finish(built)
        face.close()
    face.say(f"resume with: cru -c {start.context}")
    return exits.DONE


def _lines(start: Start) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return PromptSession(history=FileHistory(str(start.home / "chat_history")), key_bindings=keys)


async def _read(lines: PromptSession[str]) -> str | None:
    """The next prompt; None at Ctrl-D. Ctrl-C clears the line."""
    while True:
        try:
            return await lines.prompt_async("> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return None


async def _turn(built: Built, face: Any, text: str) -> None:
    """One turn; its errors are shown and the chat goes on."""
    loop = asyncio.get_running_loop()
    session = built.session
    loop.add_signal_handler(signal.SIGINT, session.interrupt)
    try:
        session.submit(text)
        result = await session.run()
        if result is not None:
            face.result(result, 0)
    except CruError as error:
        exits.complain(error.message, error.hint)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
