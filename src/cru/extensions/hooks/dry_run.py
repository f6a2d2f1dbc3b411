"""Running hooks for real against an event that did not happen: no turn, no model, nothing is called (`cru hooks test`)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cru.contexts.line_file import LineFile
from cru.events.answers import Answer
from cru.events.bus import Bus
from cru.events.journal import JournalLine
from cru.events.stamp import Origin
from cru.events.stream import Notice, Published
from cru.extensions.hooks.loader import LoadedHooks
from cru.extensions.hooks.records import FiringRecord, HookLogLine
from cru.extensions.hooks.session import Hooks
from cru.extensions.hooks.setup import HookInventory

RUN = "test"


class DryRunResult(Struct):
    """What came of it. fired: in the order in which they ended · line: the dispatch as the journal would have it · notices: what a
    person would have been told."""

    payload: Any
    answer: Answer
    by: str
    fired: list[FiringRecord] = field(default_factory=list)
    line: JournalLine | None = None
    notices: list[str] = field(default_factory=list)


class _Trial(Hooks):
    """Hooks that keep their records to themselves."""

    def __init__(self, found: HookInventory, loaded: LoadedHooks, folder: str) -> None:
        about = replace(found.about, folder=Path(folder))
        super().__init__(loaded, found.dialects, about, LineFile(Path(os.devnull)), found.trust)
        self.fired: list[FiringRecord] = []

    def record(self, line: HookLogLine) -> None:
        if isinstance(line, FiringRecord):
            self.fired.append(line)


class _Sink:
    def __init__(self) -> None:
        self.lines: list[JournalLine] = []

    def write(self, line: JournalLine) -> None:
        self.lines.append(line)


async def dispatch(
    found: HookInventory, payload: Struct, ids: Collection[str], bind: Callable[[Hooks], None] | None = None
) -> DryRunResult:
    """Ask the active entries with these ids, as a session would ask them; what they leave in the context's folder goes with it. `bind`
    gives hooks in Lua and Python their session."""
    loaded = LoadedHooks([one for one in found.loaded.known if one.entry.id in ids and one.state == "active"])
    sink = _Sink()
    bus = Bus(Origin(found.about.session_id or RUN, RUN), sink=sink)
    bus.source = "user"
    notices: list[str] = []
    bus.stream.subscribe(lambda item: notices.append(_text(item)), Notice)
    with tempfile.TemporaryDirectory(prefix="cru-hooks-") as folder:
        trial = _Trial(found, loaded, folder)
        if bind is not None:
            bind(trial)
        trial.register(bus)
        try:
            outcome = await bus.dispatch(payload)
        finally:
            await trial.close()
            await bus.close()
    return DryRunResult(
        outcome.payload, outcome.answer, outcome.by, trial.fired, sink.lines[-1] if sink.lines else None, notices
    )


def _text(item: Published) -> str:
    return item.payload.text if isinstance(item.payload, Notice) else ""
