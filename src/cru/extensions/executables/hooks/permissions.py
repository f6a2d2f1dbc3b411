"""The four hooks that may refuse a call: when they are asked, and what they are shown. They come last, after everything that changes the
call, and in every mode."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from cru.events.payloads import ToolBeforeCall
from cru.events.stamp import Event
from cru.extensions.executables.hooks.hook import LegFacts
from cru.tools.protocol import ArgumentError, Tool


def _call(event: Event[ToolBeforeCall], facts: LegFacts, kind: str) -> tuple[Tool, dict[str, Any]] | None:
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
    found = _call(event, facts, "read")
    if found is None:
        return False
    tool, args = found
    return facts.parts.gate.leads_outside(tool.spec.name, "read", tool.subject(args), tool.paths(args))


def fetches_inside(event: Event[ToolBeforeCall], facts: LegFacts) -> bool:
    """An address of this machine or a private network, unless a rule decides on it."""
    found = _call(event, facts, "fetch")
    if found is None:
        return False
    from cru.tools.web import sensitive_reason

    tool, args = found
    url = tool.subject(args)
    return bool(sensitive_reason(url)) and not facts.parts.gate.judge(tool.spec.name, "fetch", url).explicit


def _args(event: Event[ToolBeforeCall]) -> tuple[dict[str, Any], dict[str, Any]]:
    payload = event.payload
    return {"tool_name": payload.name}, payload.args


def _path(args: dict[str, Any]) -> str:
    return str(args.get("file_path") or args.get("path") or ".")


def file_to_read(event: Event[ToolBeforeCall], facts: LegFacts) -> dict[str, Any]:
    said, args = _args(event)
    return {**said, "path": os.path.normpath(facts.parts.root / os.path.expanduser(_path(args)))}


def file_to_write(event: Event[ToolBeforeCall], facts: LegFacts) -> dict[str, Any]:
    """`write` has its content; `edit` what it looks for and what takes its place."""
    said, args = _args(event)
    said |= {"path": _path(args), "content": args.get("content")}
    if "old_string" in args:
        said |= {"operation": "replace_string", "find": args["old_string"], "replace": args.get("new_string")}
    return said


def command_to_run(event: Event[ToolBeforeCall], facts: LegFacts) -> dict[str, Any]:
    said, args = _args(event)
    return {**said, "command": args.get("command")}


def url_to_fetch(event: Event[ToolBeforeCall], facts: LegFacts) -> dict[str, Any]:
    from cru.tools.web import sensitive_reason

    said, args = _args(event)
    url = str(args.get("url"))
    return {**said, "url": url, "safety": "sensitive", "reason": sensitive_reason(url)}
