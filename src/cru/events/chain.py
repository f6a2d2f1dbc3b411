"""One dispatch under way: groups of handlers in order, their answers folded, their failures isolated."""

from __future__ import annotations

import asyncio
import time
from inspect import isawaitable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from cru.events.answers import PASS, Answer, add, apply, stopped
from cru.events.catalog import Row
from cru.events.errors import BadAnswer
from cru.events.journal import Heard
from cru.events.registry import Handler
from cru.events.stamp import FRAME, Event, Frame, Stamp
from cru.events.stream import Stream

ASYNC_LIMIT = 60.0
SLOW_MS = 250.0


class _Ran(NamedTuple):
    handler: Handler
    answer: Answer
    ms: float
    error: str


class Chain:
    """The state of one dispatch. `payload` is what the next group sees; `stopped_by` names who ended the chain."""

    def __init__(self, row: Row, stamp: Stamp, payload: Struct, frame: Frame, stream: Stream) -> None:
        self.row = row
        self.stamp = stamp
        self.payload = payload
        self.heard: list[Heard] = []
        self.stopped_by = ""
        self._frame = frame
        self._stream = stream
        self._total = PASS
        self._owners: list[str] = []
        self._allowed_by: set[str] = set()

    def skip(self, handler: Handler, why: str) -> None:
        self.heard.append(Heard(handler.owner, handler.where, handler.id, skipped=why))

    def folded(self) -> Answer:
        answer = self._total
        if self.row.kind == "observe" and not answer.halt and answer.decision != "none":
            answer = Answer(
                context=answer.context, context_files=answer.context_files, inject=answer.inject, note=answer.note
            )
        return stopped(answer) if answer.stops else answer

    def owners(self) -> tuple[str, ...]:
        return tuple(self._owners)

    async def run_group(self, group: list[Handler]) -> None:
        """Every member gets the payload as it is now; changes and answers compose in order."""
        if not group:
            return
        event = Event(self.row, self.stamp, self.payload)
        if len(group) == 1:
            ran = [await self._call(group[0], event)]
        elif group[0].chain:
            await self._run_in_turn(group)
            return
        else:
            ran = list(await asyncio.gather(*(self._call(handler, event) for handler in group)))
        self._compose(ran)

    async def _run_in_turn(self, group: list[Handler]) -> None:
        for handler in group:
            if self.stopped_by:
                self.skip(handler, f"cancelled by {self.stopped_by}")
                continue
            self._compose([await self._call(handler, Event(self.row, self.stamp, self.payload))])

    def _compose(self, ran: list[_Ran]) -> None:
        before = self.payload
        group = PASS
        changers: set[str] = set()
        for handler, answer, ms, error in ran:
            mark = self.payload
            rejected, broken = self._change(handler, answer)
            if broken:
                self.payload, error = mark, broken
                answer = self._failed(handler, broken)
            if self.payload is not mark:
                changers.add(handler.owner)
            self.heard.append(Heard(handler.owner, handler.where, handler.id, ms, "", error, answer, rejected))
            group = add(group, answer)
            if answer is not PASS:
                self._owners.append(handler.owner)
            if answer.stops and not self.stopped_by:
                self.stopped_by = handler.owner
        if self._total.decision == "allow" and self.payload is not before and changers - self._allowed_by:
            self._total = msgspec.structs.replace(self._total, decision="none", note="allow voided by a later change")
        self._allowed_by |= {r.handler.owner for r in ran if r.answer.decision == "allow"}
        self._total = add(self._total, group)

    def _change(self, handler: Handler, answer: Answer) -> tuple[tuple[str, ...], str]:
        """Apply the changes; returns those dropped as not writable, and what made the whole answer fail ("" = nothing)."""
        rejected = []
        for change in answer.changes:
            if change.field not in self.row.writable:
                known = ", ".join(self.row.writable) or "nothing"
                rejected.append(f"`{change.field}` of {self.row.name} cannot be changed (only {known})")
                self._warn(handler, rejected[-1])
                continue
            try:
                self.payload = apply(self.payload, change)
            except BadAnswer as error:
                return tuple(rejected), error.message
        return tuple(rejected), ""

    async def _call(self, handler: Handler, event: Event) -> _Ran:
        started = time.perf_counter()
        frame = self._frame
        inner = Frame(frame.owners | {handler.owner}, frame.depth + 1, self.stamp.dispatch_seq, frame.purpose)
        token = FRAME.set(inner)
        answer, error = PASS, ""
        try:
            answer = await _invoke(handler, event)
        except TimeoutError:
            error = f"no answer within {handler.limit or ASYNC_LIMIT:g} s"
        except Exception as raised:  # noqa: BLE001  the boundary around other people's code: reported below
            error = f"{type(raised).__name__}: {raised}"
        finally:
            FRAME.reset(token)
        ms = round((time.perf_counter() - started) * 1000, 3)
        if error:
            answer = self._failed(handler, error)
        elif ms > SLOW_MS and handler.lane == "inline":
            self._warn(handler, f"took {ms:.0f} ms on {self.row.name}")
        return _Ran(handler, answer, ms, error)

    def _failed(self, handler: Handler, error: str) -> Answer:
        self._warn(handler, f"failed on {self.row.name}: {error}")
        policy = handler.on_error or (self.row.fails if handler.lane == "inline" else "pass")
        if policy == "deny" and self.row.kind == "gate":
            return Answer(decision="deny", reason=f"the handler of {handler.owner} failed: {error}", note="error")
        return PASS

    def _warn(self, handler: Handler, text: str) -> None:
        place = f" ({handler.where})" if handler.where else ""
        self._stream.warn(f"{handler.owner}{place}: {text}", handler.owner)


async def _invoke(handler: Handler, event: Event) -> Answer:
    if handler.thread:
        raw: Any = await asyncio.wait_for(asyncio.to_thread(handler.call, event), handler.limit or ASYNC_LIMIT)
    else:
        raw = handler.call(event)
    if isawaitable(raw):
        async with asyncio.timeout(handler.limit or ASYNC_LIMIT):
            raw = await raw
    if raw is None:
        return PASS
    if not isinstance(raw, Answer):
        raise BadAnswer(f"answered with {type(raw).__name__}, not an Answer")
    return raw
