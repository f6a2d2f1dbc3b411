"""What each mode decides for each kind of tool when no rule does. Dialects map their own mode names to these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cru.core.guard import UnknownMode

Decision = Literal["allow", "ask", "deny"]

KINDS = ("read", "write", "shell", "fetch", "memory", "message", "flow", "query", "tool")

_FREE: Mapping[str, Decision] = {"read": "allow", "memory": "allow", "flow": "allow", "query": "allow"}

MODES: Mapping[str, Mapping[str, Decision]] = {
    "ask": {**dict.fromkeys(KINDS, "ask"), **_FREE},
    "auto": {**dict.fromkeys(KINDS, "ask"), **_FREE, "write": "allow"},
    "plan": {**dict.fromkeys(KINDS, "deny"), **_FREE},
    "trust": dict.fromkeys(KINDS, "allow"),
}

MODE_DESCRIPTIONS = {
    "ask": "reads freely and asks for the rest",
    "auto": "also edits inside the project without asking",
    "plan": "only reads",
    "trust": "allows everything that no rule forbids",
}

DOING = {
    "read": "reading",
    "write": "changing files",
    "shell": "running commands",
    "fetch": "fetching from the network",
    "memory": "keeping notes",
    "message": "sending messages",
    "flow": "steering the conversation",
}
"""What a call of each kind does, in words."""

OWN_KINDS = {"update_reflection": "tool"}
"""Tools that a mode treats as those of another kind, though rules name them by their own: the reflection is in the system prompt of all
contexts, so whoever gets the model to write into it speaks to each of them."""

STRICTNESS = ("plan", "ask", "auto", "trust")
"""The modes, the strictest first: each allows all that the one before it allows."""


def stricter(first: str, second: str) -> str:
    """The stricter of two modes."""
    return min(first, second, key=STRICTNESS.index)


def check_mode(name: str) -> str:
    """The name itself. Raises UnknownMode with the nearest known name."""
    if name in MODES:
        return name
    from cru.core.base.config.closest import did_you_mean

    raise UnknownMode(f"unknown mode `{name}`", did_you_mean(name, MODES) or f"modes are {', '.join(MODES)}")


def decide(mode: str, kind: str, tool: str = "") -> Decision:
    """The table's answer; a kind that it does not know counts as "tool"."""
    table = MODES[mode]
    if tool in OWN_KINDS:
        return table[OWN_KINDS[tool]]
    return table.get(kind) or table["tool"]
