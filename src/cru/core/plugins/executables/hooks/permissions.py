"""The four hooks that may refuse a call: when they are asked, and what they are shown. They come last, after everything that changes the
call, and in every mode."""

from __future__ import annotations

import os

import msgspec

from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event
from cru.core.plugins.executables.hooks.hook import LegFacts
from cru.core.tools.paths import normalize_path
from cru.core.tools.protocol import ArgumentError, Tool
from cru.core.tools.web import sensitive_reason


def _call(event: Event[ToolBeforeCall], facts: LegFacts, kind: str) -> tuple[Tool, dict[str, object]] | None:
    """The tool and its final arguments; None if it is of another kind, or the call cannot run at all."""
    payload = event.payload
    tool = facts.parts.tools.find(payload.name)
    if tool is None or tool.kind != kind:
        return None
    try:
        return tool, tool.check(msgspec.json.encode(payload.args).decode())
    except ArgumentError:
        return None


def writes(event: Event[ToolBeforeCall], facts: LegFacts) -> bool:
    return _call(event, facts, "write") is not None


def runs(event: Event[ToolBeforeCall], facts: LegFacts) -> bool:
    return _call(event, facts, "shell") is not None


def reads_outside(event: Event[ToolBeforeCall], facts: LegFacts) -> bool:
    """A path outside of the project that no allow rule names."""
    call = _call(event, facts, "read")
    if call is None:
        return False
    tool, args = call
    return facts.parts.gate.leads_outside(tool.spec.name, "read", tool.subject(args), tool.paths(args))


def fetches_inside(event: Event[ToolBeforeCall], facts: LegFacts) -> bool:
    """An address of this machine or a private network, unless a rule decides on it."""
    call = _call(event, facts, "fetch")
    if call is None:
        return False
    tool, args = call
    url = tool.subject(args)
    return bool(sensitive_reason(url)) and not facts.parts.gate.judge(tool.spec.name, "fetch", url).explicit


def _path(args: dict[str, object]) -> str:
    return str(args.get("file_path") or args.get("path") or ".")


def file_to_read(event: Event[ToolBeforeCall], facts: LegFacts) -> dict[str, object]:
    args = event.payload.args
    return {
        "tool_name": event.payload.name,
        "path": os.path.join(facts.parts.place.root, normalize_path(_path(args), str(facts.parts.place.root))),
    }


def file_to_write(event: Event[ToolBeforeCall], facts: LegFacts) -> dict[str, object]:
    """`write` has its content; `edit` what it looks for and what takes its place."""
    args = event.payload.args
    path = normalize_path(_path(args), str(facts.parts.place.root))  # a handler may have changed it
    shown: dict[str, object] = {"tool_name": event.payload.name, "path": path, "content": args.get("content")}
    if "old_string" in args:
        shown |= {"operation": "replace_string", "find": args["old_string"], "replace": args.get("new_string")}
    return shown


def command_to_run(event: Event[ToolBeforeCall], facts: LegFacts) -> dict[str, object]:
    args = event.payload.args
    return {"tool_name": event.payload.name, "command": args.get("command")}


def url_to_fetch(event: Event[ToolBeforeCall], facts: LegFacts) -> dict[str, object]:
    args = event.payload.args
    url = str(args.get("url"))
    return {"tool_name": event.payload.name, "url": url, "safety": "sensitive", "reason": sensitive_reason(url)}
