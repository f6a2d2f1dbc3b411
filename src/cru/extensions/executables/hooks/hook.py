"""What a hook of executable plugins is, and what its payloads and effects are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from cru.engine.parts import Parts
from cru.events.answers import PASS, Answer
from cru.events.payloads import LegStarted, SystemPromptBuild, ToolsSelect
from cru.events.stamp import Event
from cru.values.entries import MESSAGE
from cru.values.messages import Span

TYPED = ("user", "queue", "command")
GROUPS_KEPT = 64


class HookDispatch(Struct):
    """One hook in one dispatch, over all plugins: `ended_by` is who had the last word, "" while nobody had; `fuel` is what earlier answers
    made of it, None if they said nothing."""

    ended_by: str = ""
    fuel: int | None = None


class LegFacts(Struct):
    """What payloads of all plugins need beside the event. fuel (< 0: no limit), depth, tools, sections: of the running leg, as the
    observers of hooks that want them saw them last."""

    parts: Parts
    home: Path
    verbose: bool = False
    fuel: int = -1
    depth: int = 0
    tools: tuple[str, ...] = ()
    sections: tuple[Span, ...] = ()
    _leg: int = 0
    _groups: dict[tuple[int, str], HookDispatch] = field(default_factory=dict)

    def group(self, event: Event, hook: str) -> HookDispatch:
        key = (event.stamp.dispatch_seq, hook)
        if key not in self._groups:
            while len(self._groups) >= GROUPS_KEPT:
                del self._groups[next(iter(self._groups))]
            self._groups[key] = HookDispatch()
        return self._groups[key]

    def leg(self, event: Event) -> None:
        """A leg begins: its fuel, and how many legs of this prompt came before it."""
        assert isinstance(event.payload, LegStarted)
        self.fuel = event.payload.fuel
        if self._leg != event.stamp.dispatch_seq:
            self._leg = event.stamp.dispatch_seq
            self.depth = 0 if event.stamp.source in TYPED else self.depth + 1

    def selected(self, event: Event) -> None:
        assert isinstance(event.payload, ToolsSelect)
        self.tools = event.payload.tools

    def built(self, event: Event) -> None:
        assert isinstance(event.payload, SystemPromptBuild)
        self.sections = event.payload.sections


def count_messages(parts: Parts) -> int:
    """How many messages the context holds now; the system prompt is none of them."""
    return sum(entry.entry_type == MESSAGE for entry in parts.store.visible())


class HookAnswerContext(Struct):
    """One run of a hook whose answer is to be read. plugin: its owner · tool: the entry of its schema that registered the hook · `odd`
    collects what of the answer cannot be used, for the person."""

    event: Event
    facts: LegFacts
    plugin: str
    tool: str
    group: HookDispatch
    odd: list[str] = field(default_factory=list)

    def last_word(self, answer: Answer) -> Answer:
        """No later plugin's answer counts any more."""
        self.group.ended_by = self.plugin
        return answer

    def text(self, said: Mapping[str, Any], key: str) -> str | None:
        """A field that must be text; None if it is not there."""
        value = said.get(key)
        if value is None or isinstance(value, str):
            return value
        self.odd.append(f"`{key}` is no text and is left out")
        return None


Payload = Callable[[Event, LegFacts], dict[str, Any]]
Effect = Callable[[HookAnswerContext, Mapping[str, Any]], Answer]


def ignore_answer(run: HookAnswerContext, said: Mapping[str, Any]) -> Answer:
    """–"""
    return PASS


class ProgramHook(Struct, frozen=True):
    """One of the 34. when: in words · events: ours that it hears · payload: what it is given · effect: what an object that it returns
    does, its docstring says it for docs/executables.md · hears: which of these events it means · step: hooks of one event run in this
    order, all plugins at one step before the next · wants: what is observed for its payload (methods of Facts) · later: why it is never
    called."""

    name: str
    when: str
    events: tuple[str, ...] = ()
    payload: Payload = lambda event, facts: {}
    effect: Effect = ignore_answer
    hears: Callable[[Event, LegFacts], bool] | None = None
    step: int = 0
    wants: tuple[str, ...] = ()
    later: str = ""
