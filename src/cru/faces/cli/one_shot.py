"""One prompt, one turn: build the session, run it until idle, leave with its exit status."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from msgspec import Struct

from cru.app import Built, FaceSettings, Start, build
from cru.engine.commands import split_command
from cru.engine.session import Session
from cru.engine.turn import LegResult, PromptSource
from cru.faces.cli import entry as exits
from cru.faces.cli.console import TerminalOutput
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import needed_again, resume_command
from cru.faces.cli.signals import Signals
from cru.values.errors import CruError

CODES = {"done": exits.DONE, "cancelled": exits.DENIED, "halted": exits.DENIED, "interrupted": exits.INTERRUPTED}


class Ask(NamedTuple):
    """What a run is asked to do; `events` is what handlers hear first; `source` says where the text is from, if nobody typed it;
    `literal` text is no command."""

    text: str
    attachments: tuple[Any, ...] = ()
    events: tuple[Struct, ...] = ()
    source: PromptSource = "user"
    literal: bool = False


def one_shot(start: Start, parsed: Parsed, ask: Ask) -> int:
    """Ask once (or resume) and print; returns the exit status."""
    return exits.on_loop(_one_shot(start, parsed, ask))


async def _one_shot(start: Start, parsed: Parsed, ask: Ask) -> int:
    face = face_for(parsed)
    built = build(start, asker=asker_for(parsed), command=f"cru -C {start.context}", watch=face.watch)
    face.dress(built.settings.of(FaceSettings))
    built.face = lambda: _seat(built)
    exits.loaded()
    signals = Signals(built.session)
    try:
        result = await _turn(built.session, parsed, ask)
    except CruError as error:
        if left_open(built.session, error, "" if ask.literal else ask.text):
            resume = resume_command(parsed, start.context, error.code)
            error.hint = "\n".join(filter(None, [error.hint, f"resume with: {resume}", needed_again(parsed)]))
        raise
    finally:
        await finish(built, signals)
        face.close()
    code = signals.code or exit_code(result)
    if face.problem:
        exits.complain(f"standard output: {face.problem}", f"the answer is in the log: cru -G {start.context} 1")
        TerminalOutput.lost, code = "", code or exits.ERROR
    face.result(result, code, resume_command(parsed, start.context, code) if unfinished(result) else "")
    if unfinished(result) and (again := needed_again(parsed)):
        face.say(again)
    return code


async def _turn(session: Session, parsed: Parsed, ask: Ask) -> LegResult:
    if ask.events:
        await session.open("resume" if parsed.has("resume") else "startup")  # plugins are to hear of it, too
    for event in ask.events:
        await session.parts.bus.dispatch(event)
    if parsed.has("resume"):
        return await session.resume()
    if ask.source == "inbox":
        return await _for_inbox(session, ask)
    session.submit(ask.text, attachments=ask.attachments, source=ask.source, literal=ask.literal)
    result = await session.run()
    if result is None and ask.attachments:
        session.parts.bus.stream.warn("what is attached is not used: the command gave no prompt")
    return result or LegResult("done")


async def _for_inbox(session: Session, ask: Ask) -> LegResult:
    """A turn about the messages that wait; none if another run has taken them."""
    with session.locked():
        if not session.parts.store.peek_inbox():
            return LegResult("done")
        session.submit(ask.text, source=ask.source, literal=ask.literal)
        return await session.run() or LegResult("done")


def _seat(built: Built) -> Any:
    from cru.faces.cli.command_face import CliFace

    return CliFace(built.store)


def with_session(
    start: Start, parsed: Parsed, work: Callable[[Session], Coroutine[Any, Any, None]], *, tells_failures: bool = True
) -> None:
    """Build a session, do something with it, close it. Raises Interrupted if a signal ended it. `tells_failures`: the face says which
    calls of tools failed."""

    async def run() -> int:
        face = face_for(parsed)
        face.tells_failures = tells_failures
        built = build(start, asker=asker_for(parsed), command=f"cru -C {start.context}", watch=face.watch)
        face.dress(built.settings.of(FaceSettings))
        exits.loaded()
        signals = Signals(built.session)
        try:
            await work(built.session)
        except CruError:
            if not signals.code:
                raise
        finally:
            await finish(built, signals)
            face.close()
        return signals.code

    code = exits.on_loop(run())
    if code:
        raise exits.SignalInterrupt(code)


def announce(start: Start, parsed: Parsed, events: tuple[Struct, ...]) -> None:
    """Let handlers hear events although no turn follows."""

    async def work(session: Session) -> None:
        await session.open()
        for event in events:
            await session.parts.bus.dispatch(event)

    with_session(start, parsed, work)


async def finish(built: Built, signals: Signals | None = None) -> None:
    """Announce the end and close every connection."""
    if signals is not None:
        signals.remove()
    await built.session.close()
    await built.close()


def left_open(session: Session, error: Exception | None = None, typed: str = "") -> bool:
    """Whether an error left a turn in its middle that `--resume` would go on with: the log knows. `typed`: if that is a command, only
    what it began counts."""
    from cru.contexts.errors import ContextHeld
    from cru.engine.prompts import find_unfinished as last_prompt

    if isinstance(error, ContextHeld):
        return False  # what is open there is another process's
    try:
        prompt = last_prompt(session.parts.store.visible(), session.parts.root)
    except CruError:
        return True  # it is there, but something of it is gone
    return prompt is not None and (prompt.source == "command" or split_command(typed) is None)


def unfinished(result: LegResult) -> bool:
    """Whether `--resume` would go on with it."""
    return result.cause in ("error", "interrupted") and bool(result.ref)


def exit_code(result: LegResult) -> int:
    """The exit status that a leg's end means."""
    if result.cause == "error":
        return result.code or exits.ERROR
    return CODES[result.cause]


def face_for(parsed: Parsed) -> Any:
    """JSON for programs, text for people and pipes."""
    if parsed.has("json"):
        from cru.faces.cli.json_mode.face import JsonFace

        return JsonFace()
    from cru.faces.cli.text_face import TextFace

    return TextFace(parsed.has("verbose"))


def asker_for(parsed: Parsed) -> Any:
    """A person at the terminal, if there is one: /dev/tty opens and stderr is a terminal."""
    import sys

    if parsed.has("json") or not sys.stderr.isatty():
        return None
    from cru.faces.cli.dialogs.asker import terminal_asker

    return terminal_asker()
