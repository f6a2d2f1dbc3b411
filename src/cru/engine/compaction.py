"""Compaction: the older part of a conversation becomes a summary; the log keeps every line (docs/contexts.md).

The model then sees the summary (a section of the system prompt) and the kept entries. A leg that is under way goes on
afterwards and answers its prompt. chibi 0.4 and 0.10 return without answering, and drop what they compact; that is not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from cru.engine import history, round
from cru.engine.errors import NothingToCompact
from cru.engine.history import History, weight
from cru.engine.parts import Parts, Voice
from cru.engine.round import Reply
from cru.engine.turn import Stop
from cru.events.bus import purpose
from cru.events.payloads import ContextOverflow, SessionCompacted
from cru.events.stream import Notice
from cru.values.entries import LEG_ENDED, MESSAGE, RESOLVED, TOOL_CALL, TOOL_RESULT, Entry
from cru.values.messages import Message, Request, Span, ToolSpec

Strategy = Literal["rolling", "full"]
STRATEGIES = ("rolling", "full")
LEAST = 4
KEPT_LAST = 2


class Fill(Struct, frozen=True):
    """How full the window is, in estimated tokens; limit 0 = unknown."""

    used: int
    limit: int

    @property
    def percent(self) -> float:
        return 100.0 * self.used / self.limit if self.limit else 0.0


class Unit(Struct):
    """Entries that live and die together: a prompt with its resolutions, or a reply with its calls and their results."""

    entries: list[Entry]
    is_prompt: bool


def fill(parts: Parts, voice: Voice, spans: Sequence[Span], tools: Sequence[ToolSpec] | None = None) -> Fill:
    """The size of the next request against the model's window; tools None = those that would be offered."""
    limit = voice.window or parts.settings.context_window_limit
    if not limit:
        return Fill(0, 0)
    if tools is None:
        tools = parts.tools.specs() if parts.offers_tools(voice) else ()
    around = sum(len(s.text) for s in spans) + (len(msgspec.json.encode(tools)) if tools else 0)
    return Fill(parts.history.tokens(around), limit)


def warn_if_full(parts: Parts, voice: Voice, spans: Sequence[Span], tools: Sequence[ToolSpec]) -> None:
    """A note for those who want to know (-v) that the window fills up."""
    now = fill(parts, voice, spans, tools)
    if now.limit and now.percent >= parts.settings.warn_threshold_percent:
        text = f"the context fills {now.percent:.0f} % of the model's window ({now.used} of {now.limit} tokens)"
        parts.bus.stream.tell(Notice("info", text))


async def fit(parts: Parts, voice: Voice, spans: Sequence[Span], tools: Sequence[ToolSpec], ref: str) -> bool:
    """Compact if it is time to, and allowed; True if the context was compacted."""
    now = fill(parts, voice, spans, tools)
    settings = parts.settings
    if not now.limit or not settings.auto_compact or now.percent < settings.auto_compact_threshold:
        return False
    return await _automatic(parts, voice, now, ref)


async def _automatic(parts: Parts, voice: Voice, now: Fill, ref: str) -> bool:
    """Without a summary nothing is dropped, and the leg goes on as it is."""
    try:
        return await compact(parts, voice, now, "rolling", ref)
    except NothingToCompact as error:
        parts.bus.stream.warn(f"not compacted: {error.message}")
        return False


async def rescue(parts: Parts, voice: Voice, ref: str) -> bool:
    """The provider says that the request is too large: compact once, if automatic compaction is on."""
    if not parts.settings.auto_compact:
        return False
    return await _automatic(parts, voice, fill(parts, voice, parts.sections()), ref)


async def manual(parts: Parts, voice: Voice) -> None:
    """`cru -z`: everything becomes the summary. Raises NothingToCompact for two messages or fewer."""
    if len(parts.history.messages()) <= KEPT_LAST:
        raise NothingToCompact("two messages or fewer: nothing to compact")
    now = fill(parts, voice, parts.sections())
    try:
        done = await compact(parts, voice, now, "full", "", trigger="manual")
    except Stop as stop:
        raise NothingToCompact(f"the compaction was halted: {stop.reason}") from stop
    if not done:
        raise NothingToCompact(
            "the compaction was skipped", "a handler of context:overflow cancelled it: see `cru trace`"
        )


