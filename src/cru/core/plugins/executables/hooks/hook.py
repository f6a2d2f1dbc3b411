"""What a hook of executable plugins is, and what its payloads and effects are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, field

from cru.core.base.values.messages import MESSAGE, Span
from cru.core.conversations.store import ContextStore
from cru.core.events.answers import PASS, Answer
from cru.core.events.payloads import LegStarted, SystemPromptBuild, ToolsSelect
from cru.core.events.stamp import Event
from cru.core.turn.parts import Parts
from cru.core.turn.turn import TYPED_SOURCES

DISPATCHES_KEPT = 64
LASTING = ("model", "parameters")
"""Fields of a request that a hook sets for all requests of a prompt."""


class HookDispatch(Struct):
    """One hook in one dispatch, over all plugins.

    ended_by: the plugin that had the last word, "" while none had
    fuel: what earlier answers made of it, None if they said nothing
    """

    ended_by: str = ""
    fuel: int | None = None


class ObservedFact(Enum):
    """What payloads need of events that came before, and the event that has it. Observed only for hooks that somebody registered."""

    FUEL = "leg:started"
    TOOLS = "tools:select"
    SYSTEM_PROMPT = "system_prompt:build"


class LegFacts(Struct):
    """What payloads of all plugins need beside the event.

    home: of cru
    verbose: whether programs may say more
    fuel: of the running leg when it began, < 0: no limit
    depth: how many legs of this prompt came before it
    tools: what the model may call in it
    sections: its system prompt
    """

    parts: Parts
    home: Path
    verbose: bool = False
    fuel: int = -1
    depth: int = 0
    tools: tuple[str, ...] = ()
    sections: tuple[Span, ...] = ()
    _leg: int = 0
    _dispatches: dict[tuple[int, str], HookDispatch] = field(default_factory=dict)

    def dispatch_of(self, event: Event, hook: str) -> HookDispatch:
        key = (event.stamp.dispatch_seq, hook)
        if key not in self._dispatches:
            while len(self._dispatches) >= DISPATCHES_KEPT:
                del self._dispatches[next(iter(self._dispatches))]
            self._dispatches[key] = HookDispatch()
        return self._dispatches[key]

    def observe(self, event: Event) -> None:
        """Keep what an event of `ObservedFact` says of the main agent."""
        if event.stamp.depth:
            return
        match event.payload:
            case LegStarted(fuel=fuel):
                self.fuel = fuel
                if self._leg != event.stamp.dispatch_seq:
                    self._leg = event.stamp.dispatch_seq
                    self.depth = 0 if event.stamp.source in TYPED_SOURCES else self.depth + 1
            case ToolsSelect(tools=tools):
                self.tools = tools
            case SystemPromptBuild(sections=sections):
                self.sections = sections


def count_messages(store: ContextStore) -> int:
    """How many messages the context holds now; the system prompt is none of them."""
    return sum(entry.entry_type == MESSAGE for entry in store.visible())


class HookAnswerContext(Struct):
    """One run of a hook whose answer is to be read.

    plugin: its owner
    tool: the entry of its schema that registered the hook
    dispatch: what all plugins' answers to this event share
    problems: what of the answer cannot be used, for the person
    """

    event: Event[Any]
    facts: LegFacts
    plugin: str
    tool: str
    dispatch: HookDispatch
    problems: list[str] = field(default_factory=list)

    def last_word(self, answer: Answer) -> Answer:
        """No later plugin's answer counts any more."""
        self.dispatch.ended_by = self.plugin
        return answer

    def text(self, answer: Mapping[str, object], key: str) -> str | None:
        """A field that must be text; None if it is not there."""
        value = answer.get(key)
        if value is None or isinstance(value, str):
            return value
        self.problems.append(f"`{key}` is no text and is left out")
        return None


Payload: TypeAlias = Callable[[Event[Any], LegFacts], dict[str, object]]
Effect: TypeAlias = Callable[[HookAnswerContext, Mapping[str, object]], Answer]


def ignore_answer(context: HookAnswerContext, answer: Mapping[str, object]) -> Answer:
    """–"""
    return PASS


class ProgramHook(Struct, frozen=True):
    """One of the 34.

    when: it is called, in words
    events: ours that it hears
    payload: what it is given
    effect: what an object that it returns does; its docstring says it for docs/executables.md
    hears: which of these events it means, None: all
    repeats: for which of them it is not called again: what its last answer set of LASTING holds on
    step: hooks of one event run in this order, all plugins at one step before the next
    observes: what its payload needs of earlier events
    later: why it is never called
    """

    name: str
    when: str
    events: tuple[str, ...] = ()
    payload: Payload = lambda event, facts: {}
    effect: Effect = ignore_answer
    hears: Callable[[Event[Any], LegFacts], bool] | None = None
    repeats: Callable[[Event[Any], LegFacts], bool] | None = None
    step: int = 0
    observes: tuple[ObservedFact, ...] = ()
    later: str = ""
