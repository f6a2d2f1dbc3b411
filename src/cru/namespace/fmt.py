"""`cru.fmt`: a template filled with values."""

from __future__ import annotations

from typing import Any

from cru.namespace.arguments import table, text, tostring
from cru.namespace.host import BadArgument

LARGEST = 16 << 20
"""Characters of a text."""


def fmt(template: str, vars: dict[str, Any] | None = None) -> str:
    """fmt(template, vars?) -> string. Each `{word}` (letters and digits only) becomes the value of that key; a missing key keeps
    its `{word}`. Raises BadArgument if the template is no string, or the text would have more than 16 Mi characters.

    Example: cru.fmt("Hello {name}", {name="x"}) --> "Hello x"
    """
    import re

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
