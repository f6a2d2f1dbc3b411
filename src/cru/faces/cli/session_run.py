"""Runs of a session with a face: one prompt and one turn, or other work in it. The exit status says how it ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.compose import FaceSettings, SessionBundle, Start, build
from cru.core.conversations import ContextHeld, LogLost
from cru.core.events.calling import describe_error
from cru.core.events.payloads import ToolFailed
from cru.core.events.stream import AgentCallFailed, CommandSaid, Notice, Published
from cru.core.models import ModelSettings
from cru.core.turn.background import finish_agents, run_to_end
from cru.core.turn.commands import split_command
from cru.core.turn.session import Session
from cru.core.turn.turn import LegResult, PromptSource
from cru.faces.cli.console import ExitStatus, TerminalOutput, complain, end_startup, say
from cru.faces.cli.event_loop import SignalHandlers, SignalInterrupt, run_async
from cru.faces.cli.flags import Parsed
from cru.faces.cli.text_face import TextFace

if TYPE_CHECKING:
    from cru.core.events.payloads import Attachment
    from cru.faces.cli.command_face import CliFace
    from cru.faces.cli.dialogs.asker import TerminalAsker
    from cru.faces.cli.json_mode.face import JsonFace

EXIT_STATUSES = {
    "done": ExitStatus.DONE,
    "cancelled": ExitStatus.DENIED,
    "halted": ExitStatus.DENIED,
    "interrupted": ExitStatus.INTERRUPTED,
}


class PromptRequest(Struct, frozen=True):
    """What a run is asked to do.

    text: the prompt
    attachments: files that go with it
    events: what handlers hear first
    source: where the text is from, if nobody typed it
    literal: it is no command, whatever it begins with
    key: it is asked once (cru.core.turn.idempotency)
    typed: the part of the text that a person wrote: images that it names with `@` go along
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    events: tuple[Struct, ...] = ()
    source: PromptSource = "user"
    literal: bool = False
    key: str = ""
    typed: str = ""


class RunningSession(Struct, frozen=True):
    """A session that is built, and the signals that end it."""

    built: SessionBundle
    signals: SignalHandlers


@asynccontextmanager
async def open_run(
    start: Start, parsed: Parsed, face: TextFace | JsonFace, command: str = ""
) -> AsyncIterator[RunningSession]:
    """Build a session for the block; afterwards its end is announced and every connection closed. `command`: what
    others are told who find the context held."""
    asker = _asker_for(parsed)
    built = build(start, asker=asker, command=command or f"cru -C {start.context}", watch=face.watch)
    built.session.parts.services.face.divert_prints = divert_prints
    built.session.parts.models.ledger.needs_cost |= face.tells_cost
    face.dress(built.settings.of(FaceSettings), built.session.parts)
    if asker is not None:
        built.models.ask = partial(_ask_for_model, start, asker)
    end_startup()
    signals = SignalHandlers(built.session)
    async with _closed_after(built.session.close, built.close, signals.remove, face.close):
        yield RunningSession(built, signals)


async def _ask_for_model(start: Start, asker: TerminalAsker, settings: ModelSettings) -> ModelSettings | None:
    """What a person at the terminal chooses where no model is configured."""
    from cru.faces.cli.setup.first_run import ask_for_model

    return await ask_for_model(start, asker, settings)


@asynccontextmanager
async def _closed_after(*steps: Callable[[], Awaitable[object] | None]) -> AsyncIterator[None]:
    """Take every step after the block, whatever the block and the steps before it raise. The first error is raised, the others are told."""
    errors: list[Exception] = []

    async def attempt(step: Callable[[], Awaitable[object] | None]) -> None:
        try:
            work = step()
            if work is not None:
                await work
        except Exception as error:  # noqa: BLE001  raised or told below
            errors.append(error)

    try:
        async with AsyncExitStack() as closing:
            for step in reversed(steps):
                closing.push_async_callback(attempt, step)
            yield
    except BaseException:
        _tell_errors(errors)
        raise
    _tell_errors(errors[1:])
    if errors:
        raise errors[0]


def _tell_errors(errors: Iterable[Exception]) -> None:
    for error in errors:
        complain(f"while closing: {describe_error(error)}")


