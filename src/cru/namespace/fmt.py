"""`cru.fmt`: a template filled with values."""

from __future__ import annotations

from typing import Any

from cru.namespace.arguments import table, text, tostring


def fmt(template: str, vars: dict[str, Any] | None = None) -> str:
    """fmt(template, vars?) -> string. Each `{word}` (letters and digits only) becomes the value of that key; a missing key keeps
    its `{word}`. Raises BadArgument if the template is no string.

    Example: cru.fmt("Hello {name}", {name="x"}) --> "Hello x"
    """
    import re

    text("cru.fmt", "template", template)
    values = {} if isinstance(vars, list) else table("cru.fmt", "vars", vars)

    def value(match: re.Match[str]) -> str:
        found = values.get(match[1])
        return match[0] if found is None else tostring(found)

    return re.sub(r"\{([A-Za-z0-9]+)\}", value, template)
