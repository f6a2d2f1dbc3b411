"""Refusals in what a hook printed that stand where nobody reads them: a guard that said no must not pass for one that said nothing.

A refusal begins where a key of the tables below, in any spelling, has a value that refuses. A line of a log, and whatever a hook says
about the data of a call, is none (docs/decisions/answers.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from cru.core.events.answers import STRENGTH, Answer, strength

DECISIONS = frozenset({"decision", "permission", "permissiondecision", "behavior", "behaviour", "verdict", "action"})
REFUSING = frozenset((
    "deny", "denied", "block", "blocked", "ask", "reject", "rejected", "refuse", "refused", "forbid", "forbidden",
    "cancel", "cancelled", "halt", "stop",
))  # fmt: skip
FLAGS = {
    **dict.fromkeys(("continue", "allow", "allowed", "approve", "approved", "ok"), False),
    **dict.fromkeys(("halt", "block", "blocked", "deny", "denied", "cancel"), True),
}
"""Keys that refuse by one of two values."""
DATA = frozenset((
    "updatedinput", "toolinput", "input", "args", "arguments", "changes", "updatedpermissions", "updatedtooloutput",
    "updatedmcptooloutput", "toolresponse", "llmrequest", "llmresponse", "additionalcontext", "context",
))  # fmt: skip
"""Keys that hold what a call, a request or a text says, not the hook."""
DEPTH = 4
MOST = 64
"""Braces at which no object begins; behind these only pairs of keys and values are looked for."""
LONGEST = 1 << 18
"""Characters of an output that are looked at, from its end: what is printed before an answer is the longer part."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_BLANK = re.compile(r"[\s\ufeff]*+(?:```\w*+)?[\s\ufeff]*+")
_PAIR = re.compile(r"""(["'])([A-Za-z_ -]{2,40})\1\s*:\s*["']?([A-Za-z]{2,20})""")
_DECODER = json.JSONDecoder(strict=False)


def find_unread_refusal(output: str, answer: Answer, *, is_text_legal: bool = False) -> str:
    """Return what of an output refuses although the answer that was read from it does not, "" if nothing does. is_text_legal: text counts
    on this event, so only JSON at its beginning or end was meant as an answer."""
    if not ("{" in output or ":" in output) or strength(answer) >= STRENGTH["ask"] or answer.inject is not None:
        return ""
    text = _ESCAPES.sub("", output.replace("\0", ""))[-LONGEST:]  # UTF-16 read as UTF-8 has a NUL behind each letter
    rest, at = [], 0
    for start, end, value in _objects(text):
        rest.append(text[at:start])
        is_answer = not is_text_legal or _is_blank(text[:start]) or _is_blank(text[end:])
        if is_answer and (refusal := _refusal(value, 0)):
            return refusal
        at = end
    rest.append(text[at:])
    pairs = _PAIR.findall("\n".join(rest)) if not is_text_legal else ()
    return next((f"`{key}`: {value}" for _, key, value in pairs if _refuses(key, value)), "")


def _objects(text: str) -> Iterator[tuple[int, int, object]]:
    """Each JSON object in a text, and where it begins and ends; an object in a text of JSON, too."""
    if text.lstrip().startswith('"'):
        try:
            text = str(json.loads(text))
        except (ValueError, RecursionError):
            return
    start, failures = text.find("{"), 0
    while start >= 0 and failures < MOST:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
            failures += 1
        else:
            yield start, end, value
        start = text.find("{", end)


def _is_blank(text: str) -> bool:
    return _BLANK.fullmatch(text) is not None


def _refusal(value: Any, depth: int) -> str:
    if depth > DEPTH:
        return ""
    if isinstance(value, list):
        return next((refusal for item in value if (refusal := _refusal(item, depth + 1))), "")
    if not isinstance(value, dict):
        return ""
    for key, item in value.items():
        if _folded(key) in DATA:
            continue
        if isinstance(item, str | bool) and _refuses(key, item):
            return f"`{key}`: {json.dumps(item)}"
        if refusal := _refusal(item, depth + 1):
            return refusal
    return ""


def _refuses(key: str, value: str | bool) -> bool:
    name, word = _folded(key), _folded(str(value))
    return (name in DECISIONS and word in REFUSING) or (name in FLAGS and word == str(FLAGS[name]).lower())


def _folded(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())
