"""Which rule would allow this call the next time: narrow enough to be answered without thinking of everything."""

from __future__ import annotations

from cru.files.glob import escape
from cru.permissions.paths import JudgedCall, PathRoots, is_inside, is_protected
from cru.shell.programs import SAFE_SUBCOMMANDS

LONGEST = 300


def rule_for(call: JudgedCall, places: PathRoots) -> str:
    """The rule in the writing of `rules.parse`, "" if none should be stored."""
    if call.kind in ("read", "write"):
        return _path_rule(call, places)
    if call.paths:
        return ""
    if call.kind == "shell":
        return _command_rule(call)
    if call.kind == "fetch":
        from cru.permissions import urls

        pattern = urls.rule_for(call.detail)
        return f"{call.tool}:{pattern}" if pattern else ""
    return call.tool


def _command_rule(call: JudgedCall) -> str:
    text = call.detail.strip()
    if call.command.parts and not call.command.opaque:
        words = call.command.parts[0]
        if len(call.command.parts) == 1 and len(words) > 1 and words[1] in SAFE_SUBCOMMANDS.get(words[0], ()):
            return f"{call.tool}:{words[0]} {words[1]} *"
    return f"{call.tool}:{escape(text)}" if text and "\n" not in text and len(text) <= LONGEST else ""


def _path_rule(call: JudgedCall, places: PathRoots) -> str:
    """In a folder of the project its files; outside, and directly in the root (where settings of all kinds lie), this file only."""
    if len({one.real for one in call.paths}) != 1:
        return ""
    one = call.paths[0]
    if is_protected(one, places):
        return ""
    if not is_inside(one.real, places.root):
        return f"{call.tool}:{escape(one.real)}"
    inner = one.real[len(places.root.rstrip("/")) + 1 :]
    if inner.partition("/")[0] == "~":  # a folder of that name; in a rule it is the user's home
        return f"{call.tool}:{escape(one.real)}"
    folder, _, name = inner.rpartition("/")
    if folder:
        return f"{call.tool}:{escape(folder)}/*"
    return f"{call.tool}:{escape(name)}" if name else ""
