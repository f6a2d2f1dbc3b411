"""A session: live work on one context. It queues prompts, runs legs one after another, and says when it is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import Entry
from cru.core.events.bus import purpose
from cru.core.events.payloads import Attachment, Custom, InjectionPending, SessionEnded, SessionIdle, SessionStarted
from cru.core.events.stream import CommandSaid, Notice, StateChanged
from cru.core.tools.protocol import Tool
from cru.core.turn import Interrupted, history, log_writer, settling
from cru.core.turn.commands import CommandResult, split_command
from cru.core.turn.interruption import InterruptibleWork
from cru.core.turn.leg import Leg, close_calls
from cru.core.turn.parts import Parts
from cru.core.turn.prompts import PendingContext, context_texts, describe_unfinished
from cru.core.turn.turn import (
    CONTINUATION_SOURCES,
    TYPED_SOURCES,
    LegResult,
    LegState,
    Prompt,
    PromptQueue,
    PromptSource,
    StateMachine,
    Turn,
    end_turn,
)

if TYPE_CHECKING:
    from cru.core.turn.calls.tool_call import FinishedCall


class Session:
    """One context, one bus, one queue. All methods belong to the loop's thread."""

    def __init__(self, parts: Parts, command: str = "cru") -> None:
        self.parts = parts
        self.command = command
        self.machine = StateMachine(self._record_transition)
        self._queue = PromptQueue()
        self._pending = PendingContext()
        self._work = InterruptibleWork(parts.bus.stream)
        self._seen: tuple[list[Entry], int] = ([], -1)
        self._turn: Turn | None = None
        self._turn_count = 0
        self._is_open = self._holds_lock = False
        self._immediate: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        return self.machine.state is not LegState.IDLE

    def submit(
        self,
        text: str,
        *,
        attachments: tuple[Attachment, ...] = (),
        source: PromptSource = "user",
        literal: bool = False,
        key: str = "",
    ) -> None:
        """Queue what a user typed, a prompt or a command; `run` takes it. While something runs it waits and comes next; a command
        like /stop does not wait. Text of another source is a prompt, whatever it begins with, and so is `literal` text. `key`: see
        idempotency.py."""
        if source != "user":
            self._queue.put(Prompt(text, source, attachments))
            return
        named = split_command(text) if self._work.is_running and not literal else None
        if named is not None and self.parts.services.commands.at_once(named[0]):
            task = asyncio.ensure_future(self._run_immediate(*named))
            self._immediate.add(task)
            task.add_done_callback(self._immediate.discard)
            return
        self._queue.put(Prompt(text, "queue" if self.busy else "user", attachments, literal=literal, key=key))

    def add_context(self, texts: Iterable[str]) -> None:
        """What the model gets beside the next prompt."""
        self._pending.context.extend(texts)

    def withdraw(self, text: str) -> None:
        """What was submitted, and could not begin, is not to begin later by itself."""
        self._queue.remove(text)

    def interrupt(self) -> bool:
        """End whatever runs now (Ctrl-C, /stop); False if nothing does. Nothing new begins in it."""
        return self._work.interrupt()

    def stop(self) -> tuple[bool, int]:
        """Interrupt, and let the queue go (/stop): whether something ran, and how many prompts and commands waited."""
        return self.interrupt(), self._queue.clear()

    def end(self) -> None:
        """Interrupt, and start nothing more: what is queued is dropped with a note, and what must be announced yet has two seconds."""
        self._queue.closed = True
        self._work.end()

    async def open(self, source: str = "startup") -> None:
        """Announce the session, once. What raises while it opens is tried again the next time: nothing is asked before it is done."""
        if self._is_open:
            return
        self._is_open = True
        opening = self.parts.services.lifecycle.opening
        try:
            while opening:
                await opening[0](self.parts)
                del opening[0]
            self._refresh()
        except BaseException:  # whatever it is, Ctrl-C too: it is tried again before the next prompt, and raised now
            self._is_open = False
            raise
        store, services = self.parts.store, self.parts.services
        facts = store.name, str(store.folder), bool(store.entries()), source, self.parts.models.configured_name()
        answer = (await self.parts.bus.dispatch(SessionStarted(*facts, services.sandbox.state))).answer
        self._pending.context.extend(context_texts(self.parts, answer))
        self._queue.opening = answer.inject

    async def run(self) -> LegResult | None:
        """Work the queue until idle, holding the context's lock; the result of the last leg, None if there was none. Raises
        UnknownCommand and what a command raises; what is queued behind it stays queued."""
        was_asked = len(self._queue) > 0
        while (named := self._queue.command()) and self.parts.services.commands.only_reads(named[0]):
            await self._open_for_reading(named[0])
            await self._run_command()
        if was_asked and not self._queue:
            return None
        with self.locked():
            self._refresh()
            return await self._run_turns(None, "startup")

    async def _open_for_reading(self, name: str) -> None:
        """A command that only shows something, or leaves, works with a context that is gone or a disk that is full, too. Raises
        Interrupted."""
        try:
            await self._work.run(self.open(), f"/{name}")
        except Interrupted:
            raise
        except (CruError, OSError) as error:
            self.parts.bus.stream.warn(f"the session is not open: {error}")

    async def wait_for_agents(self) -> bool:
        """Wait until sub-agents in the background bring something; False if none will. Raises Interrupted."""
        work = self.parts.services.tasks.background
        return work is not None and not self._queue.closed and await self._work.run(work.wait_for_agents())

    async def resume(self) -> LegResult:
        """Go on with the last prompt that is not done, and with tasks that a kill has cut off. Raises NothingToResume."""
        from cru.core.turn.unfinished import find_unfinished_work

        with self.locked():
            self._refresh()
            prompt, following = await self._work.run(find_unfinished_work(self.parts))
            if following is not None:
                self._queue.put(following)
            result = await self._run_turns(prompt, "resume")
            assert result is not None
            return result

    async def compact(self, instructions: str = "") -> None:
        """`cru -z`; `instructions`: what a person wants the summary to heed. Raises NothingToCompact, ModelError and Interrupted."""
        with self.locked():
            self._refresh()
            await self._work.run(self._compact(instructions), "the compaction")

    async def _compact(self, instructions: str) -> None:
        from cru.core.turn import compaction

        await self.open()
        resolved = await self.parts.models.choose("")
        await compaction.compact_by_hand(self.parts, resolved, instructions)

    async def archive(self) -> None:
        """`cru -a`: the model starts from nothing; the log keeps every line. Raises Interrupted."""
        with self.locked():
            self._refresh()
            await self._work.run(self._archive())

    async def _archive(self) -> None:
        from cru.core.turn import compaction

        await self.open()
        await compaction.archive(self.parts, self._rebuild)

    async def call_tool(
        self, name: str, make_arguments: Callable[[Tool | None], str], origin: str = "user"
    ) -> FinishedCall:
        """`cru -P`: a call by hand, beside the conversation; `make_arguments` gives its arguments (JSON) for the tool, which is known only
        now; `origin` is user, or script if a program asks. Raises Interrupted."""
        from cru.core.turn.calls import side_calls

        await self._work.run(self.open())
        tool = self.parts.tools.find(name) or await self._work.run(self.parts.await_tool(name))
        with side_calls.hold_context(self.locked, tool), purpose(side_calls.BY_HAND):
            return await self._work.run(side_calls.call_by_hand(self.parts, name, make_arguments(tool), origin), name)

    async def close(self, reason: str = "exit") -> None:
        """Announce the end, once. Raises nothing of a handler's."""
        await asyncio.gather(*self._immediate)
        if self._is_open:
            self._is_open = False
            with suppress(Interrupted):
                await self._work.run(self.parts.bus.dispatch(SessionEnded(reason)))
        for close in self.parts.services.lifecycle.closing:
            with suppress(Interrupted):
                await self._work.run(close())
        self.parts.recorder.flush()
        await self.parts.bus.close()

    async def _run_turns(self, first: Prompt | None, source: str) -> LegResult | None:
        """Turns until nothing is left to do. The lock is held."""
        try:
            await self._work.run(self.open(source))
        except Interrupted:
            self._drop_queue("interrupted")
            return LegResult("interrupted", reason="interrupted")
        self._queue.put_opening()
        if first is None and self._queue and (text := describe_unfinished(self.parts.store.visible())):
            self.parts.bus.stream.warn(
                f"the last prompt was not finished: “{text}”; it stays as it is (cru --resume goes on with it, before you ask "
                "something else)"
            )
        if first is None or not first.resolved:  # else the leg settles them
            close_calls(self.parts)
        result: LegResult | None = None
        prompt = first or await self._next()
        try:
            while prompt is not None:
                result, prompt = await self._run_turn(prompt)
                prompt = prompt or await self._next()
        except BaseException:  # a defect, or a log that cannot be written: the next run starts afresh
            self.machine = StateMachine(self._record_transition)
            raise
        if self.parts.history.count == len(self.parts.store.visible()):  # nobody else wrote meanwhile
            self._seen = self._log_position()
        return result

    async def _run_turn(self, prompt: Prompt) -> tuple[LegResult, Prompt | None]:
        """Legs until idle; the last result, and what `session:idle` or a late prompt starts after it."""
        following: Prompt | None = prompt
        while following is not None:
            turn = self._turn_of(following)
            result, following = await self._run_leg(following, turn)
        self.machine.to(LegState.IDLE)
        return await self._announce_idle(result, turn)

    async def _announce_idle(self, result: LegResult, turn: Turn) -> tuple[LegResult, Prompt | None]:
        """Say once that the agent awaits input. A prompt that was queued meanwhile goes before an inject's own leg; an inject beyond a
        limit ends the turn, halted."""
        try:
            idle = await self._work.run(self.parts.bus.dispatch(SessionIdle(self.parts.store.name)))
        except Interrupted:
            idle = None
        if idle is None or self._queue.closed:
            self._drop_queue("interrupted")
            return result, None
        inject = idle.answer.inject if result.cause == "done" else None
        if (queued := self._queue.prompt()) is not None:
            return result, settling.join_injects(queued, [inject] if inject is not None else [])
        if inject is None:
            return result, None
        try:
            checks = settling.why_not_continue(self.parts, turn, self._pending, result.response)
            stopped = await self._work.run(checks)
        except Interrupted:  # while a person was asked
            self._drop_queue("interrupted")
            return result, None
        if stopped is not None:
            return end_turn(result, stopped), None
        await self.parts.bus.dispatch(InjectionPending(inject.content, inject.position))
        return result, Prompt(inject.content, "continuation", model=inject.model)

    async def _run_leg(self, prompt: Prompt, turn: Turn) -> tuple[LegResult, Prompt | None]:
        parts = self.parts
        parts.bus.source = prompt.source
        parts.bus.is_continuation = prompt.source in CONTINUATION_SOURCES
        leg = Leg(parts, self.machine, prompt, turn, self._pending)
        parts.recorder.begin()
        leg.begin()
        parts.recorder.leg(turn.id, leg.ref, prompt.source, parts.bus.origin.run_id)
        try:
            result = await self._work.run(leg.run())
        except Interrupted:
            result = leg.interrupted()
        if result.cause == "interrupted":
            self._work.warn_if_unasked()
        self.machine.to(LegState.SETTLING)
        try:
            settled = settling.settle(parts, result, turn, self._pending, self._queue)
            continuation = await self._work.run(settled)
        except Interrupted:
            continuation = settling.interrupted(turn)
        if continuation.drained or self._queue.closed:
            self._drop_queue(continuation.drained or "interrupted")
        if continuation.outcome is not None:
            result = end_turn(result, continuation.outcome)
        parts.recorder.end(result.ref, result.cause, parts.bus.counts, result.error or result.reason)
        parts.bus.counts = {}
        parts.store.sync()
        if parts.store.keeps_transcript:
            log_writer.transcript(parts)
        result = replace(result, usage=parts.models.ledger.prompt.totals)
        return result, None if self._queue.closed else continuation.prompt

    async def _next(self) -> Prompt | None:
        """The next prompt of the queue, after the commands before it."""
        for refresh in (
            self.parts.services.lifecycle.reloading + self.parts.services.lifecycle.idle if self._queue else ()
        ):
            with suppress(Interrupted):
                await self._work.run(refresh())
        while self._queue.command() is not None:
            prompt = await self._run_command()
            if prompt is not None:
                return prompt
        prompt = self._queue.prompt()
        if prompt is not None or self._turn is None or self._queue.closed:
            return prompt
        return await settling.wake(self.parts, self._turn, self._pending)

    async def _run_command(self) -> Prompt | None:
        """Run the command at the head of the queue; the prompt that it gives. Raises UnknownCommand, Interrupted, and what the
        command raises; it is gone from the queue then."""
        named, typed = self._queue.command(), self._queue.take()
        assert named is not None
        name, arguments = named
        work = self._execute(name, arguments)
        result = await (work if self.parts.services.commands.at_once(name) else self._work.run(work, f"/{name}"))
        text = typed.text if result.is_typed else result.prompt
        return Prompt(text, "command", typed.attachments, model=result.model, command=typed.text) if text else None

    async def _execute(self, name: str, arguments: str) -> CommandResult:
        """Run a command, show its message, and let scripts hear of it."""
        command = self.parts.services.commands.find(name, typed=True)
        result = await command.run(arguments)
        if result.message:
            self.parts.bus.stream.tell(CommandSaid(command.name, result.message))
        await self.parts.bus.dispatch(Custom(f"command:{command.name}", {"args": arguments}))
        return result

    async def _run_immediate(self, name: str, arguments: str) -> None:
        """Run a command beside what runs; its error is shown as its message."""
        try:
            await self._execute(name, arguments)
        except CruError as error:
            self.parts.bus.stream.tell(CommandSaid(name, str(error), is_error=True))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the context's lock; a command that runs under it may ask for it again."""
        if self._holds_lock:
            yield
            return
        with self.parts.store.lock(self.command):
            self._holds_lock = True
            try:
                yield
            finally:
                self._holds_lock = False

    def _drop_queue(self, why: str) -> None:
        """Let the queue go, with a note."""
        if count := self._queue.clear():
            what = "1 queued prompt is" if count == 1 else f"{count} queued prompts are"
            self.parts.bus.stream.tell(Notice("warning", f"{what} dropped: {why}"))

    def _turn_of(self, prompt: Prompt) -> Turn:
        """A user's prompt starts a turn; continuations belong to the one that runs, limits and all."""
        if self._turn is None or prompt.source in TYPED_SOURCES:
            self._turn_count += 1  # the length of the log would not do: it may become shorter
            self.parts.models.ledger.begin_prompt()
            fuel = self.parts.settings.fuel
            self._turn = Turn(f"{self.parts.bus.origin.run_id}-{self._turn_count}", fuel or -1, fuel_given=fuel)
        return self._turn

    def _refresh(self) -> None:
        for problem in self.parts.store.new_problems():
            self.parts.bus.stream.warn(problem.text(self.parts.store.folder))
        entries, count = self._log_position()
        if entries is not self._seen[0] or count != self._seen[1]:
            self._rebuild()

    def _rebuild(self) -> None:
        self.parts.history = history.project(self.parts.store.entries(), self.parts.store.visible())
        self._seen = self._log_position()

    def _log_position(self) -> tuple[list[Entry], int]:
        """Which list the store has now, and how long it is: another process may have added to it or replaced it."""
        entries = self.parts.store.entries()
        return entries, len(entries)

    def _record_transition(self, old: LegState, new: LegState) -> None:
        self.parts.recorder.state(str.__str__(new))  # `value` of an enum is a property of five calls
        self.parts.bus.stream.tell(StateChanged(str.__str__(old), str.__str__(new)))
