"""`cru.json`. In Lua, `cru.json.null` stands for JSON's null; in Python it is None."""

from __future__ import annotations

from cru.core.api import plain_data
from cru.core.api.arguments import array as as_array
from cru.core.api.arguments import text

NULL = None


def encode(value: object) -> str:
    """json.encode(value) -> string. Raises BadArgument for what is not data: functions, NaN, tables that hold themselves.

    Example: cru.json.encode({a=1}) --> '{"a":1}'
    """
    return plain_data.encode("cru.json.encode", value).decode()


def decode(source: str) -> object:
    """json.decode(text) -> value. Raises BadArgument for what is not JSON.

    Example: cru.json.decode('[1, 2]')[2] --> 2
    """
    return plain_data.decode("cru.json.decode", text("cru.json.decode", "text", source))


def array(value: object = None) -> list[object]:
    """json.array(table?) -> the table, marked as an array: an empty one encodes as `[]`. Raises BadArgument for one with keys.

    Example: cru.json.encode(cru.json.array({})) --> "[]"
    """
    return as_array("cru.json.array", "table", value)
