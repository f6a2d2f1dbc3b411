"""Entries of cru's own hooks in Claude Code's nested form, in the flat form that the rest of the reader knows."""

from __future__ import annotations

import re
from typing import Any

from cru.core.hooks.dialects.claude.tools import TOOLS

UNHEARD = ("type", "statusMessage")
"""Keys of a handler that change nothing here."""
_NAMES = re.compile(r"[A-Za-z0-9_\-,| ]*")


def flatten_handler(group: dict[str, Any], handler: dict[str, Any], *, has_subject: bool) -> dict[str, Any]:
    """Return the handler of a group as a flat entry. has_subject: whether its event has something for a matcher to look at; elsewhere
    Claude Code ignores matchers."""
    around = {key: value for key, value in group.items() if key != "hooks" and (key != "matcher" or has_subject)}
    entry = {**around, **{key: value for key, value in handler.items() if key not in UNHEARD}}
    if isinstance(entry.get("matcher"), str):
        entry["matcher"] = to_pattern(entry["matcher"])
    if entry.get("onFailure") == "block":
        del entry["onFailure"]
        entry["on_error"] = "deny"
    return entry


def to_pattern(matcher: str) -> str:
    """Return a matcher of Claude Code as the regular expression that fits the same tools by our names."""
    if matcher in ("", "*"):
        return ""
    if not _NAMES.fullmatch(matcher):
        return matcher
    words = [word.strip() for word in re.split("[|,]", matcher)]
    names = dict.fromkeys(name for word in words if word for name in (TOOLS.own_name(word), word))
    return f"^({'|'.join(map(re.escape, names))})$"
