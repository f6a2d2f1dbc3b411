"""Crucible's words for our events: names, payload keys, and the way back (crucible 0.28 and the API conventions of January 2026).

One table maps each name that a script may use to one or more of our events, with the keys that it sees there. A key maps to our field
of that name unless the row says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import count
from typing import get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from cru.core.api.event_table.lazy import BIG_TEXT, Lazy, LazyDict
from cru.core.events.catalog import BY_NAME, BY_TYPE
from cru.core.events.payloads import Custom
from cru.core.events.stamp import Event


class EventAlias(Struct, frozen=True):
    """A name that a script may listen to.

    events: our events behind it
    keys: its key → our field
    only: only these keys are shown
    never: why nothing fires it here; "": something does
    """

    events: tuple[str, ...]
    keys: Mapping[str, str] = {}
    only: bool = False
    never: str = ""


_OWN_DISPLAY = "cru shows calls of tools itself"
_TOOL = {"tool": "name", "args": "args", "result": "result", "error": "error"}

# Names that are not ours, or whose keys differ.
ALIASES: dict[str, EventAlias] = {
    "tool:before": EventAlias(("tool:before_call",)),
    "tool:after": EventAlias(("tool:completed",), {"duration_ms": "duration"}),
    "tool:error": EventAlias(("tool:failed",), {"duration_ms": "duration"}),
    "tool:completed": EventAlias(("tool:completed",), {"duration_ms": "duration"}),
    "tool:failed": EventAlias(("tool:failed",), {"duration_ms": "duration"}),
    "pre_tool_call": EventAlias(("tool:before_call",), {"tool": "name", "args": "args"}, only=True),
    "tool_result": EventAlias(("tool:completed", "tool:failed"), _TOOL, only=True),
    "tool:before_execute": EventAlias(("tool:before_call",), {"name": "name", "args": "args", "env": "env"}, only=True),
    "pre_llm_call": EventAlias(("message:before_send",), {"prompt": "prompt", "model": "model"}, only=True),
    "transform_context": EventAlias(("message:before_send",), {"messages": "messages", "model": "model"}, only=True),
    "post_llm_call": EventAlias(("agent:responded",), {"response_summary": "content"}, only=True),
    "turn:complete": EventAlias(("turn:complete",), {"message_id": "ref"}),
    "context:overflow": EventAlias(("context:overflow",), {"used_tokens": "used", "max_tokens": "limit"}),
    "interaction:requested": EventAlias(("interaction:requested",), {"request_id": "id", "request": "prompt"}),
    "interaction:completed": EventAlias(("interaction:completed",), {"request_id": "id"}),
    "precognition_select": EventAlias(("notes:select",)),
    "precognition_format": EventAlias(
        (), never="cru words the notes itself; `precognition_select` chooses them and their texts"
    ),
    "tool:display_start": EventAlias((), never=_OWN_DISPLAY),
    "tool:display_complete": EventAlias((), never=_OWN_DISPLAY),
    "webhook:received": EventAlias((), never="cru receives no webhooks"),
    "FileChanged": EventAlias(("file:changed",)),
    "FileDeleted": EventAlias((), never="`file:changed` reports it with the kind `deleted`"),
    "FileMoved": EventAlias((), never="`file:changed` reports the old path as deleted and the new one as created"),
    "note:renamed": EventAlias(("note:renamed",), {"from": "old", "to": "new"}),
}

# Fields that are worked out, by our event.
EXTRA: dict[str, Callable[[Event], dict[str, object]]] = {
    "turn:complete": lambda event: {
        "session_id": event.stamp.session_id,
        "response_length": len(getattr(event.payload, "response")),  # noqa: B009  the payload's type is the row's
        "is_continuation": event.stamp.is_continuation,
    },
    "session:started": lambda event: {
        "session_id": event.stamp.session_id,
        "config": {"session_id": event.stamp.session_id, "folder": getattr(event.payload, "folder", "")},
    },
    "session:paused": lambda event: {"session_id": event.stamp.session_id},
    "session:resumed": lambda event: {"session_id": event.stamp.session_id},
}

RESERVED = ("type", "event_type", "summary")
WORKED_OUT = frozenset((*RESERVED, "identifier", "timestamp_ms", "payload", "is_continuation"))
SUMMARY = 200
_SHORT = frozenset({int, float, bool, type(None)})
_FLAT = _SHORT | {str}
NOTHING: Mapping[str, object] = {}


class PlainShape(Struct, frozen=True):
    """An event whose table shows the fields of its payload under their own names, and nothing worked out but what every event has.

    number: tells the shapes of a process apart
    name: what the script listens to
    fields: of the payload, in order
    ident: the one of them that identifies the event; "": none
    keys: what a script gets as the data of the event
    all_keys: the same, and what every event has
    tables: the fields that may be one
    """

    number: int
    name: str
    fields: tuple[str, ...]
    ident: str
    keys: frozenset[str]
    all_keys: frozenset[str]
    tables: tuple[str, ...]


_NUMBERS = count(1)


@cache
def plain_shape(name: str, payload: type[Struct]) -> PlainShape | None:
    """None if the table of this event is made otherwise."""
    row, fields = BY_TYPE[payload], payload.__struct_fields__
    if payload is Custom or row.name in EXTRA or alias_of(name).keys or not WORKED_OUT.isdisjoint(fields):
        return None
    keys = frozenset((*fields, "is_continuation"))
    hints = get_type_hints(payload)
    tables = tuple(field for field in fields if hints[field] not in _FLAT)
    return PlainShape(next(_NUMBERS), name, fields, row.ident, keys, keys | WORKED_OUT | {"name"}, tables)


class SentFields(Mapping[str, object]):
    """What `sent_fields` gives of an event that has a shape, each field when it is asked for."""

    __slots__ = ("_keys", "event", "shape")

    def __init__(self, shape: PlainShape, event: Event) -> None:
        self.shape = shape
        self.event = event
        self._keys = shape.keys

    def __getitem__(self, key: str) -> object:
        if key == "is_continuation":
            return self.event.stamp.is_continuation
        if key not in self._keys:
            raise KeyError(key)
        return _shown_value(getattr(self.event.payload, key))

    def source(self, key: str) -> object:
        """What a field of the payload is made of."""
        return getattr(self.event.payload, key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


@cache
def alias_of(name: str) -> EventAlias:
    """The word of a name; one of our own names stands for itself."""
    return ALIASES.get(name) or EventAlias((name,))


def known_events() -> list[str]:
    """Every name that a script may listen to, for suggestions."""
    return [*BY_NAME, *ALIASES]


def payload_fields(name: str, event: Event) -> dict[str, object]:
    """The payload as a script that listens to `name` sees it: plain data, shared with nobody; tables and long texts are Lazy. The data
    of an event of one's own stand flat beside its name."""
    payload = event.payload
    fields = {
        field: value
        if (kind := type(value := getattr(payload, field))) in _SHORT or (kind is str and len(value) <= BIG_TEXT)
        else _shown_value(value)
        for field in payload.__struct_fields__
    }
    if type(payload) is Custom and isinstance(payload.data, dict):
        fields = {**{key: _shown_value(value) for key, value in payload.data.items()}, **fields}
    alias = alias_of(name)
    extra = EXTRA.get(event.row.name)
    if extra is not None:
        fields.update({key: _shown_value(value) for key, value in extra(event).items()})
    if not alias.keys:
        return fields
    renamed = {key: fields.get(field) for key, field in alias.keys.items()}
    return renamed if alias.only else {**fields, **renamed}


