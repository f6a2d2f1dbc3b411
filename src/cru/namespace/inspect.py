"""`cru.inspect`: any value as readable text."""

from __future__ import annotations

import re
from typing import Any

from cru.namespace.arguments import lua_type, options, text, tostring, whole

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = frozenset(
    ("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil", "not",
     "or", "repeat", "return", "then", "true", "until", "while")
)  # fmt: skip


def inspect(value: Any, opts: dict[str, Any] | None = None) -> str:
    """inspect(value, {max_depth, indent="  "}?) -> text. Arrays of plain values stand on one line; tables deeper than max_depth
    are shown as `{...}`. Raises BadArgument for bad options.

    Example: cru.inspect({1, 2}) --> "{ 1, 2 }"
    """
    where = "cru.inspect"
    given = options(where, opts, ("max_depth", "indent"))
    indent = given.get("indent", "  ")
    deepest = given.get("max_depth")
    depth = 100 if deepest is None else whole(where, "max_depth", deepest, 0)
    return _show(value, text(where, "indent", indent), depth, 0)


def _show(value: Any, indent: str, deepest: int, depth: int) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if not isinstance(value, (dict, list, tuple)):
        return tostring(value) if lua_type(value) in ("nil", "boolean", "number") else f"<{lua_type(value)}>"
    if not value:
        return "{}"
    if depth >= deepest:
        return "{...}"
    if not isinstance(value, dict):
        return _array(value, indent, deepest, depth)
    inner = "\n" + indent * (depth + 1)
    pairs = [f"{_key(k)} = {_show(v, indent, deepest, depth + 1)}" for k, v in sorted(value.items(), key=_order)]
    return "{" + inner + f",{inner}".join(pairs) + "\n" + indent * depth + "}"


def _array(value: Any, indent: str, deepest: int, depth: int) -> str:
    items = [_show(one, indent, deepest, depth + 1) for one in value]
    if not any("\n" in item for item in items):
        return "{ " + ", ".join(items) + " }"
    inner = "\n" + indent * (depth + 1)
    return "{" + inner + f",{inner}".join(items) + "\n" + indent * depth + "}"


def _order(pair: tuple[Any, Any]) -> tuple[bool, Any]:
    key = pair[0]
    return (True, key) if isinstance(key, str) else (False, float(key))


def _key(key: Any) -> str:
    if isinstance(key, str) and _NAME.fullmatch(key) and key not in _WORDS:
        return key
    return f"[{_quoted(key) if isinstance(key, str) else tostring(key)}]"


def _quoted(value: str) -> str:
    made = (
        value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\{ord(c):03d}" for c in made) + '"'