@asynccontextmanager
async def open_session(start: Start, warn: Callable[[Notice], None] | None = None) -> AsyncIterator[SessionBundle]:
    """Build a session for the block, without a face and without a turn. `warn` hears of what is not merely information."""

    def tell(item: Published[Notice]) -> None:
        if warn is not None and item.payload.level != "info":
            warn(item.payload)

    built = build(start, watch=lambda bus: bus.stream.subscribe(tell, Notice))
    built.session.parts.services.face.divert_prints = divert_prints
    async with _closed_after(built.session.close, built.close):
        yield built


def divert_prints(tell: Callable[[], None]) -> None:
    """From now on standard output is the answer's alone: what plugins print there goes to standard error; `tell` when it first does."""
    from cru.faces.cli.diversion import divert

    divert(tell)


def say_notice(notice: Notice) -> None:
    say(f"cru: {notice.text}")


def one_shot(start: Start, parsed: Parsed, request: PromptRequest) -> int:
    """Ask once (or resume) and print; returns the exit status."""
    return run_async(_one_shot(start, parsed, request))


async def _one_shot(start: Start, parsed: Parsed, request: PromptRequest) -> int:
    face = _face_for(parsed)
    async with open_run(start, parsed, face) as run:
        built, signals = run.built, run.signals
        built.face = lambda: _command_face(built)
        refusals = _watch_refusals(built.session) if parsed.has("fail-on-refusal") else []
        try:
            result = await _turn(built.session, parsed, _with_named_images(start, request))
        except CruError as error:
            error.hint = _spell_hint(error.hint, parsed, start)
            if start.private is None and is_left_open(built.session, error, "" if request.literal else request.text):
                error.hint = "\n".join(filter(None, [error.hint, *_resume_hints(parsed, start, error.code)]))
            raise
    code = signals.code or exit_status(result) or (ExitStatus.DENIED if refusals else ExitStatus.DONE)
    if face.problem:
        hint = f"the answer is in the log: cru -G {start.context} 1" if start.private is None else ""
        complain(f"standard output: {face.problem}", hint)
        TerminalOutput.lost, code = "", code or ExitStatus.ERROR
    if result.hint:
        result = replace(result, hint=_spell_hint(result.hint, parsed, start))
    if start.private is not None or not can_resume(result):
        face.result(result, code)
        return code
    from cru.faces.cli.continuation import resume_command, secrets_hint

    face.result(result, code, resume_command(parsed, start.context, code))
    if hint := secrets_hint(parsed):
        face.say(hint)
    return code


def _spell_hint(hint: str, parsed: Parsed, start: Start) -> str:
    """Return a hint whose commands work in the shell, for the conversation of this run."""
    from cru.faces.cli.continuation import spell_outside_chat

    context = start.context if parsed.has("transient-context") else ""
    return spell_outside_chat(hint, context, keeps=start.private is None)


def _watch_refusals(session: Session) -> list[str]:
    """The names of tools whose calls were refused by a rule, a hook or a person, also below sub-agents; filled while the session runs."""
    refusals: list[str] = []

    def note(item: Published[ToolFailed] | Published[AgentCallFailed]) -> None:
        if item.payload.which in ("policy", "hook", "human"):
            refusals.append(item.payload.name)

    session.parts.bus.stream.subscribe(note, ToolFailed)
    session.parts.bus.stream.subscribe(note, AgentCallFailed)
    return refusals


def _resume_hints(parsed: Parsed, start: Start, code: int) -> tuple[str, str]:
    from cru.faces.cli.continuation import resume_command, secrets_hint

    return f"resume with: {resume_command(parsed, start.context, code)}", secrets_hint(parsed)


async def _turn(session: Session, parsed: Parsed, request: PromptRequest) -> LegResult:
    if request.events:
        await session.open("resume" if parsed.has("resume") else "startup")  # plugins are to hear of it, too
    for event in request.events:
        await session.parts.bus.dispatch(event)
    if parsed.has("resume"):
        return await finish_agents(session, await session.resume()) or LegResult("done")
    if request.source == "inbox":
        return await _inbox_turn(session, request)
    if request.attachments:
        await _admit(session, request)
    if request.key:
        return await _turn_once(session, request)
    session.submit(request.text, attachments=request.attachments, source=request.source, literal=request.literal)
    result = await run_to_end(session)
    if result is None and request.attachments:
        session.parts.bus.stream.warn("what is attached is not used: the command gave no prompt")
    return result or LegResult("done")


def _with_named_images(start: Start, request: PromptRequest) -> PromptRequest:
    """The request with the images that its text names. Raises BadAttachment."""
    if "@" not in request.typed:
        return request
    from cru.core.turn.attachments import read_named_images

    attached = [attachment.image for attachment in request.attachments if attachment.image]
    named = read_named_images(request.typed, (start.cwd, start.root))
    more = tuple(attachment for attachment in named if attachment.image not in attached)
    return replace(request, attachments=request.attachments + more)


