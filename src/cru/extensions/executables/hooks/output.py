"""What a program printed for a hook as an answer, or why it is none. A guard that slipped must not pass for one that said nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from cru.config.closest import closest
from cru.extensions.errors import HookFailed

SWITCHES = ("block", "denied", "approved")
"""The fields that refuse."""
ELSEWHERE: dict[str, bool | None] = {
    **dict.fromkeys(("block", "blocked", "denied", "deny", "reject", "refuse", "cancel", "halt", "stop"), False),
    **dict.fromkeys(("approved", "approve", "allow", "allowed", "continue"), True),
    **dict.fromkeys(("decision", "permission", "permissiondecision", "hookspecificoutput"), None),
}
"""Words that decide in other hooks and other systems → the value with which they let it be."""
MEANT = re.compile(r"""\{|\[\s*["{\[]|.*"(?:block|denied|approved)"\s*:""", re.DOTALL)
"""Text that was to be an answer; any other is for a log (`[info] looked at it`, too)."""
SHOWN = 40


def read_answer(printed: str) -> Mapping[str, Any] | None:
    """The object; None for nothing and for text, which say nothing. Raises HookFailed."""
    try:
        value = msgspec.json.decode(printed or "null")
    except (msgspec.DecodeError, RecursionError) as error:
        if MEANT.match(printed):
            raise HookFailed(
                f"what it printed is no JSON: {error}", "an answer is one object, and nothing else"
            ) from error
        return None
    if isinstance(value, list):
        raise HookFailed("it printed a list", "an answer is one object, and nothing else")
    return value if isinstance(value, Mapping) else None


def check_answer(said: Mapping[str, Any], words: tuple[str, ...]) -> None:
    """Look at an answer that does not refuse, whether it meant to. `words` are the fields that the hook knows; others are somebody's
    own, unless they are nearly one or decide elsewhere. Raises HookFailed."""
    for key, value in said.items():
        if key in words:
            if key in SWITCHES and value is not None and not isinstance(value, bool):
                raise HookFailed(f"`{key}` of its answer is {_short(value)}, not true or false")
        elif value is not None and (value is not ELSEWHERE.get(key.casefold())):
            near = closest(key, words)
            if near or key.casefold() in ELSEWHERE:
                hint = f"did you mean `{near}`?" if near else f"its fields are {', '.join(words)}"
                raise HookFailed(f"its answer has `{key}`, which means nothing here", hint)


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
