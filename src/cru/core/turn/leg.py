"""One leg: a prompt up to its final reply, driven through the states of turn/turn.py (docs/turn.md)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import Span, ToolCall, ToolSpec
from cru.core.events.answers import Answer
from cru.core.events.bus import Bus
from cru.core.events.payloads import AgentResponded, LegStarted, StreamingDelta, SystemPromptBuild, ToolsSelect
from cru.core.models.protocol import ContextTooLong, ModelError
from cru.core.turn import EmptyReply, log_writer
from cru.core.turn.parts import Parts, ResolvedModel
from cru.core.turn.prompts import PendingContext, context_texts, final_reply, receive_prompt, supersede
from cru.core.turn.round import ModelReply, RequestPlan, ask_model
from cru.core.turn.turn import USER, Cause, LegResult, LegState, Prompt, StateMachine, Turn, TurnStopped, stop_for

if TYPE_CHECKING:
    from cru.core.turn.calls.tool_call import FinishedCall
    from cru.core.turn.compaction import Compactor
    from cru.core.turn.log_sync import LogSync

EMPTY_RETRIES = 2
NO_MEMORY = "there is not enough memory for this turn"
NO_MEMORY_HINT = "a shorter conversation needs less; `/compact` makes this one shorter; `/clear` starts from nothing"


class Leg:
    """Runs once: begin, then run. What it collected is readable afterwards, whatever ended it.

    ref: the log entry of its prompt
    rounds: requests so far, retries not counted
    recurse: the note of a call of `recurse`; None: there was none
    """

    def __init__(
        self, parts: Parts, machine: StateMachine, prompt: Prompt, turn: Turn, pending: PendingContext
    ) -> None:
        self.parts = parts
        self.turn = turn
        self.ref = prompt.ref
        self.rounds = 0
        self.recurse: str | None = None
        self._machine = machine
        self._prompt = prompt
        self._pending = pending
        self._text = self._model = ""
        self._reply: ModelReply | None = None
        self._is_rescued = False
        self._sync: LogSync | None = None
        self._known_compactor: Compactor | None = None
        self._again: tuple[ToolCall, ...] = ()
        self._selected: set[str] = set()

    def begin(self) -> None:
        """Enter receiving and log the prompt, so that whatever ends the leg has something to refer to."""
        self._machine.to(LegState.RECEIVING)
        self.turn.called_user = False
        before = supersede(self.parts, self._prompt, self._pending)
        self.ref = log_writer.begin_leg(self.parts, self._prompt, self.ref, *before)

    async def run(self) -> LegResult:
        """All states before settling; raises only what is a defect. Cancelling the task interrupts the leg."""
        try:
            try:
                await self._run_rounds()
            finally:
                if self._sync is not None:
                    await self._sync.finish()
            return self._finish("done")
        except TurnStopped as stop:
            return self._finish(stop.cause, reason=stop.reason, outcome=stop.outcome)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return self.interrupted()
        except CruError as error:
            return self._finish("error", error=error.message, hint=error.hint, code=error.code)
        except OSError as error:
            return self._finish("error", error=str(error), code=1)
        except MemoryError:
            self._reply = None  # what is left must be enough to write down how this ended
            return self._finish("error", error=NO_MEMORY, hint=NO_MEMORY_HINT, code=1)

    def interrupted(self) -> LegResult:
        """The result of a leg whose task was cancelled, also before it took its first step."""
        return self._finish("interrupted", reason="interrupted")

    async def _run_rounds(self) -> None:
        parts, prompt = self.parts, self._prompt
        text, context, model = prompt.text, tuple[str, ...](), prompt.model
        if not prompt.resolved:
            text, context, model = await receive_prompt(parts, prompt, self.ref, self._pending)
        elif not self._resume():
            return
        self._machine.to(LegState.PREPARING)
        resolved = await parts.models.choose(model)
        spans, tools = await self._prepare(resolved, text)
        plan = RequestPlan(resolved, spans, tools, self.ref, text, not prompt.resolved, context)
        self._warn_if_full(plan)
        if self._again and await self._run_tools(self._again):
            return
        if self._again:
            self._machine.to(LegState.PREPARING)
        while True:
            self.rounds += 1
            plan.round = self.rounds
            await self._check_budget()
            if self.rounds > 1 and self.parts.services.lifecycle.before_round:
                await self._add_tools(plan)
            if await self._compact_if_full(plan):
                self._forget_results()
                plan.spans = await self._build_system_prompt()
            calls = await self._respond(await self._request_reply(plan))
            if not calls or await self._run_tools(calls):
                self._warn_if_full(plan)
                return
            plan.fresh = False
            self._machine.to(LegState.PREPARING)

    @property
    def _compactor(self) -> Compactor:
        if self._known_compactor is None:
            from cru.core.turn.compaction import Compactor

            self._known_compactor = Compactor(self.parts)
        return self._known_compactor

    def _can_fill(self, resolved: ResolvedModel) -> bool:
        """Whether the model's window is known, or worth looking up: only then anything is loaded that measures what is in it."""
        return self.parts.history.is_large or bool(resolved.window or self.parts.settings.context_window_limit)

    async def _compact_if_full(self, plan: RequestPlan) -> bool:
        return self._can_fill(plan.resolved) and await self._compactor.fit(
            plan.resolved, plan.spans, plan.tools, self.ref
        )

    def _warn_if_full(self, plan: RequestPlan) -> None:
        if self._can_fill(plan.resolved):
            from cru.core.turn.compaction import warn_if_full

            warn_if_full(self.parts, plan.resolved, plan.spans, plan.tools)

    def _resume(self) -> bool:
        """Whether there is anything to do: a resumed leg whose final reply is there already goes straight to settling."""
        final = final_reply(self.parts.store.visible(), self.ref)
        if final is not None:
            self._text = final
            return False
        if self.parts.history.open_calls():
            from cru.core.turn.interrupted_calls import settle_open_calls

            self._again = settle_open_calls(self.parts)
        if self._prompt.before:
            log_writer.inject(self.parts, "\n\n".join(self._prompt.before))
        return True

    async def _prepare(self, resolved: ResolvedModel, text: str) -> tuple[tuple[Span, ...], tuple[ToolSpec, ...]]:
        """First pass of preparing: fuel, system prompt and tools, fixed for the leg."""
        parts, turn = self.parts, self.turn
        started = await parts.bus.dispatch(LegStarted(text, turn.fuel))
        turn.take_fuel(started.payload.fuel)
        turn.fallback = started.payload.fallback
        _raise_if_halted(started.answer)
        spans = await self._build_system_prompt()
        if parts.services.lifecycle.before_round:
            await parts.take_arrivals(resolved)
        return spans, await self._select_tools(resolved)

    async def _select_tools(self, resolved: ResolvedModel) -> tuple[ToolSpec, ...]:
        """Those that handlers let through, of the tools that they have not been asked about in this leg."""
        parts = self.parts
        names = parts.tools.names() if parts.offers_tools(resolved) else ()
        selected = await parts.bus.dispatch(ToolsSelect(names))
        _raise_if_halted(selected.answer)
        added = [name for name in selected.payload.tools if name not in names]
        if added:
            parts.bus.stream.warn(
                f"tools:select may only narrow: {', '.join(added)} left out", selected.changed_by("tools")
            )
        fresh = [n for n in selected.payload.tools if n in names and n not in self._selected]
        self._selected.update(names)
        return parts.tools.specs(fresh)

    async def _add_tools(self, plan: RequestPlan) -> None:
        """Tools that have come since the last request go behind the others: what was sent stays as it was."""
        await self.parts.take_arrivals(plan.resolved)
        if not self._selected.issuperset(self.parts.tools.names()) and self.parts.offers_tools(plan.resolved):
            plan.tools += await self._select_tools(plan.resolved)

    async def _build_system_prompt(self) -> tuple[Span, ...]:
        """The system prompt: once a leg, and again after a compaction, since the summary is one of its sections."""
        parts = self.parts
        built = await parts.bus.dispatch(SystemPromptBuild(parts.prompt.sections()))
        _raise_if_halted(built.answer)
        texts = context_texts(parts, built.answer)
        extra = (Span("added", f"added by {built.by}", "\n\n".join(texts)),) if texts else ()
        return (*built.payload.sections, *extra)

    async def _request_reply(self, plan: RequestPlan) -> ModelReply:
        """One request; again if the reply is empty, once more after a compaction if it was too large, and to the next model of a category
        if one fails or refuses."""
        parts, empty = self.parts, 0
        plan.tries, self._is_rescued = [], False
        while True:
            if self._machine.state is not LegState.CALLING:
                self._machine.to(LegState.CALLING)
            await self._check_budget()
            await self._flush_pending(plan)
            reply = self._reply = ModelReply()
            try:
                self._model = await ask_model(parts, plan, reply)
            except ModelError as error:
                await self._recover(plan, error, reply)
                continue
            if await self._is_refused(plan, reply):
                continue
            if reply.reason == "length":
                _warn_cut(parts.bus, plan)
            if reply.parts or reply.content.strip():
                return reply
            empty += 1
            if empty > EMPTY_RETRIES:
                raise _empty_reply(plan.asked or plan.resolved)
            await self._count_empty_reply()
            parts.bus.stream.warn(f"empty reply from {reply.model}, asking again ({empty} of {EMPTY_RETRIES})")

    async def _recover(self, plan: RequestPlan, error: ModelError, reply: ModelReply) -> None:
        """Make it possible to ask again after an error: by a compaction, else with another model. Raises the error if neither can be."""
        asked = plan.asked or plan.resolved
        if isinstance(error, ContextTooLong) and not self._is_rescued:
            self._is_rescued = True
            if await self._compactor.rescue(asked, self.ref):
                self._forget_results()
                self._machine.to(LegState.PREPARING)
                plan.spans = await self._build_system_prompt()
                return
        if not error.others_may_answer or not asked.category:
            raise error
        from cru.core.turn.fallback import name_tries

        if not await self._fall_back(plan, error.message, reply):
            raise name_tries(error, plan.tries)

    async def _is_refused(self, plan: RequestPlan, reply: ModelReply) -> bool:
        """Whether a model of a category refused to answer, and another one is asked."""
        if plan.asked is None or not plan.asked.category:
            return False
        from cru.core.turn.fallback import REFUSALS

        return reply.reason in REFUSALS and await self._fall_back(plan, f"it refused ({reply.reason})", reply)

    async def _fall_back(self, plan: RequestPlan, why: str, reply: ModelReply) -> bool:
        """Whether another model of the category answers. It answers the rest of the leg too, unless a handler had chosen the category."""
        from cru.core.turn.fallback import fall_back

        await self.parts.bus.flush()
        asked = plan.asked or plan.resolved
        following = await fall_back(self.parts, asked, why, plan.tries, reply.content)
        if following is None:
            return False
        self._reply = None
        if asked is plan.resolved:
            plan.resolved = following
        return True

    async def _check_budget(self) -> None:
        """Raises TurnStopped("halted") if a budget is used up, and no person gives more."""
        if self.parts.models.ledger.reached() is not None or self.parts.models.ledger.must_tell_unpriced:
            from cru.core.turn.calls import limits

            await limits.check_budget(self.parts, self._pending)

    def _forget_results(self) -> None:
        if self.turn.guard is not None:
            self.turn.guard.forget()

    async def _count_empty_reply(self) -> None:
        from cru.core.turn.calls import limits

        await limits.check_calls(self.parts, self.turn, self._pending, (), "an empty reply")

    async def _flush_pending(self, plan: RequestPlan) -> None:
        """What waits for the next request becomes one user message; a fresh prompt has taken its share along already. A model that an
        inject names answers from here on."""
        if plan.fresh:
            return
        model, waiting = self._pending.model, self._pending.drain()
        if waiting:
            log_writer.inject(self.parts, waiting)
        if model:
            plan.resolved = await self.parts.models.choose(model)

    async def _respond(self, reply: ModelReply) -> tuple[ToolCall, ...]:
        """Log the reply, then tell the handlers."""
        self._machine.to(LegState.RESPONDING)
        calls = reply.calls(f"call_{self.ref[-8:]}_{self.rounds}")
        entry = log_writer.reply(self.parts, reply.content, calls, reply.thinking, self._model, usage=reply.usage)
        self._reply = None
        self._text = reply.content
        await self._announce_reply(AgentResponded(reply.content, reply.content, not calls, calls, reply.usage, entry))
        return calls

    async def _announce_reply(self, payload: AgentResponded) -> None:
        await self.parts.bus.flush()
        outcome = await self.parts.bus.dispatch(payload)
        self._pending.add(context_texts(self.parts, outcome.answer), outcome.answer.inject)
        _raise_if_halted(outcome.answer)

    async def _run_tools(self, calls: tuple[ToolCall, ...]) -> bool:
        """Run the batch; True if the leg is over after it."""
        from cru.core.turn.calls import batch

        parts, turn = self.parts, self.turn
        self._machine.to(LegState.TOOLING)
        if turn.fuel > 0:
            turn.fuel -= 1
        outcomes = await batch.run(parts, calls, turn, self._pending)
        if self._sync is None:
            from cru.core.turn.log_sync import LogSync

            self._sync = LogSync(parts.store.sync)
        await self._sync.wait()
        self._sync.begin_soon()
        for outcome in outcomes:
            if outcome.call.name == "recurse" and not outcome.is_error:
                self.recurse = _read_note(outcome.call)
        ended = [outcome for outcome in outcomes if outcome.ends_turn]
        for outcome in ended:
            await self._speak(outcome)
        is_over = bool(ended) or all(outcome.decided.terminates for outcome in outcomes)
        if is_over:
            turn.fallback, turn.called_user = USER, bool(ended)  # the calls said where the leg goes
        elif turn.fuel == 0:
            from cru.core.turn.calls import limits

            await limits.check_fuel(parts, turn, self._pending)
        return is_over

    async def _speak(self, outcome: FinishedCall) -> None:
        """A call that ended the turn (call_user) speaks for the agent: its message is shown and logged as the agent's."""
        text = outcome.text
        if not text.strip():
            return
        entry_id = log_writer.message_of_call(self.parts, text, outcome.call.id, self._model)
        self._text = text
        self.parts.bus.offer(StreamingDelta(text, 1))
        await self._announce_reply(AgentResponded(text, text, True, ref=entry_id))

    def _finish(self, cause: Cause, **details: Any) -> LegResult:
        """Leave the log complete: the text of a reply that broke off, and a result for every call."""
        try:
            if cause in ("interrupted", "error"):
                self._save_partial(cause)
            close_calls(self.parts)
        except CruError as error:  # the log cannot be written; that is what the user must know
            cause, details = "error", {"error": error.message, "hint": error.hint, "code": error.code}
        return LegResult(cause, self._text, self.ref, self.rounds, recurse=self.recurse, **details)

    def _save_partial(self, cause: Cause) -> None:
        reply, self._reply = self._reply, None
        if reply is not None and reply.content.strip():
            log_writer.reply(self.parts, reply.content, (), (), reply.model, partial=cause)
            self._text = reply.content


def close_calls(parts: Parts) -> None:
    """Every call of a reply has a result: those that have none get one that says so."""
    for call in parts.history.open_calls():
        log_writer.interrupted(parts, call)


def _raise_if_halted(answer: Answer) -> None:
    if answer.halt:
        raise stop_for(answer, "the leg")


def _warn_cut(bus: Bus, plan: RequestPlan) -> None:
    most = plan.resolved.parameters.get("max_tokens")
    limit = f"max_tokens = {most}" if most else "the limit of its length"
    bus.stream.warn(f"the reply is cut off: it reached {limit}; `max_tokens` in [api] sets how long one may be")


def _read_note(call: ToolCall) -> str:
    try:
        value = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return ""
    return str(value.get("note") or "") if isinstance(value, dict) else ""


def _empty_reply(resolved: ResolvedModel) -> CruError:
    return EmptyReply(
        f"{resolved.model.name} gave an empty reply {EMPTY_RETRIES + 1} times", "try again, or another model"
    )
