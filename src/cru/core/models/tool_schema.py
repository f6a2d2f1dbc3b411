"""Tools for models that only know JSON: a choice of `{"name": …, "arguments": {…}}` as a schema, and back."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from cru.core.base.values.messages import CallPart, ToolSpec

LONGEST_STRING = 200


class _ChosenCall(Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


_decode = msgspec.json.Decoder(_ChosenCall).decode


def call_schema(tools: tuple[ToolSpec, ...]) -> dict[str, object]:
    """The JSON Schema of one call of one of the tools. Strings get a limit, or a small model never ends them."""
    return {"anyOf": [_one_call_schema(tool) for tool in tools]}


def _one_call_schema(tool: ToolSpec) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": _with_limits(tool.parameters or {"type": "object"})},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _with_limits(part: object) -> object:
    if isinstance(part, list):
        return [_with_limits(item) for item in part]
    if not isinstance(part, dict):
        return part
    copy = {key: _with_limits(value) for key, value in part.items() if key != "description"}
    if copy.get("type") == "string" and not {"enum", "const", "maxLength"} & copy.keys():
        copy["maxLength"] = LONGEST_STRING
    if copy.get("type") == "object" and "properties" in copy:
        copy.setdefault("additionalProperties", False)
    return copy


def parse_call(text: str, index: int, identity: str) -> CallPart | None:
    """The call that a reply under `schema` stands for; None if it was cut off."""
    try:
        call = _decode(text)
        arguments = msgspec.json.encode(msgspec.json.decode(call.arguments)).decode()
    except (msgspec.DecodeError, RecursionError):
        return None
    return CallPart(index, identity, call.name, arguments)