def sent_fields(name: str, event: Event) -> Mapping[str, object]:
    """The data of an event as a script gets them."""
    shape = plain_shape(name, type(event.payload))
    return _flat_fields(name, event) if shape is None else SentFields(shape, event)


def _flat_fields(name: str, event: Event) -> dict[str, object]:
    """A payload that says itself whether it is about a continuation knows better than the stamp of the turn."""
    flat = payload_fields(name, event)
    flat.setdefault("is_continuation", event.stamp.is_continuation)
    return flat


def event_table(
    name: str, event: Event, added: Mapping[str, object] = NOTHING
) -> tuple[LazyDict, Mapping[str, object]]:
    """The event table: flat fields, `payload` with the same data, and what every event has; and these data apart, which nobody
    changes. `added`: what handlers before this one put beside them."""
    shape = None if added else plain_shape(name, type(event.payload))
    if shape is not None:
        return _plain_table(shape, event), SentFields(shape, event)
    sent = _flat_fields(name, event)
    flat = {**sent, **{key: _copy(value) for key, value in added.items() if key not in sent}} if added else sent
    payload, ident, stamp = event.payload, event.row.ident, event.stamp
    table = LazyDict(flat)
    if "type" in flat:
        for key in RESERVED:
            table.pop(key, None)
    table |= {
        "type": name, "event_type": name, "summary": Lazy(partial(_summary, flat)), "name": flat.get("name", name),
        "identifier": str(getattr(payload, ident)) if ident else None,
        "timestamp_ms": int(stamp.timestamp * 1000), "payload": Lazy(partial(LazyDict, flat)),
    }  # fmt: skip
    return table, sent