async def compact(parts: Parts, voice: Voice, now: Fill, strategy: Strategy, ref: str, trigger: str = "auto") -> bool:
    """Summarise and set an anchor; False if there is too little to drop or a handler cancelled. Raises Stop if one halted."""
    dropped, kept = split(parts.store.visible(), _share(parts, strategy), ref)
    if not dropped:
        return False
    payload = ContextOverflow(now.used, now.limit, round_(now.percent), strategy, parts.compaction_prompt, trigger)
    outcome = await parts.bus.dispatch(payload)
    if outcome.answer.halt:
        raise Stop("halted", outcome.answer.reason)
    if outcome.answer.stops:
        return False
    if outcome.payload.strategy != strategy:
        if outcome.payload.strategy not in STRATEGIES:
            parts.bus.stream.warn(f"unknown strategy `{outcome.payload.strategy}`: rolling or full", outcome.by)
        else:
            dropped, kept = split(parts.store.visible(), _share(parts, outcome.payload.strategy), ref)
    if not dropped:
        return False
    result = outcome.answer.result
    summary = result if isinstance(result, str) and result else await _summary(parts, voice, dropped, outcome.payload)
    # Rotating out of the middle of the log would lose the order in which older requests were made: only the head goes.
    in_order = not kept or [e.id for e in parts.store.entries()[-len(kept) :]] == [e.id for e in kept]
    parts.store.transcript(dropped)
    parts.store.anchor("compaction", summary, [e.id for e in kept])
    parts.history = history.of(parts.store.entries(), parts.store.visible())
    if in_order:
        parts.store.rotate()
    after = await parts.bus.dispatch(SessionCompacted(summary, len(dropped), len(kept), trigger))
    if after.answer.halt:
        raise Stop("halted", after.answer.reason)
    return True


def round_(value: float) -> float:
    return float(f"{value:.1f}")


def _share(parts: Parts, strategy: str) -> float:
    return 100.0 if strategy == "full" else parts.settings.rolling_compact_drop_percentage


def split(entries: Sequence[Entry], percent: float, ref: str) -> tuple[list[Entry], list[Entry]]:
    """Which entries to drop and which to keep. The prompt `ref` of the running leg stays; calls keep their results; what is left
    of earlier legs starts with a prompt."""
    units = _units(entries)
    if len(units) <= LEAST and percent < 100:
        return [], list(entries)
    current = next((u for u in units if u.is_prompt and u.entries[0].id == ref), None)
    rest = [u for u in units if u is not current]
    count = max(1, round_half(len(rest) * percent / 100))
    count = min(count, len(rest) if percent >= 100 else max(0, len(rest) - KEPT_LAST))
    before = units.index(current) if current is not None else len(units)
    while 0 < count < len(rest) and not rest[count].is_prompt and units.index(rest[count]) < before:
        count += 1
    gone = {e.id for u in rest[:count] for e in u.entries}
    return [e for e in entries if e.id in gone], [e for e in entries if e.id not in gone]


def round_half(value: float) -> int:
    return int(value + 0.5)


def _units(entries: Sequence[Entry]) -> list[Unit]:
    units: list[Unit] = []
    owner: dict[str, Unit] = {}
    for entry in entries:
        home = _home(entry, owner)
        if home is None:
            is_prompt = entry.entry_type == MESSAGE and entry.role not in ("agent", "assistant")
            home = Unit([], is_prompt)
            units.append(home)
        home.entries.append(entry)
        for key in (entry.id, entry.metadata.get("reply", "")):
            if key:
                owner.setdefault(key, home)
        if entry.entry_type == TOOL_CALL:  # providers may use an id again: the newest call owns it
            owner[entry.tool_call_id] = home
    return units


def _home(entry: Entry, owner: dict[str, Unit]) -> Unit | None:
    if entry.entry_type in (RESOLVED, LEG_ENDED):
        return owner.get(entry.metadata.get("ref", ""))
    if entry.entry_type == TOOL_RESULT:
        return owner.get(entry.tool_call_id)
    if entry.entry_type == TOOL_CALL:
        return owner.get(entry.metadata.get("reply", ""))
    return None


async def _summary(parts: Parts, voice: Voice, dropped: Sequence[Entry], said: ContextOverflow) -> str:
    text = "\n\n".join(_line(m) for m in History(dropped).messages())
    if parts.store.summary():
        text = f"[summary so far]\n{parts.store.summary()}\n\n{text}"
    spans = (Span("compaction", "setting compaction prompt", said.summary_prompt),)
    request = Request(voice.model.name, spans, (Message("user", text),), (), voice.parameters)
    reply = Reply()
    with purpose("compaction", "cru"):
        announced = await round.announce(parts, request, "", 0)
        if announced.answer.stops:
            raise NothingToCompact(f"the request for a summary was cancelled: {announced.answer.reason}")
        upto = parts.store.entries()[-1].id
        request = announced.request
        await round.send(parts, voice, request, reply, round=0, upto=upto, messages=request.messages)
    if not reply.content.strip():
        raise NothingToCompact("the model gave an empty summary; nothing was changed", "try again, or another model")
    return reply.content


def _line(message: Message) -> str:
    calls = "".join(f"\n[call {c.name} {c.arguments}]" for c in message.calls)
    return f"[{message.role.upper()}]: {message.content}{calls}"


__all__ = ["Fill", "compact", "fill", "fit", "manual", "rescue", "split", "weight"]
