"""One entry as a handler of the bus: says whether it fires, runs it, and has its output read by its dialect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from cru.events.answers import PASS, STRENGTH, Answer, strength
from cru.events.stamp import Event
from cru.extensions.hooks import records
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.mapping import Dialect, EventMapping
from cru.extensions.hooks.model.result import CommandResult, HookResult

if TYPE_CHECKING:
    from cru.extensions.hooks.session import Hooks

SLOW_MS = 250.0
"""A hook of a tool event that takes longer is named."""
PATIENCE = 1.0
"""Seconds after which a person is told what is waited for."""
CANCELLED = "cancelled"
# Why a hook does not fire at an event; the journal has these words, and explain.py reads them.
OTHER_MOMENT, MISMATCH, ONCE, SAME = "not a ", "does not match ", "ran once already", "the same command as "


def failed(entry: HookEntry, event: Event, said: HookResult) -> HookResult:
    """What a failed hook means: no more than it said all the same, with a warning, unless its entry says otherwise."""
    text = f"failed: {said.failed}"
    answer = said.answer
    policy = entry.on_error if event.row.kind == "gate" else ""
    if policy in ("deny", "ask") and strength(answer) < STRENGTH[policy]:
        answer = Answer(decision=policy, reason=f"the hook {entry.label} {text}", note="error")
    return replace(said, answer=answer, warning="; ".join(filter(None, (text, said.warning))))


def joined(said: HookResult, where: Literal["failed", "warning"], text: str) -> HookResult:
    """With this beside what else it says there."""
    return replace(said, **{where: "; ".join(filter(None, (getattr(said, where), text)))})


class CommandHook:
    """Called by the bus for every event of the entry's moment that it does not decline, beside the other hooks of its group."""

    def __init__(self, entry: HookEntry, dialect: Dialect, moment: EventMapping, hooks: Hooks) -> None:
        self._entry = entry
        self._dialect = dialect
        self._moment = moment
        self._hooks = hooks
        self._done = False
        self._unmatched: dict[int, str] = {}  # by dispatch

    def declines(self, event: Event) -> str:
        """Why it does not fire now; "" if it does. Nothing is awaited here, so that the first of two alike is always the first."""
        entry, moment = self._entry, self._moment
        try:
            if moment.accepts is not None and not moment.accepts(event):
                return f"{OTHER_MOMENT}{moment.name}"
            subject = moment.subject(event) if moment.subject is not None else ""
            if moment.subject is not None and not self._dialect.matches(entry, event, subject):
                return f"{MISMATCH}{subject}"
        except Exception as error:  # noqa: BLE001  the boundary around a dialect: a guard must not be passed by; told by `_fire`
            self._unmatched[event.stamp.dispatch_seq] = f"its matcher cannot be used: {error!r}"
        if entry.once and self._done:
            return ONCE
        first = self._hooks.claim(entry, event)
        if first:
            return f"{SAME}{first}"
        self._done = True
        return ""

    async def __call__(self, event: Event) -> Answer:
        if self._entry.asynchronous:
            self._hooks.detach(self._later(event))
            return Answer(note="runs beside the session")
        return await self._fire(event)

    async def _later(self, event: Event) -> None:
        """An asynchronous hook: it decides nothing; what it has to say goes into the next request."""
        self._hooks.next_request(self._entry, await self._fire(event))

    async def _fire(self, event: Event) -> Answer:
        stdin, run, started = b"", CommandResult(None), perf_counter()
        unmatched = self._unmatched.pop(event.stamp.dispatch_seq, "")
        if unmatched:
            return self._judged(event, stdin, run, HookResult(failed=unmatched))
        try:
            stdin = self._dialect.stdin(self._entry, self._moment, event, self._hooks.about)
            env = self._dialect.environment(self._entry, self._moment, event, self._hooks.about)
            with self._waiting():
                run = await self._hooks.run(self._entry, stdin, env)
            said = self._read(event, run)
        except asyncio.CancelledError:
            gone = CommandResult(None, ms=(perf_counter() - started) * 1000, error=CANCELLED)
            self._hooks.record(
                records.make_firing(self._entry, self._moment.name, event, stdin, gone, HookResult(failed=CANCELLED))
            )
            raise
        except Exception as error:  # noqa: BLE001  the boundary around a dialect: told, and `on_error` counts
            said = HookResult(failed=f"{type(error).__name__}: {error}")
        return self._judged(event, stdin, run, said)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Say which hook is waited for, once it has taken a while."""
        entry, told = self._entry, list[str]()

        def tell() -> None:
            told.append(f"waiting for the hook {entry.label}")
            self._hooks.awaited(entry, told[0])

        timer = None if entry.asynchronous else asyncio.get_running_loop().call_later(PATIENCE, tell)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            if told:
                self._hooks.awaited(entry, "")

    def _read(self, event: Event, run: CommandResult) -> HookResult:
        if run.timed_out:
            return HookResult(failed=f"no answer within {self._entry.timeout:g} s")
        if run.withheld:
            from cru.extensions.hooks.trust.guard import deny_answer

            return HookResult(deny_answer(self._entry, event) or PASS, failed=run.error)
        if run.exit is None:
            return HookResult(failed=run.error or CANCELLED)
        if self._moment.answer is None:
            return HookResult()
        return self._moment.answer(self._entry, event, run, self._hooks.about)

    def _judged(self, event: Event, stdin: bytes, run: CommandResult, said: HookResult) -> Answer:
        entry, moment, hooks = self._entry, self._moment, self._hooks
        if run.note:
            guards = run.left_out and entry.on_error in ("deny", "ask")  # it decided without having seen everything
            said = joined(said, "failed" if guards else "warning", run.note)
        if said.failed:
            said = failed(entry, event, said)
        said = hooks.without_keys(said)
        hooks.record(records.make_firing(entry, moment.name, event, stdin, run, said))
        if said.to_user:
            hooks.tell(entry, said.to_user)
        if said.warning:
            hooks.warn(entry, said.warning)
        if run.ms > SLOW_MS and event.name.startswith("tool:"):
            hooks.slow(entry, moment.name, run.ms)
        return said.answer