async def _admit(session: Session, request: PromptRequest) -> None:
    """Raises what admit_images raises; then nothing was logged."""
    if any(attachment.image for attachment in request.attachments):
        from cru.core.turn.images import admit_images

        await session.open("startup")  # plugins may have a say in who is asked
        with session.locked():
            await admit_images(session.parts, request.attachments)


async def _turn_once(session: Session, request: PromptRequest) -> LegResult:
    """A turn about a prompt with a key; an answer that is there already is shown again."""
    from cru.core.turn.idempotency import send_once

    result, is_new = await send_once(session, request.key, request.text, request.attachments, request.literal)
    if not is_new and result.response:
        session.parts.bus.stream.tell(CommandSaid("idempotency-key", result.response))
    return await finish_agents(session, result) or result


async def _inbox_turn(session: Session, request: PromptRequest) -> LegResult:
    """A turn about the messages that wait; none if another run has taken them."""
    from cru.core.conversations.inbox import read_inbox

    with session.locked():
        if not read_inbox(session.parts.store.folder)[0]:
            return LegResult("done")
        session.submit(request.text, source=request.source, literal=request.literal)
        return await run_to_end(session) or LegResult("done")


def _command_face(built: SessionBundle) -> CliFace:
    from cru.faces.cli.command_face import CliFace

    return CliFace(built.store)


def with_session(
    start: Start,
    parsed: Parsed,
    work: Callable[[Session], Awaitable[object]],
    *,
    tells_failures: bool = True,
    cancels: bool = False,
) -> None:
    """Build a session, do something with it, close it. Raises SignalInterrupt if a signal ended it. `tells_failures`: the face says which
    calls of tools failed; `cancels`: a signal cancels the work, instead of ending the session's turn."""

    async def run() -> int:
        face = _face_for(parsed)
        face.tells_failures = tells_failures
        async with open_run(start, parsed, face) as running:
            built, signals = running.built, running.signals
            task = asyncio.current_task() if cancels else None
            if task is not None:
                signals.on_end(task.cancel)
            try:
                await work(built.session)
            except CruError:
                if not signals.code:
                    raise
            except asyncio.CancelledError:
                if task is None:
                    raise
                task.uncancel()
        return signals.code

    code = run_async(run())
    if code:
        raise SignalInterrupt(code)


def announce(start: Start, parsed: Parsed, events: tuple[Struct, ...]) -> None:
    """Let handlers hear events although no turn follows."""

    async def work(session: Session) -> None:
        await session.open()
        for event in events:
            await session.parts.bus.dispatch(event)

    with_session(start, parsed, work)


def is_left_open(session: Session, error: Exception | None = None, typed: str = "") -> bool:
    """Whether an error left a turn in its middle that `--resume` would go on with: the log knows. `typed`: if that is a command, only
    what it began counts."""
    from cru.core.turn.unfinished import find_unfinished

    if isinstance(error, ContextHeld | LogLost):
        return False  # what is open there is another process's, or is there no more
    try:
        prompt = find_unfinished(session.parts.store.visible(), session.parts.place.root)
    except CruError:
        return True  # it is there, but something of it is gone
    return prompt is not None and (prompt.source == "command" or split_command(typed) is None)


def can_resume(result: LegResult) -> bool:
    """Whether `--resume` would go on with it."""
    return result.cause in ("error", "interrupted") and bool(result.ref)


def exit_status(result: LegResult) -> int:
    """The exit status that a leg's end means."""
    if result.cause == "error":
        return result.code or ExitStatus.ERROR
    if result.outcome.kind == "done":
        return ExitStatus.DONE
    return EXIT_STATUSES[result.cause]


def _face_for(parsed: Parsed) -> TextFace | JsonFace:
    """JSON for programs, text for people and pipes."""
    if parsed.has("json"):
        from cru.faces.cli.json_mode.face import JsonFace

        return JsonFace()
    return TextFace(parsed.has("verbose"))


def _asker_for(parsed: Parsed) -> TerminalAsker | None:
    """A person at the terminal, if there is one: /dev/tty opens and stderr is a terminal."""
    if parsed.has("json") or not sys.stderr.isatty():
        return None
    from cru.faces.cli.dialogs.asker import open_terminal_asker

    return open_terminal_asker()
