"""`cru.permissions`: code that answers questions before a person has to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cru.events.answers import PASS, Answer
from cru.events.stamp import Event
from cru.namespace import modes
from cru.namespace.arguments import function, options, table, text, tostring, whole
from cru.namespace.callbacks import callback
from cru.namespace.host import host

_SAFE = ("read", "memory", "flow")


def on_request(work: Callable[[dict[str, Any]], Any], opts: dict[str, Any] | None = None) -> int:
    """permissions.on_request(fn(req), {pattern, priority=100}?) -> id. req is {tool_name, args, file_path, mode, is_safe}; fn returns
    {allow = true}, {deny = true, reason?} or nil. Asked only where a rule or the mode would ask a person; a refusal beats every allow,
    and an error refuses. `pattern` is a glob of tool names.

    Example: cru.permissions.on_request(function(req) return {allow=true} end) > 0 --> true
    """
    where = "cru.permissions.on_request"
    made = callback(function(where, "fn", work))
    given = options(where, opts, ("pattern", "priority"))
    fields = {
        "pattern": text(where, "pattern", given.get("pattern") or ""),
        "priority": whole(where, "priority", given.get("priority", 100)),
    }

    async def requested(event: Event) -> Answer:
        asked: Any = event.payload
        request = {
            "tool_name": asked.tool,
            "args": asked.args,
            "file_path": asked.paths[0] if asked.paths else None,
            "mode": modes.current(made.host.session),
            "is_safe": asked.kind in _SAFE,
        }
        return _verdict(where, await made.call(request))

    return host().listen("permission:requested", requested, where=where, on_error="deny", **fields)


def _verdict(where: str, found: Any) -> Answer:
    given = table(where, "the verdict", found)
    if given.get("deny"):
        return Answer(decision="deny", reason=tostring(given.get("reason") or "refused by a script"))
    return Answer(decision="allow", reason=tostring(given.get("reason") or "")) if given.get("allow") else PASS
