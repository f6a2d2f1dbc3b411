"""`cru.fmt`, a template filled with values, and `cru.inspect`, any value as readable text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cru.core.api.arguments import lua_type, options, table, text, tostring, whole
from cru.core.api.host import BadArgument

LARGEST = 16 << 20
"""Characters of a text."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = frozenset(
    ("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil", "not",
     "or", "repeat", "return", "then", "true", "until", "while")
)  # fmt: skip


def fmt(template: str, vars: Mapping[str, object] | None = None) -> str:
    """fmt(template, vars?) -> string. Each `{word}` (letters and digits only) becomes the value of that key; a missing key keeps
    its `{word}`. Raises BadArgument if the template is no string, or the text would have more than 16 Mi characters.

    Example: cru.fmt("Hello {name}", {name="x"}) --> "Hello x"
    """
    text("cru.fmt", "template", template)
    values = {} if isinstance(vars, list) else table("cru.fmt", "vars", vars)

    known: dict[str, str] = {}
    room = LARGEST

    def value(match: re.Match[str]) -> str:
        nonlocal room
        key = match[1]
        if key not in known:
            known[key] = match[0] if values.get(key) is None else tostring(values[key])
        room -= len(known[key])
        if room < 0:
            raise BadArgument(f"cru.fmt: the text would have more than {LARGEST >> 20} Mi characters")
        return known[key]

    return re.sub(r"\{([A-Za-z0-9]+)\}", value, template)


def inspect(value: object, opts: dict[str, object] | None = None) -> str:
    """inspect(value, {max_depth, indent="  "}?) -> text. Arrays of plain values stand on one line; tables deeper than max_depth
    are shown as `{...}`. Raises BadArgument for bad options.

    Example: cru.inspect({1, 2}) --> "{ 1, 2 }"
    """
    where = "cru.inspect"
    fields = options(where, opts, ("max_depth", "indent"))
    indent = fields.get("indent", "  ")
    deepest = fields.get("max_depth")
    depth = 100 if deepest is None else whole(where, "max_depth", deepest, 0)
    return _show(value, text(where, "indent", indent), depth, 0)


def _show(value: object, indent: str, max_depth: int, depth: int) -> str:
    if isinstance(value, str):
        return _quote(value)
    if not isinstance(value, (dict, list, tuple)):
        return tostring(value) if lua_type(value) in ("nil", "boolean", "number") else f"<{lua_type(value)}>"
    if not value:
        return "{}"
    if depth >= max_depth:
        return "{...}"
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=_sort_key)
        items = [f"{_show_key(key)} = {_show(item, indent, max_depth, depth + 1)}" for key, item in pairs]
    else:
        items = [_show(item, indent, max_depth, depth + 1) for item in value]
        if not any("\n" in item for item in items):
            return "{ " + ", ".join(items) + " }"
    inner = "\n" + indent * (depth + 1)
    return "{" + inner + f",{inner}".join(items) + "\n" + indent * depth + "}"


def _sort_key(pair: tuple[str | float, object]) -> tuple[bool, str | float]:
    """Numbers before names."""
    key = pair[0]
    return (True, key) if isinstance(key, str) else (False, float(key))


def _show_key(key: object) -> str:
    if isinstance(key, str) and _NAME.fullmatch(key) and key not in _WORDS:
        return key
    return f"[{_quote(key) if isinstance(key, str) else tostring(key)}]"


def _quote(value: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(c, c if c >= " " and c != "\x7f" else f"\\{ord(c):03d}") for c in value) + '"'
