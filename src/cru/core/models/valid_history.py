"""A conversation as strict servers take it: what models, MCP servers and handlers wrote, made valid. Loaded when something is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any
from zlib import crc32

import msgspec
from msgspec.structs import replace

from cru.core.base.values.messages import Message, Thinking, ToolCall
from cru.core.models.protocol import LONGEST_ID, LONGEST_NAME, NAME_CHARACTERS

_encode = msgspec.json.encode
_NO_RESULT = "There is no result of this call."
_LATE_RESULT = "[result of a tool whose call is not shown]\n"


def valid_call(call: ToolCall, id_characters: str) -> ToolCall:
    """Return a call with an id and a name that servers take, and with an object as arguments; what is no object becomes the text `_raw`."""
    arguments = call.arguments
    try:
        msgspec.json.decode(arguments or "{}", type=dict[str, object])
    except (ValueError, RecursionError):
        arguments = _encode({"_raw": arguments}).decode() if arguments.strip() else "{}"
    name = _replaced(call.name, NAME_CHARACTERS)[:LONGEST_NAME] or "unknown_tool"
    return ToolCall(valid_id(call.id, id_characters), name, arguments)


def valid_id(identity: str, characters: str) -> str:
    """Return the id of a call as servers take it. Ids that differ stay different."""
    longest = (
        LONGEST_NAME if ":" in identity else LONGEST_ID
    )  # models that want their own ids back count calls behind a colon
    if identity and len(identity) <= longest and not identity.strip(characters):
        return identity
    return f"{_replaced(identity, characters)[: LONGEST_ID - 9] or 'call'}_{crc32(identity.encode('utf-8', 'replace')):08x}"


class UniqueIds:
    """Messages of a conversation in which ids of calls repeat (`call_1` in every round), with ids that do not.

    What a message becomes depends on the messages before it only, so later requests send the same bytes."""

    def __init__(self) -> None:
        self._sent: list[Message] = []
        self._used: set[str] = set()
        self._open: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def apply(self, messages: Sequence[Message], same: int) -> Sequence[Message]:
        """Return the messages with other ids where one repeats; the first `same` are those of the last time."""
        if same < len(self._sent):
            for known in (self._sent, self._used, self._open, self._counts):
                known.clear()
        self._sent += [self._renamed(message) for message in messages[len(self._sent) :]]
        return tuple(self._sent)

    def _renamed(self, message: Message) -> Message:
        if message.role == "tool":
            waiting = self._open.get(message.call_id, [message.call_id])
            sent = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            return message if sent == message.call_id else replace(message, call_id=sent)
        self._open.update((call.id, []) for call in message.calls)
        calls = tuple(self._rename_call(call) for call in message.calls)
        if all(map(is_, calls, message.calls)):
            return message
        return replace(message, calls=calls, thinking=rename_in_thinking(message, calls))

    def _rename_call(self, call: ToolCall) -> ToolCall:
        """Return the call with the first free id of `ID`, `ID_2`, `ID_3`, …; its results have that from here on."""
        identity, number = call.id, self._counts.get(call.id, 1)
        while identity in self._used:
            number += 1
            identity = f"{call.id}_{number}"
        self._counts[call.id] = number
        self._used.add(identity)
        self._open[call.id].append(identity)
        return call if identity == call.id else replace(call, id=identity)


def rename_in_thinking(message: Message, calls: Sequence[ToolCall]) -> tuple[Thinking, ...]:
    """Return the reasoning of a message with the ids that its calls have now: signatures of Gemini name the call that they belong to."""
    ids = {old.id: new.id for old, new in zip(message.calls, calls, strict=True)}

    def rename(detail: object) -> object:
        if isinstance(detail, dict) and isinstance(detail.get("id"), str) and detail["id"] in ids:
            return {**detail, "id": ids[detail["id"]]}
        return detail

    return tuple(
        replace(thinking, data={**thinking.data, key: [rename(detail) for detail in details]})
        if isinstance(details := thinking.data.get(key := "reasoning_details"), list)
        else thinking
        for thinking in message.thinking
    )


def _replaced(text: str, characters: str) -> str:
    return "".join(char if char in characters else "_" for char in text)


def match_results(
    messages: Sequence[Message], fragments: Sequence[bytes], encode: Callable[[Message], bytes]
) -> tuple[list[Message], list[bytes]]:
    """Give every call a result right behind it, and make a message of the user's from a result without a call."""
    kept: list[Message] = []
    encoded: list[bytes] = []
    waiting: dict[str, None] = {}

    def add(message: Message, fragment: bytes | None = None) -> None:
        kept.append(message)
        encoded.append(encode(message) if fragment is None else fragment)

    def add_missing() -> None:
        for call_id in waiting:
            add(Message("tool", _NO_RESULT, call_id=call_id, is_error=True))
        waiting.clear()

    for message, fragment in zip(messages, fragments, strict=True):
        if message.role == "tool" and message.call_id not in waiting:
            add_missing()
            add(Message("user", _LATE_RESULT + message.content, images=message.images))
            continue
        if message.role == "tool":
            del waiting[message.call_id]
        else:
            add_missing()
            waiting = dict.fromkeys(call.id for call in message.calls)
        add(message, fragment)
    add_missing()
    return kept, encoded


def join_neighbours(elements: Sequence[bytes]) -> list[bytes]:
    """Make one message of neighbours with one role: templates of local models refuse conversations whose roles do not alternate."""
    joined: list[bytes] = []
    row: list[dict[str, Any]] = []
    rows: dict[int, list[dict[str, Any]]] = {}
    for element in elements:
        message = msgspec.json.decode(element)
        if not row or not _may_join(row[-1], message):
            row = []
            joined.append(element)
        row.append(message)
        if len(row) > 1:
            rows[len(joined) - 1] = row
    for at, row in rows.items():
        joined[at] = _encode({**row[-1], "content": _join([message["content"] for message in row])})
    return joined


def _may_join(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Return whether two messages have one role, and the first is only a text or parts."""
    return first["role"] == second["role"] != "tool" and first.keys() == {"role", "content"}


def _join(contents: list[Any]) -> object:
    contents = [content for content in contents if content is not None]
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(contents)
    parts = [content if isinstance(content, list) else [{"type": "text", "text": content}] for content in contents]
    return [part for each in parts for part in each]


def valid_schema(schema: dict[str, object]) -> dict[str, object]:
    """Return a schema of arguments as an object with properties, without a choice at its top.

    It has the properties of all branches. Those are required that every branch requires, or for `allOf` any branch."""
    valid = {**schema, "type": "object"}
    properties, required = dict(_table(schema.get("properties"))), _names(schema.get("required"))
    for key in ("allOf", "anyOf", "oneOf"):
        branches = valid.pop(key, None)
        tables = [_resolve(schema, branch) for branch in branches] if isinstance(branches, list) else []
        for table in tables:
            properties = {**_table(table.get("properties")), **properties}
        needed = [_names(table.get("required")) for table in tables]
        candidates = dict.fromkeys(name for names in needed for name in names)
        required += [name for name in candidates if key == "allOf" or all(name in names for names in needed)]
    valid["properties"] = properties
    if required:
        valid["required"] = list(dict.fromkeys(required))
    return valid


def _resolve(schema: dict[str, object], branch: object) -> dict[str, object]:
    """A branch, or what it refers to in the same schema."""
    table = _table(branch)
    reference = table.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return table
    target: object = schema
    for name in reference[2:].split("/"):
        target = _table(target).get(name)
    return _table(target)


def _table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _names(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
