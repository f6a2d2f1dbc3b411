"""Events that did not happen: for trying hooks out, and for asking a matcher whether it fits."""

from __future__ import annotations

import time
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from cru.core.base.config.closest import did_you_mean
from cru.core.events.catalog import BY_NAME
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event, Stamp
from cru.core.hooks.errors import HookError
from cru.core.tools.builtin import TABLE

_EMPTY: dict[Any, Any] = {str: "", int: 0, float: 0.0, bool: False, dict: dict, tuple: tuple, list: list}
# What an event looks like when nobody says otherwise, beside empty texts and tables.
USUAL: dict[str, dict[str, object]] = {
    "turn:complete": {"cause": "done", "rounds": 1},
    "tool:failed": {"which": "failed", "error": "it failed"},
    "session:ended": {"reason": "exit"},
    "context:overflow": {"strategy": "rolling", "limit": 100_000, "used": 90_000, "percent": 90.0, "trigger": "manual"},
    "message:before_send": {"model": "a-model"},
}
CALL_ID = "call_test"
ABOUT_CALLS = ("tool:before_call", "permission:requested")
"""Events that say of what kind their tool is."""


class BadPayload(HookError):
    pass


def make_payload(name: str, fields: dict[str, object]) -> msgspec.Struct:
    """The payload of an event of ours, with these fields. Raises BadPayload."""
    payload = BY_NAME[name].payload
    types = get_type_hints(payload)
    for field in fields:
        if field not in types:
            hint = did_you_mean(field, types) or f"it has: {', '.join(types)}"
            raise BadPayload(f"`{name}` has no field `{field}`", hint)
    required = [info.name for info in msgspec.structs.fields(payload) if info.required]
    defaults = {field: _empty(types[field]) for field in required} | USUAL.get(name, {})
    if "call_id" in types:
        defaults["call_id"] = CALL_ID
    if name in ABOUT_CALLS:
        defaults["kind"] = _kind(str(fields.get("tool") or fields.get("name") or ""))
    try:
        return msgspec.convert({**defaults, **fields}, payload)
    except msgspec.ValidationError as error:
        raise BadPayload(f"`{name}`: {error}", "see the payload's fields in docs/events.md") from error


def _kind(tool: str) -> str:
    """The kind of a tool as rules know it."""
    return TABLE[tool].kind if tool in TABLE else "tool"


def _empty(type_: object) -> object:
    value = _EMPTY.get(get_origin(type_) or type_)
    if value is None and get_args(type_):
        return None
    return value() if isinstance(value, type) else value


def make_event(name: str, payload: msgspec.Struct) -> Event:
    """Such an event as a handler gets it, typed by a person, in no run."""
    stamp = Stamp("", "", "main", "", 0, False, 0, 0, time.time(), False, "user", "")
    return Event(BY_NAME[name], stamp, payload)


def make_call(tool: str, args: dict[str, object] | None = None) -> Event:
    """The model calls a tool, named in our words."""
    return make_event("tool:before_call", ToolBeforeCall(tool, args or {}, CALL_ID))
