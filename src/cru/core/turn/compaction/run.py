"""One compaction, from `context:overflow` to the anchor and `session:compacted`. Whatever goes wrong before the anchor changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from cru.core.base.values.messages import MESSAGE, Entry, Span
from cru.core.events.bus import Bus, Outcome
from cru.core.events.payloads import ContextOverflow, SessionCompacted
from cru.core.models.protocol import ContextTooLong
from cru.core.turn import NothingToCompact, history
from cru.core.turn.compaction import Fill, Trigger, requests
from cru.core.turn.compaction.choice import choose
from cru.core.turn.compaction.units import Offer, leaving, offer
from cru.core.turn.history import History
from cru.core.turn.parts import Parts, ResolvedModel
from cru.core.turn.turn import stop_for

Strategy = Literal["rolling", "full"]
STRATEGIES = ("rolling", "full")
SHARE = 0.7
"""How much of the window the text to summarise may take; sizes are estimates, and the summary needs room too."""
TRIES = 6
"""Requests for one summary: each after the first has about half the text of the one before it."""


async def compact(
    parts: Parts,
    resolved: ResolvedModel,
    now: Fill,
    strategy: Strategy,
    ref: str,
    trigger: Trigger = "auto",
    instructions: str = "",
) -> bool:
    """Summarise and set an anchor; False if there is too little to drop or a handler cancelled. Raises TurnStopped if one halted,
    NothingToCompact and ModelError if there is no summary."""
    store = parts.store
    if trigger != "none" and _offer(parts, strategy, ref) is None:
        return False
    prompt = "\n\n".join(filter(None, (parts.prompt.compaction, instructions)))
    outcome = await parts.bus.dispatch(
        ContextOverflow(
            now.used, now.limit, round(now.percent, 1), strategy, prompt, trigger,
            _messages(store.visible()), store.summary(), instructions,
        )
    )  # fmt: skip
    if outcome.answer.halt:
        raise stop_for(outcome.answer, "the compaction")
    offered = None if outcome.answer.stops else _offer(parts, _strategy(parts.bus, outcome, strategy), ref)
    if offered is None:
        return False
    summary = _given(parts.bus, outcome)
    if trigger == "none" and not summary:
        return False
    gone = leaving(offered, None if summary else await choose(parts, resolved, offered))
    dropped = [entry for entry in store.visible() if entry.id in gone]
    if not summary:
        oldest = _oldest_part(parts, offered, ref)
        dropped, summary = await _summarise(parts, resolved, dropped, oldest, outcome.payload.summary_prompt, now)
    left = _anchor(parts, dropped, summary)
    done = SessionCompacted(summary, len(dropped), len(left), trigger, _messages(left), _messages(dropped))
    after = await parts.bus.dispatch(done)
    if after.answer.halt:
        raise stop_for(after.answer, "the turn")
    return True


def is_worthwhile(parts: Parts, ref: str) -> bool:
    """Whether there is enough to drop for a rolling compaction."""
    return _offer(parts, "rolling", ref) is not None


def _offer(parts: Parts, strategy: str, ref: str) -> Offer | None:
    share = 100.0 if strategy == "full" else parts.settings.rolling_compact_drop_percentage
    return offer(parts.store.visible(), share, ref)


def _strategy(bus: Bus, outcome: Outcome[ContextOverflow], planned: Strategy) -> str:
    strategy = outcome.payload.strategy
    if strategy in STRATEGIES:
        return strategy
    bus.stream.warn(f"unknown strategy `{strategy}`: rolling or full", outcome.changed_by("strategy"))
    return planned


def _given(bus: Bus, outcome: Outcome[ContextOverflow]) -> str:
    """The summary that a handler gave, "" if none did. It spares both requests, and the oldest part goes."""
    result = outcome.answer.result
    if isinstance(result, str) and result.strip():
        return result
    if result is not None:
        bus.stream.warn("context:overflow: a result is the summary and must be text; it is left out", outcome.by)
    return ""


def _oldest_part(parts: Parts, offered: Offer, ref: str) -> list[Entry]:
    """Return what a rolling compaction drops without a choice, if that is less than what is offered; else nothing."""
    rolling = _offer(parts, "rolling", ref)
    if rolling is None or rolling.count >= offered.count:
        return []
    gone = leaving(rolling)
    return [entry for entry in parts.store.visible() if entry.id in gone]


async def _summarise(
    parts: Parts, resolved: ResolvedModel, dropped: list[Entry], oldest: list[Entry], prompt: str, now: Fill
) -> tuple[list[Entry], str]:
    """Return what goes and the model's summary of it. Where the request is too long for the model, only the oldest part goes; then
    the longest texts lose their middle. Raises NothingToCompact and ModelError."""
    room = int(now.limit * history.BYTES_PER_TOKEN * SHARE) - len(prompt) if now.limit else None
    for _ in range(TRIES):
        texts = [*requests.texts(parts), *(requests.line(message) for message in History(dropped).messages())]
        if room is not None:
            texts = requests.fitted(texts, room)
        try:
            return dropped, await _ask_summary(parts, resolved, texts, prompt)
        except ContextTooLong as error:
            failure = error
        if oldest:
            parts.bus.stream.warn(
                "the conversation is too long for one summary: its oldest part is summarised, the rest stays"
            )
            dropped, oldest = oldest, []
        else:
            room = sum(map(len, texts)) // 2
    raise NothingToCompact(
        f"even a small part of the conversation is too long to be summarised: {failure.message}",
        "`/clear` starts from nothing; `/model NAME` chooses a model with a larger window",
    ) from failure


async def _ask_summary(parts: Parts, resolved: ResolvedModel, texts: Sequence[str], prompt: str) -> str:
    system = Span("compaction", "setting compaction prompt", prompt)
    summary = await requests.ask(parts, resolved, system, "\n\n".join(texts))
    if not summary.strip():
        raise NothingToCompact("the model gave an empty summary; nothing was changed", "try again, or another model")
    return summary


def _anchor(parts: Parts, dropped: Sequence[Entry], summary: str) -> list[Entry]:
    """The step that counts, in one go: a kill finds the context as before it or as after it."""
    store = parts.store
    gone = {entry.id for entry in dropped}
    before = list(store.visible())
    left = [entry for entry in before if entry.id not in gone]
    store.anchor("compaction", summary, [entry.id for entry in left])
    parts.history = history.project(store.entries(), store.visible())
    # After the anchor: a kill before it would have the same text written twice. A transcript of all turns keeps their order.
    store.transcript(before if store.keeps_transcript else dropped)
    store.rotate()
    return left


def _messages(entries: Iterable[Entry]) -> int:
    return sum(entry.entry_type == MESSAGE for entry in entries)
