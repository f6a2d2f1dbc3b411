"""What handlers did to a turn, for whoever watches it: who allowed, refused, rewrote or added something, at the call it was about; and who
asked the agent to go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

import msgspec

from cru.core.events.answers import Change
from cru.core.events.bus import Bus
from cru.core.events.journal import LOOKS_ON, HandlerRecord, JournalLine, JournalSink
from cru.core.events.payloads import (
    AgentResponded,
    InjectionPending,
    ToolCalled,
    ToolCompleted,
    ToolFailed,
    TurnComplete,
)
from cru.core.events.stream import Published, StateChanged
from cru.core.turn.parts import Parts
from cru.core.turn.prompts import find_context_file
from cru.faces.cli.call_summary import summarize_value
from cru.faces.cli.console import one_line
from cru.faces.cli.trace.moments import describe_handlers

TEXT = 60
"""Characters that are shown of a text, on each side of an arrow."""
REASON = 200
STANDING = ("session:start", "system_prompt:build", "tools:select", "message:before_send", "model:selected")
"""Events of every request: what a handler does to them is told once."""
BEFORE_CALLS = ("tool:before_call", "permission:request")
DECISIONS = {"allow": "allowed", "ask": "asks a person", "deny": "denied"}
FIELDS = {"content": "the prompt", "result": "the result", "error": "the error", "display": "what is shown"}


class Verdicts:
    """Of one session. What is known of a call before it runs is told when it runs, or comes to nothing.

    say: prints a line
    """

    def __init__(self, parts: Parts, say: Callable[[str], None]) -> None:
        self._parts, self._say = parts, say
        self._arguments: dict[str, str] = {}
        self._of_call: dict[str, list[str]] = {}
        self._injected: list[tuple[str, str]] = []
        self._continuations = 0
        self._standing: set[tuple[str, str, int]] = set()

    def watch(self, bus: Bus) -> None:
        """After whoever prints calls, so that verdicts stand below them."""
        bus.sink = _ReadJournal(bus.sink, self._read)
        bus.stream.subscribe(self._keep_arguments, AgentResponded)
        bus.stream.subscribe(lambda item: self._tell_call(item.payload.call_id), ToolCalled)
        bus.stream.subscribe(lambda item: self._tell_call(item.payload.call_id), ToolCompleted)
        bus.stream.subscribe(lambda item: self._tell_call(item.payload.call_id), ToolFailed)
        bus.stream.subscribe(self._count, TurnComplete)
        bus.stream.subscribe(self._tell_continuation, InjectionPending)
        bus.stream.subscribe(self._forget_injected, StateChanged)

    def _keep_arguments(self, item: Published[AgentResponded]) -> None:
        """As the model gave them."""
        self._arguments = {call.id: call.arguments for call in item.payload.tool_calls}

    def _read(self, line: JournalLine) -> None:
        for heard in line.heard:
            inject = heard.answer.inject
            if inject is not None:
                self._injected.append((self._name(heard), inject.content))
            if heard.owner in OWN or heard.has_failed or heard.skipped:
                continue
            effects = list(self._effects(heard, line))
            if effects and self._is_new(heard, line):
                self._keep(line, [f"  [{self._name(heard)}: {effect}]" for effect in effects])

    def _is_new(self, heard: HandlerRecord, line: JournalLine) -> bool:
        key = (line.event, heard.owner, heard.handler)
        if line.event not in STANDING:
            return True
        is_new = key not in self._standing
        self._standing.add(key)
        return is_new

    def _keep(self, line: JournalLine, texts: list[str]) -> None:
        if line.call and line.event in BEFORE_CALLS:
            self._of_call.setdefault(line.call, []).extend(texts)
        else:
            for text in texts:
                self._say(text)

    def _tell_call(self, call_id: str) -> None:
        for text in self._of_call.pop(call_id, ()):
            self._say(text)

    def _name(self, heard: HandlerRecord) -> str:
        """A command hook by its place, a plugin's handler by the plugin and its place."""
        place = heard.where
        for folder, short in ((f"{self._parts.place.root.resolve()}/", ""), (os.path.expanduser("~/"), "~/")):
            place = short + place.removeprefix(folder) if place.startswith(folder) else place
        return one_line(place if heard.owner.startswith("hook ") else f"{heard.owner} {place}".rstrip())

    def _effects(self, heard: HandlerRecord, line: JournalLine) -> Iterator[str]:
        answer = heard.answer
        is_refusal = answer.stops and line.event in BEFORE_CALLS  # whoever prints the call tells it
        why = f": {_folded(answer.reason, REASON)}" if answer.reason else ""
        if is_refusal:
            pass
        elif answer.halt:
            yield f"halts the turn{why}"
        elif answer.decision != "none":
            yield f"{DECISIONS[answer.decision]}{why}"
        for change in answer.changes:
            yield from self._changes(change, line)
        if answer.result is not None:
            yield f"answers in place of it: {summarize_value(answer.result)}"
        for text in answer.context:
            yield f"tells the model: {_folded(text, TEXT)}"
        for name in answer.context_files:
            why = find_context_file(self._parts.place.root, name)[2]
            yield f"names {one_line(name)}, which is left out: {why}" if why else f"names {one_line(name)} to the model"
        yield from (f"permits {update.kind.value} {', '.join(update.items)}" for update in answer.updates)

    def _changes(self, change: Change, line: JournalLine) -> Iterator[str]:
        if change.field == "args" and isinstance(change.value, Mapping):
            before = _decode(self._arguments.get(line.call, ""))
            for name, value in change.value.items():
                if before.get(name) != value:
                    old = f"{summarize_value(before[name])} → " if name in before else ""
                    yield f"{one_line(str(name))}: {old}{summarize_value(value)}"
            return
        name = FIELDS.get(change.field, change.field)
        shown = f": {_folded(change.value, TEXT)}" if isinstance(change.value, str) else ""
        yield f"changes {name}{shown}"

    # going on -------------------------------------------------------------------------------------------------------------------------

    def _count(self, item: Published[TurnComplete]) -> None:
        self._continuations = item.payload.continuations

    def _forget_injected(self, item: Published[StateChanged]) -> None:
        """What nobody went on with."""
        if item.payload.new == "idle":
            self._injected.clear()

    def _tell_continuation(self, item: Published[InjectionPending]) -> None:
        injected, self._injected = self._injected, []
        if not item.payload.is_continuation:
            return
        limit = self._parts.settings.max_continuations
        most = f" of at most {limit}" if limit > 0 else ""
        for name, text in injected:
            who = "the agent goes on by itself" if name.startswith("cru ") else name
            self._say(f"[{who}: {_folded(text, REASON)} (continuation {self._continuations + 1}{most})]")


class _ReadJournal:
    """Shows each line to a reader before it is written down."""

    def __init__(self, sink: JournalSink, read: Callable[[JournalLine], None]) -> None:
        self._sink, self._read = sink, read

    def write(self, line: JournalLine) -> None:
        self._read(line)
        self._sink.write(line)


def _folded(text: str, limit: int) -> str:
    return one_line(" ".join(text[: 4 * limit].split()), limit)


def _decode(arguments: str) -> Mapping[str, object]:
    """{} if they are no object."""
    try:
        decoded = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


OWN = ("cru", "hooks")
"""Owners of handlers that are cru's own."""


class TellingJournal:
    """A journal that shows, with -v, which handlers each dispatch called and what they answered, before it is written."""

    def __init__(self, sink: JournalSink, say: Callable[[str], None]) -> None:
        self._sink, self._say = sink, say

    def write(self, line: JournalLine) -> None:
        for heard, text in describe_handlers(line):
            if heard.owner not in OWN and not heard.skipped and not heard.where.endswith(LOOKS_ON):
                self._say(f"[{one_line(text)}]")
        self._sink.write(line)
