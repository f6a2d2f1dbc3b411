"""Events of model servers that are not what the protocol says, read as far as their meaning is clear. Loaded when one comes."""

from __future__ import annotations

import json
import re
from os import urandom
from typing import Any, Protocol, TypeVar

import msgspec

from cru.core.models.exchange import NOT_JSON, unreadable_error
from cru.core.models.failures import ErrorObject, RequestFacts, error_for_object

Event = TypeVar("Event")


class PartFields(Protocol):
    """What a delta or a message of a reply holds."""

    content: Any
    refusal: str | None
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: list[dict[str, object]] | None
    tool_calls: Any


class CallFields(Protocol):
    """A call of a reply that is being read; `checks` counts how often its arguments were tested for being complete."""

    id: str
    name: str
    pieces: list[str]
    checks: int


_NEEDED = (
    *("choices", "delta", "message", "content", "text", "tool_calls", "function", "name", "arguments", "finish_reason"),
    *("content_block", "input", "partial_json", "stop_reason", "type", "error"),
)
"""Fields without which a reply would be cut: a value of another type there, if it is one at all, ends the reply."""
_MOST_REPAIRS = 50


def decode_irregular(
    facts: RequestFacts, decoder: msgspec.json.Decoder[Event], data: bytes, error: Exception
) -> Event | None:
    """Decode an event that `decoder` refused with `error`. None for an event without content. Raises ModelError.

    Fields of another type that are not needed are left out. Halves of a character that a server cut in two (`\\ud83d` here, `\\ude00` in
    the next event) become U+FFFD."""
    if data.strip() in (b"", b"null", b"[DONE]"):
        return None
    try:
        value = _load(data)
    except (ValueError, RecursionError):
        raise unreadable_error(facts, data) from error
    for _ in range(_MOST_REPAIRS):
        try:
            return msgspec.convert(value, decoder.type)
        except msgspec.ValidationError as mismatch:
            _remove_mismatch(facts, value, str(mismatch), data)
    raise unreadable_error(facts, data) from error


def _load(data: bytes) -> object:
    text = json.dumps(json.loads(data.decode("utf-8", "replace")), ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _remove_mismatch(facts: RequestFacts, value: object, mismatch: str, data: bytes) -> None:
    """Remove the value that a ValidationError names (`… - at `$.choices[0].index``)."""
    path = re.findall(r"\.(\w+)|\[(\d+)\]", mismatch.rpartition(" - at `$")[2]) if " - at `$" in mismatch else []
    holder: object = None
    key: str | int = ""
    for name, number in path:
        holder = value
        key = name or int(number)
        value = holder[key] if isinstance(holder, dict | list) and _has(holder, key) else None
    if not isinstance(holder, dict | list) or not _has(holder, key):
        raise unreadable_error(facts, data)
    if value and key == "error":
        raise error_for_object(facts, ErrorObject(json.dumps(value)))
    if value and (key in _NEEDED or isinstance(key, int)):
        raise unreadable_error(facts, data)
    del holder[key]  # type: ignore[arg-type]


def _has(holder: dict[str, object] | list[object], key: str | int) -> bool:
    return key in holder if isinstance(holder, dict) else isinstance(key, int) and key < len(holder)


_MESSAGES = ("message", "detail", "msg", "error_message", "errors", "reason")
_KEEP_ALIVES = ("ping", "heartbeat", "keepalive", "keep-alive", "keep_alive")
_GOOD_CODES = (None, "", 0, 200, "0", "200")


def raise_unlabelled_error(facts: RequestFacts, data: bytes, *, known_kinds: bool = False) -> None:
    """Raise the error that an event without content stands for: it has a message, a detail, a code or a type.

    Keep-alives and events about the request are no errors. Under `known_kinds` only the type `error` is one by itself."""
    try:
        value = _load(data)
    except (ValueError, RecursionError):
        raise unreadable_error(facts, data) from None
    if not isinstance(value, dict):
        return
    kind, code = value.get("type"), value.get("code", value.get("status_code"))
    if isinstance(kind, str) and kind.lower() in _KEEP_ALIVES:
        return
    text = next((value[key] for key in _MESSAGES if value.get(key)), None)
    has_bad_kind = kind == "error" if known_kinds else bool(kind)
    is_error = value.get("object") == "error" or has_bad_kind or code not in _GOOD_CODES
    if not is_error and not text:
        return
    raise error_for_object(
        facts,
        ErrorObject(
            text if isinstance(text, str) else json.dumps(text or value, ensure_ascii=False)[:500],
            code if isinstance(code, int | str) else None,
            kind if isinstance(kind, str) else None,
        ),
    )


def add_unseen(
    part: PartFields, message: PartFields, known_text: str | None, has_calls: bool, has_thinking: bool
) -> str:
    """Add to a delta what a whole `message` has and no event has brought yet. Return the text of all messages.

    known_text: of earlier messages; None if the text came in deltas, which the message only repeats
    """
    if not has_calls:
        part.tool_calls = part.tool_calls or message.tool_calls
    if not (has_thinking or part.reasoning or part.reasoning_content or part.reasoning_details):
        part.reasoning, part.reasoning_content = message.reasoning, message.reasoning_content
        part.reasoning_details = message.reasoning_details
    if known_text is None or part.content:
        return ""
    content = message.content or message.refusal or ""
    text = content if isinstance(content, str) else "".join(piece.text or "" for piece in content)
    part.content = text.removeprefix(known_text)
    return text if text.startswith(known_text) else known_text + text


def new_call_id() -> str:
    """Return an id for a call to which the server gave none, or one that another call of the reply has.

    Chat templates of Mistral refuse ids that are not nine letters and digits."""
    return f"c{urandom(4).hex()}"


_MOST_CHECKS = 64
"""How often the arguments of one call are tested for being complete: each test reads all of them."""


def fit_fragment(
    known: CallFields, index: int | None, identity: str, name: str, arguments: str
) -> tuple[bool, str, str]:
    """Decide where a fragment belongs whose index is taken by the call `known`.

    An id of its own decides. Without one, complete arguments cannot continue, and a name can only continue before arguments.
    Return whether the fragment begins a new call, and what of its name and its arguments is new."""
    is_other = bool(name) and ((bool(known.id) and identity not in ("", known.id)) or (index is None and not identity))
    if not known.pieces:
        return is_other, name if is_other else name.removeprefix(known.name), arguments  # some servers repeat the name
    if not _is_complete(known):
        is_other = is_other and arguments[:1] in ("", "{")
        return is_other, name if is_other else "", arguments
    if _repeats(known, identity, name, arguments):
        return False, "", ""
    return True, name or known.name, arguments


def _repeats(known: CallFields, identity: str, name: str, arguments: str) -> bool:
    """Whether a fragment only says again what a complete call has."""
    if arguments.strip() not in ("", "".join(known.pieces).strip()):
        return False
    if identity:
        return identity == known.id
    return not name or (bool(known.id) and name == known.name)


def _is_complete(known: CallFields) -> bool:
    if known.pieces[-1].rstrip()[-1:] != "}" or known.checks >= _MOST_CHECKS:
        return False
    known.checks += 1
    known.pieces[:] = ["".join(known.pieces)]
    try:
        return isinstance(msgspec.json.decode(known.pieces[0]), dict)
    except NOT_JSON:
        return False