def _plain_table(shape: PlainShape, event: Event) -> LazyDict:
    """The event table of an event that has a shape: no more is made of it than is read."""
    name, payload, stamp = shape.name, event.payload, event.stamp
    fields = asdict(payload)
    lazy: dict[str, object] = {}
    for field in shape.tables:
        value = fields[field]
        if type(value) not in _FLAT:
            fields[field] = lazy[field] = Lazy(partial(_copy, value), value)
    flat = partial(_plain_fields, event, lazy)
    fields |= {
        "is_continuation": stamp.is_continuation, "type": name, "event_type": name, "summary": Lazy(lambda: _summary(flat())),
        "name": fields.get("name", name), "identifier": str(fields[shape.ident]) if shape.ident else None,
        "timestamp_ms": int(stamp.timestamp * 1000), "payload": Lazy(lambda: LazyDict(flat())),
    }  # fmt: skip
    return LazyDict(fields)


def _plain_fields(event: Event, lazy: Mapping[str, object]) -> dict[str, object]:
    return {**asdict(event.payload), **lazy, "is_continuation": event.stamp.is_continuation}


def _shown_value(value: object) -> object:
    return value if is_short(value) else Lazy(partial(_copy, value), value)


def is_short(value: object) -> bool:
    """Whether it is sent as it is: a number, a boolean, nothing, or a text that is not long."""
    return type(value) in _SHORT or (type(value) is str and len(value) <= BIG_TEXT)


def _copy(value: object) -> object:
    """Lists and dicts of one's own; records become dicts, and what is no data stays what it is."""
    if isinstance(value, (list, tuple)):
        return [_copy(item) for item in value]
    if isinstance(value, dict):
        return {key: item if type(item) in _FLAT else _copy(item) for key, item in value.items()}
    return _copy(msgspec.to_builtins(value)) if isinstance(value, Struct) else value


def _summary(flat: Mapping[str, object]) -> str:
    """The beginning of the payload as JSON; what is big is left out."""
    short = {}
    for key, value in flat.items():
        if type(value) is not Lazy:
            short[key] = value[:SUMMARY] if type(value) is str else value
        elif value.small is not None:
            short[key] = value.small
    return msgspec.json.encode(short, enc_hook=repr)[:SUMMARY].decode("utf-8", "ignore")


def field_of(name: str, key: str) -> str:
    """Our field behind a key."""
    return alias_of(name).keys.get(key, key)
