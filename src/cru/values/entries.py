"""One line of the log (`context.jsonl`). Field names follow chibi 0.4.1 so that either program reads the other's files."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

MESSAGE = "message"
TOOL_CALL = "tool_call"
TOOL_RESULT = "tool_result"
RESOLVED = "message_resolved"
LEG_ENDED = "leg_ended"
ANCHOR = "anchor"


class Entry(Struct, frozen=True, omit_defaults=True, gc=False):
    """id is a UUIDv4, timestamp unix seconds; metadata holds what chibi has no field for (docs/contexts.md)."""

    id: str
    timestamp: int
    from_: str = field(name="from", default="")
    to: str = ""
    content: str = ""
    entry_type: str = MESSAGE
    role: str = ""
    tool_call_id: str = ""
    metadata: dict[str, Any] = {}
    flow_control: bool = False
