"""One leg: a prompt up to its final reply, driven through the states of engine/states (docs/turn.md)."""

from __future__ import annotations

import asyncio
from typing import Any

from cru.engine import batch, compaction, receive, round, scribe
from cru.engine.guards import EMPTY_RETRIES, LoopGuard
from cru.engine.history import INTERRUPTED
from cru.engine.parts import Parts, Voice
from cru.engine.round import Reply
from cru.engine.states import Machine, State
from cru.engine.turn import Cause, LegResult, NextRequest, Prompt, Stop, Turn, stop_for
from cru.events.payloads import AgentResponded, LegStarted, SystemPromptBuild, ToolsSelect
from cru.models.protocol import ContextTooLong
from cru.values.errors import CruError
from cru.values.messages import Request, Span, ToolCall, ToolSpec


class Leg:
    """Runs once. What it collected is readable afterwards, whatever ended it."""

    def __init__(self, parts: Parts, machine: Machine, prompt: Prompt, turn: Turn, coming: NextRequest) -> None:
        self.parts = parts
        self.turn = turn
        self.ref = prompt.ref
        self.rounds = 0
        self.recurse: str | None = None
        self._machine = machine
        self._prompt = prompt
        self._coming = coming
        self._guard = LoopGuard()
        self._text = ""
        self._reply: Reply | None = None
        self._model = ""
        self._sync: asyncio.Future[None] | None = None

    async def run(self) -> LegResult:
        """From receiving up to the door of settling; raises only what is a defect. Cancelling the task interrupts the leg."""
        try:
            await self._body()
            return self._result("done")
        except Stop as stop:
            return self._result(stop.cause, reason=stop.reason)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            self._save_partial("interrupted")
            return self._result("interrupted", reason="interrupted")
        except CruError as error:
            self._save_partial("error")
            return self._result("error", error=error.message, hint=error.hint, code=error.code)
        finally:
            await self._settled_on_disk()

    async def _body(self) -> None:
        parts = self.parts
        self._machine.to(State.RECEIVING)
        text = self._prompt.text
        if not self._prompt.resolved:
            self.ref, text = await receive.receive(parts, self._prompt, self._coming)
        elif not self._unfinished():
            return
        self._machine.to(State.PREPARING)
        voice = await parts.choose(self._prompt.model)
        spans, tools = await self._build(voice, text)
        while True:
            self.rounds += 1
            voice, spans = await self._fit(voice, spans)
            reply = await self._call(voice, spans, tools, text)
            calls = await self._respond(voice, reply)
            if not calls:
                return
            if await self._tools(calls):
                return
            self._machine.to(State.PREPARING)

    def _unfinished(self) -> bool:
        """A resumed leg whose final reply is there already goes straight to settling."""
        last = self.parts.history.messages()[-1:]
        if last and last[0].role == "assistant" and not last[0].calls and not self._prompt.before:
            self._text = last[0].content
            return False
        if self._prompt.before:
            scribe.inject(self.parts, "\n\n".join(self._prompt.before))
        return True

    async def _build(self, voice: Voice, text: str) -> tuple[tuple[Span, ...], tuple[ToolSpec, ...]]:
        """First pass of preparing: fuel, system prompt and tools, fixed for the leg."""
        parts, turn = self.parts, self.turn
        started = await parts.bus.dispatch(LegStarted(text, turn.fuel, turn.fallback))
        turn.fuel, turn.fallback = started.payload.fuel, started.payload.fallback
        sections = parts.sections()
        built = await parts.bus.dispatch(SystemPromptBuild(sections))
        spans = built.payload.sections
        if built.answer.context:
            spans = (*spans, Span("added", f"added by {built.by}", "\n\n".join(built.answer.context)))
        offered = parts.offer_tools if parts.offer_tools is not None else getattr(voice.model, "tools_by_default", True)
        names = parts.tools.names() if offered else ()
        selected = await parts.bus.dispatch(ToolsSelect(names))
        wider = [name for name in selected.payload.tools if name not in names]
        if wider:
            parts.bus.stream.warn(f"tools:select may only narrow: {', '.join(wider)} left out", selected.by)
        if started.answer.halt or built.answer.halt or selected.answer.halt:
            raise Stop("halted", started.answer.reason or built.answer.reason or selected.answer.reason)
        return spans, parts.tools.specs([n for n in selected.payload.tools if n in names])

    async def _fit(self, voice: Voice, spans: tuple[Span, ...]) -> tuple[Voice, tuple[Span, ...]]:
        """The size check before every request; after a compaction the sections are read again."""
        if await compaction.fit(self.parts, voice, spans, self.ref):
            built = await self.parts.bus.dispatch(SystemPromptBuild(self.parts.sections()))
            return voice, built.payload.sections
        return voice, spans

    async def _call(self, voice: Voice, spans: tuple[Span, ...], tools: tuple[ToolSpec, ...], text: str) -> Reply:
        """One request, again if the reply is empty, and once more after a compaction if it was too large."""
        empty = 0
        compacted = False
        while True:
            if self._machine.state is not State.CALLING:
                self._machine.to(State.CALLING)
            reply = self._reply = Reply()
            try:
                await self._ask(voice, spans, tools, text, reply)
            except ContextTooLong:
                if compacted or not await compaction.rescue(self.parts, voice, self.ref):
                    raise
                compacted = True
                self._machine.to(State.PREPARING)
                continue
            if reply.text or reply.parts:
                return reply
            empty += 1
            if empty > EMPTY_RETRIES:
                raise _empty(voice)
            self.parts.bus.stream.warn(
                f"empty reply from {voice.model.name}, asking again ({empty} of {EMPTY_RETRIES})"
            )

    async def _ask(
        self, voice: Voice, spans: tuple[Span, ...], tools: tuple[ToolSpec, ...], text: str, reply: Reply
    ) -> None:
        parts = self.parts
        self._flush_coming()
        messages = parts.history.messages()
        request = Request(voice.model.name, spans, messages, tools, voice.parameters)
        said = await round.announce(parts, request, text if self.rounds == 1 else "", self.rounds)
        if said.answer.stops:
            raise stop_for(said.answer, "the request")
        request = said.request
        facts: dict[str, Any] = {"round": self.rounds}
        if said.messages_by:
            facts.update(messages=request.messages, changed_by=said.messages_by)
            parts.bus.stream.warn(
                f"{said.messages_by} replaced the messages: the prompt cache breaks here", said.messages_by
            )
        elif self._beside(said, text):
            request = _with_messages(request, parts)
        if request.model != voice.model.name:
            voice = await parts.choose(request.model)
            request = _with_model(request, voice)
        self._model = f"{voice.model.provider}:{voice.model.name}"
        await round.send(parts, voice, request, reply, upto=parts.store.entries()[-1].id, **facts)

    def _beside(self, said: round.Announced, text: str) -> bool:
        """Log what `message:before_send` added, so that it stays: beside the prompt first, later as a message of its own."""
        parts, answer = self.parts, said.answer
        added = list(answer.context)
        if self.rounds > 1 or self._prompt.resolved:
            if answer.inject is not None:
                added.append(answer.inject.content)
            if added:
                scribe.inject(parts, "\n\n".join(added))
            return bool(added)
        new = receive.around(answer, said.prompt)
        if new == text and not added:
            return False
        scribe.resolved_again(parts, self.ref, new, added)
        return True

    def _flush_coming(self) -> None:
        waiting = self._coming.drain() if self.rounds > 1 else ""
        if waiting:
            scribe.inject(self.parts, waiting)

    async def _respond(self, voice: Voice, reply: Reply) -> tuple[ToolCall, ...]:
        """Log the reply, then tell the handlers."""
        parts = self.parts
        self._machine.to(State.RESPONDING)
        calls = reply.calls(f"call_{self.ref[-8:]}_{self.rounds}")
        entry = scribe.reply(parts, reply.content, calls, reply.thinking, self._model)
        self._reply = None
        self._text = reply.content
        await parts.bus.flush()
        payload = AgentResponded(reply.content, reply.content, not calls, calls, reply.usage, entry)
        outcome = await parts.bus.dispatch(payload)
        self._coming.take(outcome.answer)
        if outcome.answer.halt:
            raise Stop("halted", outcome.answer.reason)
        return calls

    async def _tools(self, calls: tuple[ToolCall, ...]) -> bool:
        """Run the batch; True if the leg is over after it."""
        parts, turn = self.parts, self.turn
        self._machine.to(State.TOOLING)
        for call in calls:
            if call.name == "recurse":
                self.recurse = _note(call)
        if turn.fuel > 0:
            turn.fuel -= 1
        ended = await batch.run(parts, calls, turn, self._coming, self._guard)
        await self._settled_on_disk()
        self._sync = asyncio.get_running_loop().run_in_executor(None, parts.store.sync)
        if turn.fuel == 0 and not ended:
            raise Stop("halted", "out of fuel: the limit of tool batches and continuations for one prompt is reached")
        return ended

    async def _settled_on_disk(self) -> None:
        if self._sync is not None:
            sync, self._sync = self._sync, None
            await sync

    def _save_partial(self, cause: Cause) -> None:
        reply = self._reply
        if reply is not None and reply.text:
            scribe.reply(self.parts, reply.content, (), (), self._model, partial=cause)
            self._text = reply.content

    def _result(self, cause: Cause, **more: Any) -> LegResult:
        close_calls(self.parts)
        return LegResult(cause, self._text, self.ref, self.rounds, recurse=self.recurse, **more)


def close_calls(parts: Parts) -> None:
    """Every call of a reply has a result: those that have none get one that says so."""
    for call_id in parts.history.open_calls():
        scribe.result(parts, ToolCall(call_id, "tool"), INTERRUPTED, True, which="interrupted")


def _note(call: ToolCall) -> str:
    import msgspec

    try:
        value = msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        return ""
    return str(value.get("note", "")) if isinstance(value, dict) else ""


def _empty(voice: Voice) -> CruError:
    from cru.engine.errors import EmptyReply

    return EmptyReply(
        f"{voice.model.name} gave an empty reply {EMPTY_RETRIES + 1} times", "try again, or another model"
    )


def _with_messages(request: Request, parts: Parts) -> Request:
    from msgspec.structs import replace

    return replace(request, messages=parts.history.messages())


def _with_model(request: Request, voice: Voice) -> Request:
    from msgspec.structs import replace

    return replace(request, model=voice.model.name)
