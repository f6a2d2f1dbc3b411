"""Compaction: a part of a conversation becomes a summary; the log keeps every line (docs/contexts.md).

The model then sees the summary (a section of the system prompt) and the kept entries. A leg that is under way goes on
afterwards and answers its prompt. chibi 0.4 and 0.10 return without answering, and drop what they compact; that is not copied.

Here is what every leg needs; the work itself (`run`, `units`, `choice`) is loaded when there is some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from cru.core.base.values.messages import Span, ToolSpec
from cru.core.events.payloads import ContextCleared, ContextClearing
from cru.core.events.stream import Notice
from cru.core.models.protocol import ModelError
from cru.core.turn import NothingToCompact, TooFewMessages
from cru.core.turn.parts import Parts, ResolvedModel
from cru.core.turn.turn import TurnStopped

FEWEST = 3
Trigger = Literal["auto", "manual", "none"]
"""Why a compaction is announced; none: the window fills up, and nothing is compacted unless a handler gives the summary."""


class Fill(Struct, frozen=True):
    """How full the window is, in estimated tokens; limit 0 = unknown."""

    used: int
    limit: int

    @property
    def percent(self) -> float:
        return 100.0 * self.used / self.limit if self.limit else 0.0


def find_window(parts: Parts, resolved: ResolvedModel) -> int:
    """Return the model's window in tokens, by the settings, else by the table of models once the conversation is large; 0: unknown."""
    known = resolved.window or parts.settings.context_window_limit
    if known or not parts.history.is_large:
        return known
    from cru.core.models.prices import find_listing

    return find_listing(resolved.model.provider, resolved.model.name).context_window or 0


def fill(parts: Parts, resolved: ResolvedModel, spans: Sequence[Span], tools: Sequence[ToolSpec] | None = None) -> Fill:
    """The size of the next request against the model's window; tools None = those that would be offered."""
    limit = find_window(parts, resolved)
    if not limit:
        return Fill(0, 0)
    if tools is None:
        tools = parts.tools.specs() if parts.offers_tools(resolved) else ()
    around = sum(len(s.text) for s in spans) + (len(msgspec.json.encode(tools)) if tools else 0)
    return Fill(parts.history.tokens(around), limit)


def warn_if_full(parts: Parts, resolved: ResolvedModel, spans: Sequence[Span], tools: Sequence[ToolSpec]) -> None:
    """A note for those who want to know (-v) that the window fills up."""
    now = fill(parts, resolved, spans, tools)
    if now.limit and now.percent >= parts.settings.warn_threshold_percent:
        text = f"the context fills {now.percent:.0f} % of the model's window ({now.used} of {now.limit} tokens)"
        parts.bus.stream.tell(Notice("info", text))


class Compactor:
    """Automatic compaction of one leg. Without a summary nothing is dropped and the leg goes on as it is. If that happens, or the size
    is over the threshold afterwards too, it is not tried at every round again: only once more if the provider refuses the request."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._given_up = self._rescued = self._announced = False

    async def fit(self, resolved: ResolvedModel, spans: Sequence[Span], tools: Sequence[ToolSpec], ref: str) -> bool:
        """Compact if it is time to, and allowed; True if the context was compacted. Where it is not allowed, or there is too little to
        compact, handlers hear of the size all the same, once a leg. Raises TurnStopped if a handler halted."""
        settings = self._parts.settings
        if self._given_up:
            return False
        now = fill(self._parts, resolved, spans, tools)
        if not now.limit or now.percent < settings.auto_compact_threshold:
            return False
        from cru.core.turn.compaction.run import is_worthwhile

        compacts = settings.auto_compact and is_worthwhile(self._parts, ref)
        if not compacts and self._announced:
            return False
        self._announced = True
        done = await self._compact(resolved, now, ref, "auto" if compacts else "none")
        if done:
            self._judge(resolved, spans, tools)
        return done

    def _judge(self, resolved: ResolvedModel, spans: Sequence[Span], tools: Sequence[ToolSpec]) -> None:
        """Give up if what is left is still too large; `spans` are those of before, with another summary or none."""
        parts = self._parts
        summary = [span for span in parts.prompt.sections() if span.name == "summary"]
        now = fill(parts, resolved, [*(span for span in spans if span.name != "summary"), *summary], tools)
        if now.percent < parts.settings.auto_compact_threshold:
            return
        self._given_up = True
        parts.bus.stream.warn(
            f"after the compaction the context still fills {now.percent:.0f} % of the window ({now.used} of {now.limit} tokens); "
            "it is not compacted again for this prompt"
        )

    async def rescue(self, resolved: ResolvedModel, ref: str) -> bool:
        """The provider says that the request is too large: compact once, if automatic compaction is on."""
        if not self._parts.settings.auto_compact or (self._given_up and self._rescued):
            return False
        self._rescued = True
        return await self._compact(resolved, fill(self._parts, resolved, self._parts.prompt.sections()), ref)

    async def _compact(self, resolved: ResolvedModel, now: Fill, ref: str, trigger: Trigger = "auto") -> bool:
        from cru.core.turn.compaction.run import compact

        try:
            return await compact(self._parts, resolved, now, "rolling", ref, trigger)
        except (NothingToCompact, ModelError) as error:
            self._given_up = True
            self._parts.bus.stream.warn(f"not compacted: {error.message}")
            return False


async def compact_by_hand(parts: Parts, resolved: ResolvedModel, instructions: str = "") -> None:
    """`cru -z`: everything becomes the summary. Raises NothingToCompact (no summary, a handler), TooFewMessages and
    ModelError; then nothing was changed."""
    from cru.core.turn.compaction.run import compact

    if len(parts.history.messages()) < FEWEST:
        raise TooFewMessages("two messages or fewer: nothing to compact")
    now = fill(parts, resolved, parts.prompt.sections())
    try:
        done = await compact(parts, resolved, now, "full", "", "manual", instructions)
    except TurnStopped as stop:
        raise NothingToCompact(f"the compaction was halted: {stop.reason}") from stop
    if not done:
        raise NothingToCompact(
            "the compaction was skipped", "a handler of context:overflow cancelled it: see `cru trace`"
        )


async def archive(parts: Parts, rebuild: Callable[[], None]) -> None:
    """Let the model start from nothing (`cru -a`); the log keeps every line. `rebuild` makes the session's history anew."""
    store = parts.store
    await parts.bus.dispatch(ContextClearing(store.name))
    archived = list(store.visible())
    store.anchor("archive", "", [])
    store.transcript(archived)
    store.rotate()
    rebuild()
    await parts.bus.dispatch(ContextCleared(store.name))
