"""The bus: who is asked, in what order, and what comes of it (docs/events.md, "Order" and "Failure")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from time import perf_counter, time
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from cru.core.base.values.cancellation import check
from cru.core.events import TooDeep
from cru.core.events.answers import PASS, Answer
from cru.core.events.catalog import BY_TYPE, EventRow
from cru.core.events.chain import Chain
from cru.core.events.journal import JournalLine, JournalSink, SkipKind, SkipReason, Unjournalled
from cru.core.events.registry import Handler, HandlerFunction, HandlerRegistry
from cru.core.events.stamp import FRAME, MAX_BELOW, MAX_DEPTH, Event, Frame, Origin, Stamp
from cru.core.events.stream import DeltaQueue, Published, Stream

P = TypeVar("P", bound=Struct)


class Outcome(Struct, Generic[P], frozen=True):
    """What came of a dispatch.

    payload: as the chain left it
    answer: the folded answers
    owners: those whose answers count
    deciders: those of them that allowed, asked, cancelled or halted
    edits: the (field, owner) of each change
    failed: what decided is not an answer but a failing handler
    injected_by: the handler whose inject counts; None: there is none
    """

    payload: P
    answer: Answer = PASS
    owners: tuple[str, ...] = ()
    deciders: tuple[str, ...] = ()
    edits: tuple[tuple[str, str], ...] = ()
    failed: bool = False
    injected_by: HandlerFunction | None = None

    @property
    def by(self) -> str:
        """Who decided, for messages; who said anything at all, if nobody decided."""
        return ", ".join(self.deciders or self.owners)

    def changed_by(self, field: str) -> str:
        """Who changed this field, for messages; "" if nobody did."""
        return ", ".join(dict.fromkeys(owner for name, owner in self.edits if name == field))


class Bus:
    """One an agent. `child` shares registry, journal and the count of dispatches with a sub-agent's bus.

    agents: of every agent of the session so far, by its id
    """

    def __init__(
        self,
        origin: Origin,
        registry: HandlerRegistry | None = None,
        stream: Stream | None = None,
        sink: JournalSink | None = None,
    ) -> None:
        self.origin = origin
        self.registry = registry or HandlerRegistry()
        self.stream = stream or Stream()
        self.sink: JournalSink = sink or Unjournalled()
        self.source = ""
        self.is_continuation = False
        self.counts: dict[str, int] = {}
        self.agents: dict[str, Origin] = {origin.agent_id: origin}
        self._numbers = count(1)
        self._unwritten = False
        self._deltas = DeltaQueue(self._dispatch_delta, self.stream.warn)

    def child(self, origin: Origin, stream: Stream | None = None) -> Bus:
        """A sub-agent's bus; without a stream of its own what it publishes goes to this one's readers."""
        bus = Bus(origin, self.registry, stream or self.stream, self.sink)
        bus._numbers = self._numbers
        bus.agents = self.agents
        bus.agents[origin.agent_id] = origin
        return bus

    async def dispatch(self, payload: P) -> Outcome[P]:
        """Ask everybody who listens to this payload's event; never raises for a handler's fault."""
        kind = type(payload)
        row = BY_TYPE[kind]
        name = row.name
        self.counts[name] = self.counts.get(name, 0) + 1
        groups = self.registry.groups.get(name)
        if groups is None:
            if self.stream.wants(kind):
                self.stream.publish(Published(self._stamp(FRAME.get()), payload))
            return Outcome(payload)
        outcome, stamp = await self._run(row, payload, groups)
        if self.stream.wants(kind):
            self.stream.publish(Published(stamp, outcome.payload, outcome.answer))
        return outcome

    async def _dispatch_delta(self, payload: Struct) -> None:
        """Coalesced deltas go to handlers only: faces have had them raw."""
        row = BY_TYPE[type(payload)]
        self.counts[row.name] = self.counts.get(row.name, 0) + 1
        await self._run(row, payload, self.registry.groups.get(row.name, ()))

    def offer(self, payload: Struct) -> None:
        """A raw delta: faces get it at once, handlers coalesced; never awaited by the stream."""
        if not self.registry.holds_deltas(self.origin.depth):
            self.stream.tell(payload)
        if BY_TYPE[type(payload)].name in self.registry.by_event:
            self._deltas.put(payload)

    async def flush(self) -> None:
        """Wait until handlers have seen every delta that was offered."""
        await self._deltas.flush()

    async def close(self) -> None:
        await self._deltas.close()

    async def _run(
        self, row: EventRow, payload: P, groups: tuple[tuple[Handler, ...], ...]
    ) -> tuple[Outcome[P], Stamp]:
        if row.kind != "observe":
            check()
        frame = FRAME.get()
        if frame.depth >= MAX_DEPTH:
            raise TooDeep(
                f"`{row.name}` was raised {frame.depth} handlers deep", "a handler raises its own event again"
            )
        if frame.below is not None and not frame.below.over:
            frame.below.count += 1
            if frame.below.count > MAX_BELOW:
                raise TooDeep(
                    f"one handler led to more than {MAX_BELOW} events", "handlers raise events again and again"
                )
        started = perf_counter()
        stamp = self._stamp(frame)
        chain = Chain(row, stamp, payload, frame, self.stream)
        for group in groups:
            if len(group) == 1:  # as a rule
                if self._able(chain, group[0], frame):
                    chain.compose(await chain.call(group[0], chain.payload))
                continue
            able = [handler for handler in group if self._able(chain, handler, frame)]
            if len(able) == 1:
                chain.compose(await chain.call(able[0], chain.payload))
            elif able:
                await chain.run(able)
        answer = chain.folded()
        outcome: Outcome[P] = Outcome(chain.payload, answer, *chain.who(), chain.injected_by)  # type: ignore[arg-type]
        self._record(chain, answer, payload, perf_counter() - started)
        return outcome, stamp

    def _able(self, chain: Chain, handler: Handler, frame: Frame) -> bool:
        reason = self._skip_reason(chain, handler, frame)
        if reason is None and handler.once and not self.registry.off(handler.id):
            reason = SkipReason(SkipKind.REMOVED)
        if reason is not None:
            chain.skip(handler, reason)
        return reason is None

    def _skip_reason(self, chain: Chain, handler: Handler, frame: Frame) -> SkipReason | None:
        if chain.stopped_by:
            return SkipReason(SkipKind.STOPPED, chain.stopped_by)
        if not self.registry.has(handler.id):
            return SkipReason(SkipKind.REMOVED)
        if handler.owner in frame.owners:
            return SkipReason(SkipKind.OWN_EVENT)
        if self.origin.depth and not handler.hears(self.origin.depth):
            return SkipReason(SkipKind.MAIN_AGENT_ONLY)
        if handler.pattern and not _matches(handler.pattern, _ident(chain.row, chain.payload)):
            return SkipReason(SkipKind.PATTERN, handler.pattern)
        if handler.declines is None:
            return None
        return handler.declines(Event(chain.row, chain.stamp, chain.payload))

    def _record(self, chain: Chain, answer: Answer, before: Struct, seconds: float) -> None:
        now, row, stamp = chain.payload, chain.row, chain.stamp
        changed = {}
        if now is not before:
            changed = {f: getattr(now, f) for f in row.writable if getattr(now, f) is not getattr(before, f)}
        line = JournalLine(
            stamp.dispatch_seq, stamp.timestamp, row.name, stamp.session_id, stamp.run_id, stamp.agent_id, stamp.parent_seq,
            _ident(row, now) or "", getattr(now, "ref", ""), getattr(now, "call_id", ""), tuple(chain.heard),
            "halt" if answer.halt else answer.decision, answer.reason, changed, int(seconds * 1_000_000) / 1000,
            purpose=stamp.purpose, agent_type=stamp.agent_type,
        )  # fmt: skip
        self._write(line)

    def note(self, about: str, text: str) -> None:
        """A line in the journal about something beside a dispatch, for whoever looks for it; nobody is told."""
        stamp = self._stamp(FRAME.get())
        self._write(
            JournalLine(
                stamp.dispatch_seq, stamp.timestamp, about, stamp.session_id, stamp.run_id, stamp.agent_id, stamp.parent_seq,
                reason=text,
            )
        )  # fmt: skip

    def _write(self, line: JournalLine) -> None:
        try:
            self.sink.write(line)
        except Exception as error:  # noqa: BLE001  the boundary around the journal: a full disk must not end a turn
            if not self._unwritten:
                self._unwritten = True
                self.stream.warn(f"the journal cannot be written: {error}")

    def _stamp(self, frame: Frame) -> Stamp:
        o = self.origin
        return Stamp(
            o.session_id, o.run_id, o.agent_id, o.parent_call_id, o.depth, o.depth > 0, next(self._numbers), frame.seq,
            time(), self.is_continuation, self.source, frame.purpose, o.agent_type,
        )  # fmt: skip


def _matches(pattern: str, identifier: str | None) -> bool:
    from cru.core.base.files.glob import matches_identifier

    return matches_identifier(pattern, identifier)


def _ident(row: EventRow, payload: Struct) -> str | None:
    return str(getattr(payload, row.ident)) if row.ident else None


@contextmanager
def purpose(name: str, owner: str = "") -> Iterator[None]:
    """Events raised inside carry this purpose and are not dispatched to the owner (compaction, titles, prompt hooks)."""
    frame = FRAME.get()
    owners = frame.owners | {owner} if owner else frame.owners
    token = FRAME.set(Frame(owners, frame.depth, frame.seq, name, frame.below))
    try:
        yield
    finally:
        FRAME.reset(token)


@contextmanager
def without(owners: Iterable[str]) -> Iterator[None]:
    """Events raised inside are not dispatched to these owners."""
    frame = FRAME.get()
    token = FRAME.set(Frame(frame.owners | frozenset(owners), frame.depth, frame.seq, frame.purpose, frame.below))
    try:
        yield
    finally:
        FRAME.reset(token)


__all__ = ["Bus", "Event", "Outcome", "purpose", "without"]


class Extension(Protocol):
    """Somebody's code. `owner` names it in every message, `dialect` is the vocabulary that it speaks; `register` puts its
    handlers on the bus, all of them with that owner."""

    owner: str
    dialect: str

    def register(self, bus: Bus) -> None: ...
