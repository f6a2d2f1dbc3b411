"""Crush hooks on a real bus: read from a real configuration, their commands run for real or by a table of what they print."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from tests.kit.closing import closed_later

from cru.core.conversations.line_file import LineFile
from cru.core.events.bus import Bus, Outcome
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event, Origin, Stamp
from cru.core.events.stream import Notice, Published
from cru.core.hooks.dialects.crush.dialect import DIALECT as CRUSH
from cru.core.hooks.model.entry import HookEntry, HookFileProblem, HookSource, Layer
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import EventMapping
from cru.core.hooks.model.result import HookRun
from cru.core.hooks.model.status import Activation, EntryStatus, LoadedHooks
from cru.core.hooks.session import SessionHooks

Printing: TypeAlias = Callable[[dict[str, Any]], HookRun]


def about(path: Path, **more: Any) -> SessionFacts:
    given = {"cwd": path, "root": path, "env": {"PATH": "/usr/bin:/bin", "HOME": str(path)}, **more}
    return SessionFacts(
        session_id="sess", context="main", folder=path / "context", home=path / "home", user_home=path,
        mode=lambda: "ask", transcript=lambda: path / "transcript.jsonl", **given,
    )  # fmt: skip


def read(
    path: Path, text: str, layer: Layer = "user", name: str = "crush.json"
) -> tuple[list[HookEntry], list[HookFileProblem]]:
    """The entries and problems of one configuration."""
    file = CRUSH.parse(HookSource("crush", layer, path / name, text), about(path))
    return file.entries, file.problems


def config(*entries: Mapping[str, Any], event: str = "PreToolUse") -> str:
    return msgspec.json.encode({"hooks": {event: entries}}).decode()


class Made(SessionHooks):
    """Hooks of one configuration, all accepted. `prints` says what commands leave, by command or by what they get, instead of running
    them; `given` is what each got."""

    def __init__(
        self, path: Path, text: str, prints: Mapping[str, HookRun] | Printing | None = None, **more: Any
    ) -> None:
        entries, self.problems = read(path, text)
        dialect = CRUSH
        known = [
            EntryStatus(entry, Activation.ACTIVE if dialect.events.get(entry.event) else Activation.NO_EVENT)
            for entry in entries
        ]
        super().__init__(
            LoadedHooks(known), {"crush": dialect}, about(path, **more), closed_later(LineFile(path / "hooks.jsonl"))
        )
        self._prints = prints
        self.given: list[tuple[str, dict[str, Any], Mapping[str, str | None]]] = []

    async def run(self, entry: HookEntry, stdin: bytes, env: Mapping[str, str | None], stamp: Stamp) -> HookRun:
        given = msgspec.json.decode(stdin)
        self.given.append((entry.label, given, env))
        if self._prints is None:
            return await super().run(entry, stdin, env, stamp)
        return self._prints(given) if callable(self._prints) else self._prints[entry.command]


class Call(Struct):
    """What came of one call: the outcome of the dispatch, and what a person was told."""

    outcome: Outcome[ToolBeforeCall]
    notices: list[str]
    hooks: Made

    @property
    def decision(self) -> str:
        return self.outcome.answer.decision

    @property
    def reason(self) -> str:
        return self.outcome.answer.reason

    @property
    def context(self) -> str:
        return "\n".join(self.outcome.answer.context)

    @property
    def args(self) -> dict[str, Any]:
        return self.outcome.payload.args


def call(hooks: Made, tool: str = "bash", args: dict[str, Any] | None = None, *, depth: int = 0, **fields: Any) -> Call:
    """Dispatch one tool call to the hooks."""
    notices: list[str] = []

    def note(item: Published) -> None:
        assert isinstance(item.payload, Notice)
        notices.append(item.payload.text)

    bus = Bus(Origin("sess", "run"))
    bus.stream.subscribe(note, Notice)
    hooks.register(bus)
    if depth:
        bus = bus.child(Origin("sess", "run", "child", "call_0", depth))
    outcome = asyncio.run(bus.dispatch(ToolBeforeCall(tool, args or {}, "call_1", **fields)))
    return Call(outcome, notices, hooks)


def printed(path: Path, *outputs: Any, tool: str = "bash", args: dict[str, Any] | None = None, **fields: Any) -> Call:
    """One call with a hook for each output, in that order: a text, a record, or a whole Run."""
    runs = {f"hook {n}": one if isinstance(one, HookRun) else HookRun(0, _text(one)) for n, one in enumerate(outputs)}
    made = Made(path, config(*({"command": name} for name in runs)), runs)
    assert not made.problems
    return call(made, tool, args, **fields)


def _text(one: Any) -> str:
    return one if isinstance(one, str) else msgspec.json.encode(one).decode()


def event(payload: Struct, name: str, source: str = "user", depth: int = 0) -> Event:
    """An event as a handler gets it."""
    from cru.core.events.catalog import BY_NAME

    agent = "child" if depth else "main"
    stamp = Stamp("sess", "run", agent, "", depth, depth > 0, 7, 0, 0.0, False, source, "")
    return Event(BY_NAME[name], stamp, payload)


def moment(name: str) -> EventMapping:
    return CRUSH.events[name][0]
