"""What faces read: every event after its chain, raw deltas, and notices (nothing else drives them); and deltas for handlers: coalesced
(50 ms or 4 KiB), in order, through a bounded queue that the model's stream never awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextvars import ContextVar
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from cru.core.events import TooDeep
from cru.core.events.answers import LONGEST_NOTICE, PASS, Answer, cut
from cru.core.events.payloads import AgentThinking, StreamingDelta
from cru.core.events.stamp import FRAME, Frame, PayloadT, Stamp

if TYPE_CHECKING:
    from cru.core.base.values.oil.model import OilNode

ALLOWANCE = 100_000
"""Characters that one owner may say to a person at once: a few hundred messages."""
PER_SECOND = 1_000
"""Characters that it may say again each second."""
LINE = 100
"""What a message costs beside its characters."""

P = TypeVar("P", bound=Struct)


class Published(Struct, Generic[PayloadT], frozen=True):
    """One event after its chain: the final payload and the folded answer. `stamp` is None for raw deltas."""

    stamp: Stamp | None
    payload: PayloadT
    answer: Answer = PASS


class Notice(Struct, frozen=True):
    """Something a person should know, from anywhere: a warning, a failing handler, a skipped line.

    view: the same, drawn; `text` is its plain text
    """

    level: Literal["info", "warning", "error"]
    text: str
    owner: str = ""
    view: OilNode | UnsetType = UNSET


class ToolOutput(Struct, frozen=True):
    """A piece of a running tool's output, raw."""

    call_id: str
    text: str


class ReplyDropped(Struct, frozen=True):
    """What was streamed of a reply counts no more, since its model failed or refused: what is streamed from here on is the reply of
    another one. Both are provider:model."""

    model: str
    next: str


class CommandSaid(Struct, frozen=True):
    """What a command shows to the person who typed it.

    is_error: it says what went wrong
    view: the same, drawn; `text` is its plain text
    """

    command: str
    text: str
    is_error: bool = False
    view: OilNode | UnsetType = UNSET


class ToolDrew(Struct, frozen=True):
    """A tool's result as a view; the model gets `text`, its plain text."""

    call_id: str
    text: str
    view: OilNode


class StatusChanged(Struct, frozen=True):
    """What a plugin says about itself; an empty text takes it back.

    progress: 0 to 1; None: it gives none
    place: "status" or "statusline"
    """

    owner: str
    key: str
    text: str
    level: str = "info"
    progress: float | None = None
    place: str = "status"


class FactPublished(Struct, frozen=True):
    """A fact that a plugin tells faces, with its JSON value; None takes it back."""

    owner: str
    key: str
    value: Any


class StateChanged(Struct, frozen=True):
    """The leg went from one state to another (docs/turn.md)."""

    old: str
    new: str


class AgentActivity(Struct, frozen=True):
    """What a sub-agent does now; task: its id, agent: the name of its card."""

    task: str
    agent: str
    text: str


class AgentCallFailed(Struct, frozen=True):
    """A call of a sub-agent came to nothing; name, error and which as in `tool:failed`."""

    task: str
    agent: str
    name: str
    which: str
    error: str


class EntryLogged(Struct, frozen=True):
    """Log entries are on disk: a kill cannot lose them any more."""

    ids: tuple[str, ...]


StreamListener: TypeAlias = Callable[[Published[Any]], None]
"""Reads what it has subscribed to; of which types that is, `subscribe` checks."""


class _Speaker(Struct):
    """room: characters that it may say; at: when that was so; last: its last message"""

    room: float
    at: float
    last: str = ""
    is_told: bool = False


class NoticeGate:
    """Lets messages of plugins and hooks through, up to an allowance for each of them that fills up again."""

    def __init__(self) -> None:
        self._speakers: dict[str, _Speaker] = {}

    def admit(self, notice: Notice) -> Iterable[Notice]:
        """What is said in the place of this message. One that is the same as the last costs nothing: faces only count it."""
        if len(notice.text) > LONGEST_NOTICE:
            notice = replace(notice, text=cut(notice.text, LONGEST_NOTICE), view=UNSET)
        if not notice.owner or notice.level == "info":
            return (notice,)
        now = monotonic()
        speaker = self._speakers.setdefault(notice.owner, _Speaker(ALLOWANCE, now))
        if notice.text == speaker.last:
            return (notice,)
        speaker.room = min(ALLOWANCE, speaker.room + (now - speaker.at) * PER_SECOND)
        speaker.at = now
        cost = len(notice.text) + LINE
        if cost <= speaker.room:
            speaker.room -= cost
            speaker.last, speaker.is_told = notice.text, False
            return (notice,)
        if speaker.is_told:
            return ()
        speaker.is_told = True
        return (replace(notice, text=f"{notice.owner} says too much: messages of it are left out", view=UNSET),)


