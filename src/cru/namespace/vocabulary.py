"""Crucible's words for our events: names, payload keys, and the way back (crucible 0.28 and the API conventions of January 2026).

One table maps each name that a script may use to one or more of our events, with the keys that it sees there. A key maps to our field
of that name unless the row says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cru.events.catalog import BY_NAME, Row
from cru.events.stamp import Event


class Word(Struct, frozen=True):
    """One name. `events`: ours; `keys`: their key → our field; only these are shown if `only`."""

    events: tuple[str, ...]
    keys: Mapping[str, str] = {}
    only: bool = False


_TOOL = {"tool": "name", "args": "args", "result": "result", "error": "error"}

# Names that are not ours, or whose keys differ.
WORDS: dict[str, Word] = {
    "tool:before": Word(("tool:before_call",)),
    "tool:after": Word(("tool:completed",), {"duration_ms": "duration"}),
    "tool:error": Word(("tool:failed",), {"duration_ms": "duration"}),
    "tool:completed": Word(("tool:completed",), {"duration_ms": "duration"}),
    "tool:failed": Word(("tool:failed",), {"duration_ms": "duration"}),
    "pre_tool_call": Word(("tool:before_call",), {"tool": "name", "args": "args"}, only=True),
    "tool_result": Word(("tool:completed", "tool:failed"), _TOOL, only=True),
    "tool:before_execute": Word(("tool:before_call",), {"name": "name", "args": "args", "env": "env"}, only=True),
    "pre_llm_call": Word(("message:before_send",), {"prompt": "prompt", "model": "model"}, only=True),
    "transform_context": Word(("message:before_send",), {"messages": "messages", "model": "model"}, only=True),
    "post_llm_call": Word(("agent:responded",), {"response_summary": "content"}, only=True),
    "turn:complete": Word(("turn:complete",), {"message_id": "ref"}),
    "context:overflow": Word(("context:overflow",), {"used_tokens": "used", "max_tokens": "limit"}),
    "interaction:requested": Word(("interaction:requested",), {"request_id": "id", "request": "prompt"}),
    "interaction:completed": Word(("interaction:completed",), {"request_id": "id"}),
    "FileChanged": Word(("file:changed",)),
}

# Fields that are worked out, by our event.
EXTRA: dict[str, Callable[[Event, dict[str, Any]], dict[str, Any]]] = {
    "turn:complete": lambda event, fields: {
        "session_id": event.stamp.session_id,
        "response_length": len(fields["response"]),
        "is_continuation": event.stamp.is_continuation,
    },
    "session:started": lambda event, fields: {
        "session_id": event.stamp.session_id,
        "config": {"session_id": event.stamp.session_id, "folder": fields["folder"]},
    },
    "session:paused": lambda event, fields: {"session_id": event.stamp.session_id},
    "session:resumed": lambda event, fields: {"session_id": event.stamp.session_id},
}

RESERVED = ("type", "event_type", "summary")
SUMMARY = 200


def word(name: str) -> Word:
    """The word of a name; one of our own names stands for itself."""
    return WORDS.get(name) or Word((name,))


def known() -> list[str]:
    """Every name that a script may listen to, for suggestions."""
    return [*BY_NAME, *WORDS]


def shown(name: str, event: Event) -> dict[str, Any]:
    """The payload as a script that listens to `name` sees it: plain data, shared with nobody."""
    fields: dict[str, Any] = msgspec.to_builtins(event.payload)
    said = word(name)
    extra = EXTRA.get(event.row.name)
    if extra is not None:
        fields.update(extra(event, fields))
    renamed = {key: fields.get(field) for key, field in said.keys.items()}
    return renamed if said.only else {**fields, **renamed}


def whole(name: str, event: Event) -> dict[str, Any]:
    """The event table: flat fields, `payload` with the same data, and what every event has."""
    flat = shown(name, event)
    row: Row = event.row
    ident = str(getattr(event.payload, row.ident)) if row.ident else None
    text = msgspec.json.encode(flat, enc_hook=repr)[:SUMMARY].decode("utf-8", "ignore")
    table = {key: value for key, value in flat.items() if key not in RESERVED}
    table.update(
        type=name, event_type=name, summary=text, name=table.get("name", name), identifier=ident,
        timestamp_ms=int(event.stamp.timestamp * 1000), is_continuation=event.stamp.is_continuation,
        payload={**shown(name, event), "is_continuation": event.stamp.is_continuation},
    )  # fmt: skip
    return table


def sent(name: str, event: Event, table: dict[str, Any]) -> dict[str, Any]:
    """What the handler was given, to compare with what came back: Python handlers may have changed the table in place."""
    return {"payload": {**shown(name, event), "is_continuation": event.stamp.is_continuation}}


def field_of(name: str, key: str) -> str:
    """Our field behind a key."""
    return word(name).keys.get(key, key)
