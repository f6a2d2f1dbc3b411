"""A session: live work on one context. It queues prompts, runs legs one after another, and says when it is idle."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from cru.engine import compaction, settling
from cru.engine.errors import NothingToResume
from cru.engine.history import History
from cru.engine.leg import Leg, close_calls
from cru.engine.parts import Parts
from cru.engine.resume import unfinished
from cru.engine.states import Machine, State
from cru.engine.turn import LegResult, NextRequest, Prompt, Turn
from cru.events.payloads import (
    Attachment,
    ContextCleared,
    ContextClearing,
    SessionEnded,
    SessionIdle,
    SessionStarted,
)
from cru.events.stream import Notice, StateChanged

T = TypeVar("T")


class Session:
    """One context, one bus, one queue. All methods belong to the loop's thread."""

    def __init__(self, parts: Parts, command: str = "cru") -> None:
        self.parts = parts
        self.command = command
        self.machine = Machine(self._moved)
        self._queue: deque[Prompt] = deque()
        self._coming = NextRequest()
        self._running: asyncio.Task[Any] | None = None
        self._seen: tuple[int, int] | None = None
        self._turn: Turn | None = None
        self._opened = False
        self._ending = False

    @property
    def busy(self) -> bool:
        return self.machine.state is not State.IDLE

    def submit(self, text: str, *, attachments: tuple[Attachment, ...] = (), command: bool = False) -> None:
        """Queue a user prompt; `run` takes it. While a turn runs it waits and becomes the next turn."""
        source = "queue" if self.busy else "command" if command else "user"
        self._queue.append(Prompt(text, source, attachments))  # type: ignore[arg-type]

    def interrupt(self) -> bool:
        """End whatever runs now (Ctrl-C, /stop); False if nothing does."""
        if self._running is None or self._running.done():
            return False
        self._running.cancel()
        return True

    def end(self) -> None:
        """Interrupt, and start nothing more: what is queued is dropped with a note."""
        self._ending = True
        self.interrupt()

    async def open(self, source: str = "startup") -> None:
        """Announce the session, once."""
        if self._opened:
            return
        self._opened = True
        self._refresh()
        store = self.parts.store
        payload = SessionStarted(store.name, str(store.folder), bool(store.entries()), source)
        outcome = await self.parts.bus.dispatch(payload)
        self._coming.context.extend(outcome.answer.context)

    async def run(self) -> LegResult | None:
        """Work the queue until idle, holding the context's lock; the result of the last leg, None if there was nothing."""
        return await self._locked(None)

    async def resume(self) -> LegResult:
        """Go on with the last prompt that is not done. Raises NothingToResume."""
        with self.parts.store.lock(self.command):
            self._refresh()
        prompt = unfinished(self.parts.store.entries(), self.parts.root)
        if prompt is None:
            raise NothingToResume("there is no unfinished prompt in this context", "cru -g 5 shows its last entries")
        result = await self._locked(prompt)
        assert result is not None
        return result

    async def compact(self) -> None:
        """`cru -z`."""
        with self.parts.store.lock(self.command):
            await self.open()
            self._refresh()
            voice = await self.parts.choose("")
            await self._guarded(compaction.manual(self.parts, voice))

    async def archive(self) -> None:
        """`cru -a`: the model starts from nothing; the log keeps every line."""
        parts, store = self.parts, self.parts.store
        with store.lock(self.command):
            await self.open()
            self._refresh()
            await parts.bus.dispatch(ContextClearing(store.name))
            store.transcript(store.visible())
            store.anchor("archive", "", [])
            store.rotate()
            self._rebuild()
            await parts.bus.dispatch(ContextCleared(store.name))

    async def close(self, reason: str = "exit") -> None:
        """Announce the end, once. Raises nothing of a handler's."""
        if self._opened:
            self._opened = False
            await self.parts.bus.dispatch(SessionEnded(reason))
        await self.parts.bus.close()
        self.parts.recorder.flush()

    async def _locked(self, first: Prompt | None) -> LegResult | None:
        with self.parts.store.lock(self.command):
            await self.open("resume" if first is not None else "startup")
            self._refresh()
            close_calls(self.parts)
            result: LegResult | None = None
            prompt = first or self._dequeue()
            while prompt is not None:
                result, prompt = await self._turns(prompt)
            return result

    async def _turns(self, prompt: Prompt | None) -> tuple[LegResult, Prompt | None]:
        """Legs until idle; then `session:idle`, whose inject may start one more."""
        assert prompt is not None
        while prompt is not None:
            turn = self._turn_of(prompt)
            result, coming = await self._leg(prompt, turn)
            prompt = coming
        self.machine.to(State.IDLE)
        idle = await self._guarded(self.parts.bus.dispatch(SessionIdle(self.parts.store.name)))
        wish = idle.answer.inject if idle is not None else None
        if wish is not None and result.cause == "done" and settling.may_continue(self.parts, turn):
            return result, Prompt(wish.content, "continuation", model=wish.model)
        return result, None

    async def _leg(self, prompt: Prompt, turn: Turn) -> tuple[LegResult, Prompt | None]:
        parts = self.parts
        parts.bus.source = prompt.source
        parts.bus.is_continuation = prompt.source in ("continuation", "recurse")
        leg = Leg(parts, self.machine, prompt, turn, self._coming)
        parts.recorder.leg(turn.id, prompt.ref, prompt.source, parts.bus.origin.run_id)
        self._running = asyncio.ensure_future(leg.run())
        result: LegResult = await self._running
        self.machine.to(State.SETTLING)
        then = await self._guarded(settling.settle(parts, result, turn, self._coming, self._dequeue_next))
        if then is None:
            then = settling.Next(drained="interrupted")
        if then.drained and self._queue:
            parts.bus.stream.tell(Notice("warning", f"{len(self._queue)} queued prompts are dropped: {then.drained}"))
            self._queue.clear()
        parts.recorder.end(result.ref, result.cause, parts.bus.counts, result.error or result.reason)
        parts.bus.counts = {}
        parts.store.sync()
        return result, None if self._ending else then.prompt

    def _dequeue_next(self) -> Prompt | None:
        return self._dequeue()

    def _dequeue(self) -> Prompt | None:
        return self._queue.popleft() if self._queue else None

    async def _guarded(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Run as a task that `interrupt` can end; None if it did."""
        task: asyncio.Task[T] = asyncio.ensure_future(work)
        self._running = task
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled():
                task.cancel()
                raise
        return None

    def _turn_of(self, prompt: Prompt) -> Turn:
        """A user's prompt starts a turn; continuations belong to the one that runs, limits and all."""
        if self._turn is None or prompt.source in ("user", "queue", "command"):
            name = prompt.ref or f"{self.parts.bus.origin.run_id}-{len(self.parts.store.entries())}"
            self._turn = Turn(name, self.parts.settings.fuel or -1)
        return self._turn

    def _refresh(self) -> None:
        for problem in self.parts.store.refresh():
            self.parts.bus.stream.warn(f"{problem.file}:{problem.line}: {problem.message}")
        if self._seen != self._look():
            self._rebuild()

    def _rebuild(self) -> None:
        self.parts.history = History(self.parts.store.visible())
        self._seen = self._look()

    def _look(self) -> tuple[int, int]:
        """Which list the store has now, and how long it is: another process may have added to it or replaced it."""
        entries = self.parts.store.entries()
        return id(entries), len(entries)

    def _moved(self, old: State, new: State) -> None:
        self.parts.recorder.state(new.value)
        self.parts.bus.stream.tell(StateChanged(old.value, new.value))
