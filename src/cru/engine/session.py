"""A session: live work on one context. It queues prompts, runs legs one after another, and says when it is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from cru.engine import compaction, history, settling
from cru.engine.commands import CommandResult, split_command
from cru.engine.errors import Interrupted, NothingToResume
from cru.engine.leg import Leg, close_calls
from cru.engine.parts import Parts
from cru.engine.pending import PendingContext, context_texts
from cru.engine.prompts import describe_unfinished, find_unfinished
from cru.engine.states import LegState, StateMachine
from cru.engine.tool_call import ToolOutcome
from cru.engine.turn import LegResult, Prompt, PromptQueue, PromptSource, Turn
from cru.events.bus import purpose
from cru.events.calling import cancels
from cru.events.payloads import (
    Attachment,
    ContextCleared,
    ContextClearing,
    Custom,
    InjectionPending,
    SessionEnded,
    SessionIdle,
    SessionStarted,
)
from cru.events.scope import SCOPE, Scope, begin
from cru.events.stream import CommandSaid, Notice, StateChanged
from cru.tools.protocol import Tool
from cru.values.entries import Entry
from cru.values.errors import CruError

T = TypeVar("T")

SHUTDOWN_GRACE = 2.0
"""Seconds after `end` for all that is told about it: the leg's end, the session's, plugins that say good-bye."""


class Session:
    """One context, one bus, one queue. All methods belong to the loop's thread."""

    def __init__(self, parts: Parts, command: str = "cru") -> None:
        self.parts = parts
        self.command = command
        self.machine = StateMachine(self._moved)
        self._queue = PromptQueue()
        self._coming = PendingContext()
        self._running: tuple[asyncio.Task[Any], Scope] | None = None
        self._seen: tuple[list[Entry], int] = ([], -1)
        self._turn: Turn | None = None
        self._begun = 0
        self._opened = False
        self._holding = False
        self._hurried: set[asyncio.Task[None]] = set()
        self._interrupted = False
        self._farewell = 0.0

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
    ) -> None:
        """Queue what a user typed, a prompt or a command; `run` takes it. While something runs it waits and comes next; a command
        like /stop does not wait. Text of another source is a prompt, whatever it begins with, and so is `literal` text."""
        if source != "user":
            self._queue.put(Prompt(text, source, attachments))
            return
        named = split_command(text) if self._running is not None and not literal else None
        if named is not None and self.parts.commands.at_once(named[0]):
            task = asyncio.ensure_future(self._hurry(*named))
            self._hurried.add(task)
            task.add_done_callback(self._hurried.discard)
            return
        self._queue.put(Prompt(text, "queue" if self.busy else "user", attachments, literal=literal))

    def interrupt(self) -> bool:
        """End whatever runs now (Ctrl-C, /stop); False if nothing does. Nothing new begins in it."""
        if self._running is None or self._running[0].done():
            return False
        task, scope = self._running
        self._interrupted = True
        scope.end()
        task.cancel()
        return True

    def stop(self) -> tuple[bool, int]:
        """Interrupt, and let the queue go (/stop): whether something ran, and how many prompts and commands waited."""
        return self.interrupt(), self._queue.clear()

    def end(self) -> None:
        """Interrupt, and start nothing more: what is queued is dropped with a note, and what must be told yet has two seconds."""
        self._queue.closed = True
        self._farewell = self._farewell or asyncio.get_running_loop().time() + SHUTDOWN_GRACE
        self.interrupt()

    async def open(self, source: str = "startup") -> bool:
        """Announce the session, once; True."""
        if self._opened:
            return True
        self._opened = True
        for work in self.parts.lifecycle.opening:
            await work(self.parts)
        self._refresh()
        store = self.parts.store
        payload = SessionStarted(store.name, str(store.folder), bool(store.entries()), source)
        outcome = await self.parts.bus.dispatch(payload)
        self._coming.context.extend(context_texts(self.parts, outcome.answer))
        return True

    async def run(self) -> LegResult | None:
        """Work the queue until idle, holding the context's lock; the result of the last leg, None if there was none. Raises
        UnknownCommand and what a command raises; what is queued behind it stays queued."""
        asked = len(self._queue)
        while (named := self._queue.command()) and self.parts.commands.only_reads(named[0]):
            if await self._guarded(self.open()) is None:
                raise Interrupted(f"/{named[0]} was interrupted")
            await self._obey()
        if asked and not self._queue:
            return None
        with self.locked():
            self._refresh()
            return await self._work(None, "startup")

    async def resume(self) -> LegResult:
        """Go on with the last prompt that is not done. Raises NothingToResume."""
        with self.locked():
            self._refresh()
            prompt = find_unfinished(self.parts.store.visible(), self.parts.root)
            if prompt is None:
                raise NothingToResume(
                    "there is no unfinished prompt in this context", "cru -g 5 shows its last entries"
                )
            result = await self._work(prompt, "resume")
            assert result is not None
            return result

    async def compact(self) -> None:
        """`cru -z`. Raises NothingToCompact, ModelError and Interrupted."""
        with self.locked():
            self._refresh()
            if await self._guarded(self._compact()) is None:
                raise Interrupted("the compaction was interrupted")

    async def _compact(self) -> bool:
        await self.open()
        voice = await self.parts.choose("")
        await compaction.compact_by_hand(self.parts, voice)
        return True

    async def archive(self) -> None:
        """`cru -a`: the model starts from nothing; the log keeps every line. Raises Interrupted."""
        with self.locked():
            self._refresh()
            if await self._guarded(self._archive()) is None:
                raise Interrupted("interrupted")

    async def _archive(self) -> bool:
        parts, store = self.parts, self.parts.store
        await self.open()
        await parts.bus.dispatch(ContextClearing(store.name))
        gone = list(store.visible())
        store.anchor("archive", "", [])
        store.transcript(gone)
        store.rotate()
        self._rebuild()
        await parts.bus.dispatch(ContextCleared(store.name))
        return True

    async def call_tool(self, name: str, given: Callable[[Tool | None], str], origin: str = "user") -> ToolOutcome:
        """`cru -P`: a call by hand, beside the conversation; `given` makes its arguments (JSON) for the tool, which is known only now;
        `origin` is user, or script if a program asks. Raises Interrupted."""
        from cru.engine import side_calls

        if await self._guarded(self.open()) is None:
            raise Interrupted("interrupted")
        tool = self.parts.tools.find(name)
        with side_calls.hold_context(self.locked, tool), purpose(side_calls.BY_HAND):
            done = await self._guarded(side_calls.call_by_hand(self.parts, name, given(tool), origin))
        if done is None:
            raise Interrupted(f"{name} was interrupted")
        return done

    async def close(self, reason: str = "exit") -> None:
        """Announce the end, once. Raises nothing of a handler's."""
        await asyncio.gather(*self._hurried)
        if self._opened:
            self._opened = False
            await self._guarded(self.parts.bus.dispatch(SessionEnded(reason)))
        for work in self.parts.lifecycle.closing:
            await self._guarded(work())
        await self.parts.bus.close()
        self.parts.recorder.flush()

    async def _work(self, first: Prompt | None, source: str) -> LegResult | None:
        """Turns until nothing is left to do. The lock is held."""
        if await self._guarded(self.open(source)) is None:
            self._drop("interrupted")
            return LegResult("interrupted", reason="interrupted")
        if first is None and self._queue and (text := describe_unfinished(self.parts.store.visible())):
            self.parts.bus.stream.warn(
                f"the last prompt was not finished: “{text}”; it stays as it is (cru --resume goes on with it, before you ask "
                "something else)"
            )
        close_calls(self.parts)
        result: LegResult | None = None
        prompt = first or await self._next()
        try:
            while prompt is not None:
                result, prompt = await self._turns(prompt)
                prompt = prompt or await self._next()
        except BaseException:  # a defect, or a log that cannot be written: the next run starts afresh
            self.machine = StateMachine(self._moved)
            raise
        if self.parts.history.count == len(self.parts.store.visible()):  # nobody else wrote meanwhile
            self._seen = self._look()
        return result

    async def _turns(self, prompt: Prompt) -> tuple[LegResult, Prompt | None]:
        """Legs until idle; the last result, and what `session:idle` or a late prompt starts after it."""
        following: Prompt | None = prompt
        while following is not None:
            turn = self._turn_of(following)
            result, following = await self._leg(following, turn)
        self.machine.to(LegState.IDLE)
        return result, await self._idle(result, turn)

    async def _idle(self, result: LegResult, turn: Turn) -> Prompt | None:
        """Say once that the agent awaits input. A prompt that was queued meanwhile goes before an inject's own leg."""
        idle = await self._guarded(self.parts.bus.dispatch(SessionIdle(self.parts.store.name)))
        if idle is None or self._queue.closed:
            self._drop("interrupted")
            return None
        wish = idle.answer.inject if result.cause == "done" else None
        queued = self._queue.prompt()
        if queued is not None:
            return settling.join_injects(queued, [wish] if wish is not None else [])
        if wish is None or not settling.may_continue(self.parts, turn):
            return None
        await self.parts.bus.dispatch(InjectionPending(wish.content, wish.position))
        return Prompt(wish.content, "continuation", model=wish.model)

    async def _leg(self, prompt: Prompt, turn: Turn) -> tuple[LegResult, Prompt | None]:
        parts = self.parts
        parts.bus.source = prompt.source
        parts.bus.is_continuation = prompt.source in ("continuation", "recurse")
        leg = Leg(parts, self.machine, prompt, turn, self._coming)
        parts.recorder.begin()
        leg.begin()
        parts.recorder.leg(turn.id, leg.ref, prompt.source, parts.bus.origin.run_id)
        result = await self._guarded(leg.run()) or leg.interrupted()
        if result.cause == "interrupted":
            self._told_if_unasked()
        self.machine.to(LegState.SETTLING)
        settle = settling.settle(parts, result, turn, self._coming, self._queue)
        then = await self._guarded(settle) or settling.Continuation(drained="interrupted")
        if then.drained or self._queue.closed:
            self._drop(then.drained or "interrupted")
        parts.recorder.end(result.ref, result.cause, parts.bus.counts, result.error or result.reason)
        parts.bus.counts = {}
        parts.store.sync()
        if then.halted:
            result = replace(result, cause="halted", reason=then.drained)
        return result, None if self._queue.closed else then.prompt

    async def _next(self) -> Prompt | None:
        """The next prompt of the queue, after the commands before it."""
        for work in self.parts.lifecycle.idle if self._queue else ():
            await self._guarded(work())
        while self._queue.command() is not None:
            prompt = await self._obey()
            if prompt is not None:
                return prompt
        return self._queue.prompt()

    async def _obey(self) -> Prompt | None:
        """Run the command at the head of the queue; the prompt that it gives. Raises UnknownCommand, Interrupted, and what the
        command raises; it is gone from the queue then."""
        named, typed = self._queue.command(), self._queue.take()
        assert named is not None
        work = self._carry_out(*named)
        said = await (work if self.parts.commands.at_once(named[0]) else self._guarded(work))
        if said is None:
            raise Interrupted(f"/{named[0]} was interrupted")
        if not said.prompt:
            return None
        return Prompt(said.prompt, "command", typed.attachments, model=said.model, command=typed.text)

    async def _carry_out(self, name: str, rest: str) -> CommandResult:
        """Run a command, show what it says, and let scripts hear of it."""
        command = self.parts.commands.find(name, typed=True)
        said = await command.run(rest)
        if said.message:
            self.parts.bus.stream.tell(CommandSaid(command.name, said.message))
        await self.parts.bus.dispatch(Custom(f"command:{command.name}", {"args": rest}))
        return said

    async def _hurry(self, name: str, rest: str) -> None:
        """A command beside what runs; its error is shown as what it says."""
        try:
            await self._carry_out(name, rest)
        except CruError as error:
            self.parts.bus.stream.tell(CommandSaid(name, str(error), is_error=True))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the context's lock; a command that runs under it may ask for it again."""
        if self._holding:
            yield
            return
        with self.parts.store.lock(self.command):
            self._holding = True
            try:
                yield
            finally:
                self._holding = False

    def _drop(self, why: str) -> None:
        """Let the queue go, with a note."""
        count = self._queue.clear()
        if count:
            what = "1 queued prompt is" if count == 1 else f"{count} queued prompts are"
            self.parts.bus.stream.tell(Notice("warning", f"{what} dropped: {why}"))

    async def _guarded(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Run as a task that `interrupt` can end; None if it did."""
        scope = Scope(SCOPE.get())
        task = begin(work, scope)
        around, self._running, self._interrupted = self._running, (task, scope), False
        loop = asyncio.get_running_loop()
        late = loop.call_at(self._farewell, self.interrupt) if self._farewell else None
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled():
                scope.end()
                task.cancel()
                raise
        finally:
            self._running = around
            if late is not None:
                late.cancel()
        self._told_if_unasked()
        return None

    def _told_if_unasked(self) -> None:
        """Something was interrupted: if nobody asked for it, that is told once."""
        if not self._interrupted and not cancels():
            self.parts.bus.stream.warn("nobody interrupted this: code of a plugin cancelled a task of cru")
        self._interrupted = True

    def _turn_of(self, prompt: Prompt) -> Turn:
        """A user's prompt starts a turn; continuations belong to the one that runs, limits and all."""
        if self._turn is None or prompt.source in ("user", "queue", "command"):
            self._begun += 1  # the length of the log would not do: it may become shorter
            self._turn = Turn(f"{self.parts.bus.origin.run_id}-{self._begun}", self.parts.settings.fuel or -1)
        return self._turn

    def _refresh(self) -> None:
        for problem in self.parts.store.refresh():
            self.parts.bus.stream.warn(f"{self.parts.store.folder / problem.file}:{problem.line}: {problem.message}")
        entries, count = self._look()
        if entries is not self._seen[0] or count != self._seen[1]:
            self._rebuild()

    def _rebuild(self) -> None:
        self.parts.history = history.project(self.parts.store.entries(), self.parts.store.visible())
        self._seen = self._look()

    def _look(self) -> tuple[list[Entry], int]:
        """Which list the store has now, and how long it is: another process may have added to it or replaced it."""
        entries = self.parts.store.entries()
        return entries, len(entries)

    def _moved(self, old: LegState, new: LegState) -> None:
        self.parts.recorder.state(new.value)
        self.parts.bus.stream.tell(StateChanged(old.value, new.value))