class Stream:
    """Readers by payload type; a reader registered with no types gets everything."""

    def __init__(self) -> None:
        self._all: tuple[StreamListener, ...] = ()
        self._some: dict[type[Struct], tuple[StreamListener, ...]] = {}
        self._gate = NoticeGate()

    def subscribe(self, reader: Callable[[Published[P]], None], *payloads: type[P]) -> None:
        if not payloads:
            self._all = (*self._all, reader)
        for payload in payloads:
            self._some[payload] = (*self._some.get(payload, ()), reader)

    def wants(self, payload: type[Struct]) -> bool:
        return bool(self._all) or payload in self._some

    def publish(self, item: Published) -> None:
        for reader in self._some.get(type(item.payload), ()):
            reader(item)
        for reader in self._all:
            reader(item)

    def tell(self, payload: Struct) -> None:
        """Publish something that is not an event of the catalog (a notice, a raw delta)."""
        if not self._all and type(payload) not in self._some:
            return
        for item in self._gate.admit(payload) if isinstance(payload, Notice) else (payload,):
            self.publish(Published(None, item))

    def warn(self, text: str, owner: str = "") -> None:
        self.tell(Notice("warning", text, owner))


WINDOW = 0.05
CHUNK = 4096
MOST = 256 * 1024
_INSIDE: ContextVar[bool] = ContextVar("cru_delivering", default=False)
"""Whether what runs now is called by a delivery, in whatever task."""


class DeltaQueue:
    """Collects text by kind and by the frame in which it was offered; one task dispatches it. What waits is bounded: over MOST
    characters the rest is left out, with one warning a reply."""

    def __init__(self, dispatch: Callable[[Struct], Awaitable[None]], warn: Callable[[str], None]) -> None:
        self._dispatch = dispatch
        self._warn = warn
        self._parts: list[tuple[Frame, Struct]] = []
        self._size = 0
        self._has_warned = False
        self._task: asyncio.Task[None] | None = None
        self._full = asyncio.Event()

    def put(self, payload: Struct) -> None:
        if self._size >= MOST:
            if not self._has_warned:
                self._has_warned = True
                self._warn(f"handlers of deltas are too slow: text beyond {MOST} characters was not shown to them")
            return
        self._parts.append((FRAME.get(), payload))
        self._size += len(_text(payload))
        self._wake()
        if self._size >= CHUNK:
            self._full.set()

    async def flush(self) -> None:
        """Wait until everything was handed over. A handler of deltas cannot wait for itself: it returns at once."""
        while not _INSIDE.get():
            if self._parts:
                self._wake()
                self._full.set()
            if self._task is None or self._task.done():
                break
            await self._finished(self._task)
        self._has_warned = False

    async def close(self) -> None:
        self._parts.clear()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _finished(self, task: asyncio.Task[None]) -> None:
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:  # Ctrl-C ends a handler that makes the reply wait
            task.cancel()
            raise
        if not task.cancelled():
            task.result()

    def _wake(self) -> None:
        if self._task is None or self._task.done():
            self._full.clear()
            self._task = asyncio.get_running_loop().create_task(self._deliver())

    async def _deliver(self) -> None:
        _INSIDE.set(True)
        while self._parts:
            try:
                await asyncio.wait_for(self._full.wait(), WINDOW)
            except TimeoutError:
                pass
            self._full.clear()
            parts, self._parts, self._size = self._parts, [], 0
            for frame, payload in _merged(parts):
                FRAME.set(frame)
                try:
                    await self._dispatch(payload)
                except TooDeep as error:
                    self._warn(error.message)


def _text(payload: Struct) -> str:
    return payload.thought if isinstance(payload, AgentThinking) else str(getattr(payload, "delta", ""))


def _merged(parts: list[tuple[Frame, Struct]]) -> Iterator[tuple[Frame, Struct]]:
    """Neighbours of one kind and frame as one; each keeps the number of its first part."""
    for (frame, kind), group in groupby(parts, key=lambda part: (part[0], type(part[1]))):
        same = [payload for _, payload in group]
        text = "".join(map(_text, same))
        seq = getattr(same[0], "seq", 0)
        yield frame, AgentThinking(text, seq) if kind is AgentThinking else StreamingDelta(text, seq)
