"""One prompt, one turn: build the session, run it until idle, leave with its exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from msgspec import Struct

from cru.app import Built, Start, build
from cru.engine.session import Session
from cru.engine.turn import LegResult
from cru.faces.cli import start as exits
from cru.faces.cli.flags import Parsed
from cru.faces.cli.signals import Signals

CODES = {"done": exits.DONE, "cancelled": exits.DENIED, "halted": exits.DENIED, "interrupted": exits.INTERRUPTED}


class Ask(NamedTuple):
    """What a run is asked to do; `events` is what handlers hear first."""

    text: str
    attachments: tuple[Any, ...] = ()
    events: tuple[Struct, ...] = ()


def one_shot(start: Start, parsed: Parsed, ask: Ask) -> int:
    """Ask once (or resume) and print; returns the exit status."""
    return asyncio.run(_one_shot(start, parsed, ask))


async def _one_shot(start: Start, parsed: Parsed, ask: Ask) -> int:
    face = face_for(parsed)
    built = build(start, asker=asker_for(parsed), command=f"cru -C {start.context}", watch=face.watch)
    signals = Signals(built.session)
    try:
        for event in ask.events:
            await built.session.parts.bus.dispatch(event)
        if parsed.has("resume"):
            result: LegResult | None = await built.session.resume()
        else:
            built.session.submit(ask.text, attachments=ask.attachments)
            result = await built.session.run()
    finally:
        await finish(built, signals)
        face.close()
    assert result is not None
    code = signals.code or exit_code(result)
    face.result(result, code)
    if result.cause in ("error", "interrupted") and result.ref:
        face.say(f"resume with: cru -C {start.context} --resume")
    return code


def with_session(start: Start, parsed: Parsed, work: Callable[[Session], Coroutine[Any, Any, None]]) -> None:
    """Build a session, do something with it, close it."""

    async def run() -> None:
        face = face_for(parsed)
        built = build(start, asker=asker_for(parsed), command=f"cru -C {start.context}", watch=face.watch)
        signals = Signals(built.session)
        try:
            await work(built.session)
        finally:
            await finish(built, signals)
            face.close()

    asyncio.run(run())


def announce(start: Start, parsed: Parsed, events: tuple[Struct, ...]) -> None:
    """Let handlers hear events although no turn follows."""

    async def work(session: Session) -> None:
        for event in events:
            await session.parts.bus.dispatch(event)

    with_session(start, parsed, work)


async def finish(built: Built, signals: Signals | None = None) -> None:
    """Announce the end and close every connection."""
    if signals is not None:
        signals.remove()
    await built.session.close()
    await built.close()


def exit_code(result: LegResult) -> int:
    """The exit status that a leg's end means."""
    if result.cause == "error":
        return result.code or exits.ERROR
    return CODES[result.cause]


def face_for(parsed: Parsed) -> Any:
    """JSON for programs, text for people and pipes."""
    if parsed.has("json"):
        from cru.faces.cli.json_face import JsonFace

        return JsonFace()
    from cru.faces.cli.text_face import TextFace

    return TextFace(parsed.has("verbose"))


def asker_for(parsed: Parsed) -> Any:
    """A person at the terminal, if there is one: /dev/tty opens and stderr is a terminal."""
    import sys

    if parsed.has("json") or not sys.stderr.isatty():
        return None
    from cru.faces.cli.asking import terminal_asker

    return terminal_asker()
