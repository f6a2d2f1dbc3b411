"""A bare bus with its journal and its notices, and one example of every payload."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from cru.core.events.answers import Answer
from cru.core.events.bus import Bus, Outcome
from cru.core.events.catalog import CATALOG, EventRow
from cru.core.events.journal import JournalLine
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event, Origin
from cru.core.events.stream import Notice, Published

CALL = ToolBeforeCall("bash", {"command": "ls"}, "call_1")
GATES = [row for row in CATALOG if row.kind == "gate"]


class World:
    """Everything that happened is in `lines`, `published` and `warnings`."""

    def __init__(self, origin: Origin | None = None) -> None:
        self.bus = Bus(origin or Origin("session", "run"), sink=self)
        self.lines: list[JournalLine] = []
        self.published: list[Published] = []
        self.warnings: list[str] = []
        self.bus.stream.subscribe(self.published.append)
        self.bus.stream.subscribe(self._warned, Notice)

    def _warned(self, item: Published) -> None:
        assert isinstance(item.payload, Notice)
        self.warnings.append(item.payload.text)

    def write(self, line: JournalLine) -> None:
        msgspec.json.encode(line)  # what cannot be written is a failure here as it is on disk
        self.lines.append(line)

    def on(
        self, event: str, answer: Answer | Callable[[Event], Any] | None, owner: str = "plugin", **fields: Any
    ) -> int:
        """Register a function, or an answer that is always given."""
        call: Callable[[Event], Any] = answer if callable(answer) else lambda _event: answer
        return self.bus.registry.on(event, call, owner=owner, **fields)

    def send(self, payload: Struct = CALL) -> Outcome[Any]:
        """Dispatch in a loop of its own."""
        return asyncio.run(self.bus.dispatch(payload))

    @property
    def line(self) -> JournalLine:
        """The only line of the journal."""
        assert len(self.lines) == 1
        return self.lines[0]


def example(row: EventRow, **fields: Any) -> Struct:
    """A payload of this row: required fields have the simplest value of their type."""
    simple: dict[Any, Any] = {str: "x", int: 1, float: 1.0, bool: False, dict[str, Any]: {}}
    types = get_type_hints(row.payload)
    made = {}
    for field in msgspec.structs.fields(row.payload):
        if field.required:
            kind = types[field.encode_name]
            made[field.name] = simple.get(kind, ())
    return row.payload(**{**made, **fields})
