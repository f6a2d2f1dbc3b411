"""The bus: who is asked, in what order, and what comes of it (docs/events.md, "Order" and "Failure")."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Generic, TypeVar, cast

from msgspec import Struct

from cru.events.answers import PASS, Answer
from cru.events.catalog import BY_TYPE, Row
from cru.events.chain import Chain
from cru.events.deltas import DeltaQueue
from cru.events.errors import TooDeep
from cru.events.journal import JournalLine, JournalSink, Unjournalled
from cru.events.pattern import matches
from cru.events.registry import Handler, Registry
from cru.events.stamp import FRAME, MAX_DEPTH, Event, Frame, Origin, Stamp
from cru.events.stream import Published, Stream

P = TypeVar("P", bound=Struct)


class Outcome(Struct, Generic[P], frozen=True):
    """The payload after the chain, the folded answer, and the owners whose answers count in it."""

    payload: P
    answer: Answer = PASS
    owners: tuple[str, ...] = ()

    @property
    def by(self) -> str:
        """Who decided, for messages."""
        return ", ".join(self.owners)


class Bus:
    """One an agent. `child` shares registry, stream and journal with a sub-agent's bus."""

    def __init__(
        self,
        origin: Origin,
        registry: Registry | None = None,
        stream: Stream | None = None,
        sink: JournalSink | None = None,
    ) -> None:
        self.origin = origin
        self.registry = registry or Registry()
        self.stream = stream or Stream()
        self.sink: JournalSink = sink or Unjournalled()
        self.source = ""
        self.is_continuation = False
        self.counts: dict[str, int] = {}
        self._seq = 0
        self._deltas = DeltaQueue(self)

    def child(self, origin: Origin) -> Bus:
        return Bus(origin, self.registry, self.stream, self.sink)

    async def dispatch(self, payload: P) -> Outcome[P]:
        """Ask everybody who listens to this payload's event; never raises for a handler's fault."""
        row = BY_TYPE[type(payload)]
        self.counts[row.name] = self.counts.get(row.name, 0) + 1
        handlers = self.registry.by_event.get(row.name)
        if handlers is None:
            if self.stream.wants(type(payload)):
                self.stream.publish(Published(self._stamp(), payload))
            return Outcome(payload)
        outcome, stamp = await self._run(row, payload, handlers)
        self.stream.publish(Published(stamp, outcome.payload, outcome.answer))
        return outcome

    async def dispatch_delta(self, payload: Struct) -> None:
        """Coalesced deltas go to handlers only: faces have had them raw."""
        row = BY_TYPE[type(payload)]
        self.counts[row.name] = self.counts.get(row.name, 0) + 1
        await self._run(row, payload, self.registry.by_event.get(row.name, ()))

    def offer(self, payload: Struct) -> None:
        """A raw delta: faces get it at once, handlers coalesced; never awaited by the stream."""
        if not self.registry.holds_deltas():
            self.stream.tell(payload)
        if BY_TYPE[type(payload)].name in self.registry.by_event:
            self._deltas.put(payload)

    async def flush(self) -> None:
        """Wait until handlers have seen every delta that was offered."""
        await self._deltas.flush()

    async def close(self) -> None:
        await self._deltas.close()

    async def _run(self, row: Row, payload: P, handlers: tuple[Handler, ...]) -> tuple[Outcome[P], Stamp]:
        frame = FRAME.get()
        if frame.depth >= MAX_DEPTH:
            raise TooDeep(
                f"`{row.name}` was raised {frame.depth} handlers deep", "a handler raises its own event again"
            )
        stamp = self._stamp()
        started = time.perf_counter()
        chain = Chain(row, stamp, payload, frame, self.stream)
        for _, group in groupby(handlers, key=_group_key):
            await chain.run_group(self._able(chain, tuple(group), frame))
        outcome: Outcome[P] = Outcome(cast(P, chain.payload), chain.folded(), chain.owners())
        self._record(chain, outcome, payload, time.perf_counter() - started)
        return outcome, stamp

    def _able(self, chain: Chain, group: tuple[Handler, ...], frame: Frame) -> list[Handler]:
        able = []
        for handler in group:
            why = self._why_not(chain, handler, frame)
            if why:
                chain.skip(handler, why)
            elif handler.once and not self.registry.off(handler.id):
                chain.skip(handler, "removed")
            else:
                able.append(handler)
        return able

    def _why_not(self, chain: Chain, handler: Handler, frame: Frame) -> str:
        row = chain.row
        if chain.stopped_by:
            return f"cancelled by {chain.stopped_by}"
        if not self.registry.has(handler.id):
            return "removed"
        if handler.owner in frame.owners:
            return "raised by itself"
        if self.origin.depth and (handler.scope or row.scope) == "main":
            return "main agent only"
        if handler.pattern and not matches(handler.pattern, _ident(row, chain.payload)):
            return f"pattern {handler.pattern}"
        return ""

    def _record(self, chain: Chain, outcome: Outcome[P], before: Struct, seconds: float) -> None:
        now = outcome.payload
        changed = {f: getattr(now, f) for f in chain.row.writable if getattr(now, f) is not getattr(before, f)}
        answer, stamp = outcome.answer, chain.stamp
        line = JournalLine(
            seq=stamp.dispatch_seq, time=stamp.timestamp, event=chain.row.name, session=stamp.session_id, run=stamp.run_id,
            agent=stamp.agent_id, parent=stamp.parent_seq, ident=_ident(chain.row, now) or "",
            ref=getattr(now, "ref", ""), call=getattr(now, "call_id", ""), heard=tuple(chain.heard),
            decision="halt" if answer.halt else answer.decision, reason=answer.reason, changed=changed,
            ms=round(seconds * 1000, 3),
        )  # fmt: skip
        self.sink.write(line)

    def _stamp(self) -> Stamp:
        self._seq += 1
        frame, o = FRAME.get(), self.origin
        return Stamp(
            o.session_id, o.run_id, o.agent_id, o.parent_call_id, o.depth, o.depth > 0, self._seq, frame.seq, time.time(),
            self.is_continuation, self.source, frame.purpose,
        )  # fmt: skip


def _group_key(handler: Handler) -> tuple[int, str, int]:
    """In-process handlers are groups of one; members of the other lanes run together at equal priority."""
    return (handler.priority, handler.lane, handler.id if handler.lane == "inline" else 0)


def _ident(row: Row, payload: Struct) -> str | None:
    return str(getattr(payload, row.ident)) if row.ident else None


@contextmanager
def purpose(name: str, owner: str = "") -> Iterator[None]:
    """Events raised inside carry this purpose and are not dispatched to the owner (compaction, titles, prompt hooks)."""
    frame = FRAME.get()
    owners = frame.owners | {owner} if owner else frame.owners
    token = FRAME.set(Frame(owners, frame.depth, frame.seq, name))
    try:
        yield
    finally:
        FRAME.reset(token)


__all__ = ["Bus", "Event", "Outcome", "purpose"]
