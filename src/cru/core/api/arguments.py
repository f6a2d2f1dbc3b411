"""Reading what an extension passed: plain data from either language, checked at the edge."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from cru.core.api.host import BadArgument, Object, host
from cru.core.api.plain_data import encode
from cru.core.base.config.closest import did_you_mean


def lua_type(value: object) -> str:
    """What Lua calls the type of this value."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, (str, bytes)):
        return "string"
    if isinstance(value, (dict, list, tuple)):
        return "table"
    return "function" if callable(value) else "userdata"


def tostring(value: object) -> str:
    """The text that Lua's `tostring` gives for plain data; tables become JSON, and a node of `cru.oil` its plain text."""
    if isinstance(value, str):
        return value
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = f"{value:.14g}"
        return text if any(c in text for c in ".einf") else f"{text}.0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Object) and (shown := value.as_text()) is not None:
        return shown
    return encode("tostring", value).decode()


def text(where: str, name: str, value: object) -> str:
    """A string. Raises BadArgument that names the function and the argument."""
    if not isinstance(value, str):
        raise BadArgument(f"{where}: {name} must be a string, got {lua_type(value)}")
    return value


def number(where: str, name: str, value: object, least: float | None = None) -> float:
    """A finite number, at least `least`. Raises BadArgument."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadArgument(f"{where}: {name} must be a number, got {lua_type(value)}")
    if value != value or value in (float("inf"), float("-inf")) or (least is not None and value < least):
        limit = "finite" if least is None else f"finite and at least {least:g}"
        raise BadArgument(f"{where}: {name} must be {limit}, got {value}")
    return value


def whole(where: str, name: str, value: object, least: int | None = None) -> int:
    """An integer; a float without a fraction is one. Raises BadArgument."""
    result = number(where, name, value, least)
    if result != int(result):
        raise BadArgument(f"{where}: {name} must be a whole number, got {value}")
    return int(result)


def function(where: str, name: str, value: object) -> Callable[..., object]:
    """Something to call. Raises BadArgument."""
    if not callable(value):
        raise BadArgument(f"{where}: {name} must be a function, got {lua_type(value)}")
    result: Callable[..., Any] = value
    return result


def table(where: str, name: str, value: Any) -> dict[Any, Any]:
    """A table with keys; nil and an empty array count as an empty one. Raises BadArgument."""
    if value is None or value == []:
        return {}
    if not isinstance(value, dict):
        raise BadArgument(f"{where}: {name} must be a table with keys, got {lua_type(value)}")
    return value


def array(where: str, name: str, value: Any) -> list[Any]:
    """A list; nil and an empty table count as an empty one. Raises BadArgument."""
    if value is None or value == {}:
        return []
    if not isinstance(value, (list, tuple)):
        what = "a table with keys" if isinstance(value, dict) else lua_type(value)
        raise BadArgument(f"{where}: {name} must be an array, got {what}")
    return list(value)


def texts(where: str, name: str, value: object) -> list[str]:
    """An array of strings; numbers become text, as in Lua. Raises BadArgument."""
    items = array(where, name, value)
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (str, int, float)):
            raise BadArgument(f"{where}: {name} must be an array of strings, got one {lua_type(item)}")
    return [tostring(item) for item in items]


def own(where: str, what: str, owner: str) -> None:
    """That the calling plugin is the owner. Raises BadArgument, which names whose it is."""
    if owner != host().plugin.name:
        raise BadArgument(f"{where}: {what} belongs to {owner}", "a plugin takes back only what is its own")


def options(where: str, value: Any, known: Collection[str]) -> dict[str, Any]:
    """A table of options. Unknown ones are reported with the closest known name, and kept out. Raises BadArgument."""
    fields = table(where, "options", value)
    unknown = [key for key in fields if key not in known]
    if not unknown:
        return fields
    for key in unknown:
        hint = did_you_mean(str(key), known)
        warn(f"{where}: unknown option `{key}`{f'; {hint}' if hint else ''}")
    return {key: fields[key] for key in fields if key in known}


def warn(message: str) -> None:
    """A warning to the person, in the name of the calling plugin."""
    here = host()
    here.session.parts.bus.stream.warn(message, here.plugin.name)
