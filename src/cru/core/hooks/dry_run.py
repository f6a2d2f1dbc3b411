"""Running hooks for real against an event that did not happen: no turn, no model, nothing is called (`cru hooks test`)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cru.core.conversations.line_file import LineFile
from cru.core.events.answers import Answer
from cru.core.events.bus import Bus
from cru.core.events.journal import JournalLine
from cru.core.events.stamp import Origin
from cru.core.events.stream import Notice, Published
from cru.core.hooks.inventory import HookInventory
from cru.core.hooks.model.status import Activation, LoadedHooks
from cru.core.hooks.records import FiringRecord, HookLogLine
from cru.core.hooks.session import SessionHooks

RUN = "test"


class DryRunResult(Struct):
    """What came of it.

    by: who decided
    fired: in the order in which they ended
    line: the dispatch as the journal would have it
    notices: what a person would have been told
    """

    payload: Struct
    answer: Answer
    by: str
    fired: list[FiringRecord] = field(default_factory=list)
    line: JournalLine | None = None
    notices: list[str] = field(default_factory=list)


class _DryRunHooks(SessionHooks):
    """Hooks that keep their records to themselves."""

    def __init__(self, inventory: HookInventory, loaded: LoadedHooks, folder: str) -> None:
        facts = replace(inventory.facts, folder=Path(folder))
        super().__init__(loaded, inventory.dialects, facts, LineFile(Path(os.devnull)), inventory.trust)
        self.fired: list[FiringRecord] = []

    def record(self, line: HookLogLine) -> None:
        if isinstance(line, FiringRecord):
            self.fired.append(line)


class _MemoryJournal:
    def __init__(self) -> None:
        self.lines: list[JournalLine] = []

    def write(self, line: JournalLine) -> None:
        self.lines.append(line)


async def dispatch(
    inventory: HookInventory, payload: Struct, ids: Collection[str], bind: Callable[[SessionHooks], None] | None = None
) -> DryRunResult:
    """Ask the active entries with these ids, as a session would ask them; what they leave in the context's folder goes with it. `bind`
    gives hooks in Lua and Python their session."""
    active = [status for status in inventory.loaded.of(Activation.ACTIVE) if status.entry.id in ids]
    journal = _MemoryJournal()
    bus = Bus(Origin(inventory.facts.session_id or RUN, RUN), sink=journal)
    bus.source = "user"
    notices: list[str] = []
    bus.stream.subscribe(lambda item: notices.append(_text(item)), Notice)
    with tempfile.TemporaryDirectory(prefix="cru-hooks-") as folder:
        hooks = _DryRunHooks(inventory, LoadedHooks(active), folder)
        if bind is not None:
            bind(hooks)
        hooks.register(bus)
        try:
            outcome = await bus.dispatch(payload)
        finally:
            await hooks.close()
            await bus.close()
    line = journal.lines[-1] if journal.lines else None
    return DryRunResult(outcome.payload, outcome.answer, outcome.by, hooks.fired, line, notices)


def _text(item: Published) -> str:
    return item.payload.text if isinstance(item.payload, Notice) else ""
