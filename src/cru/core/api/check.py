"""`cru.check`: arguments of a plugin's own functions. A failing check raises `NAME: expected TYPE, got TYPE`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cru.core.api.arguments import array, lua_type, options, tostring
from cru.core.api.host import BadArgument, host
from cru.core.api.log import log
from cru.core.base.config.closest import did_you_mean


def string(value: object, name: str, opts: dict[str, object] | None = None) -> str | None:
    """check.string(value, name, {optional}?) -> value. Raises BadArgument; with optional = true, nil passes.

    Example: cru.check.string("x", "title") --> "x"
    """
    checked: str | None = _check_type("string", value, name, opts)
    return checked


def number(value: object, name: str, opts: dict[str, object] | None = None) -> float | None:
    """check.number(value, name, {min, max, optional}?) -> value. Raises BadArgument.

    Example: pcall(cru.check.number, 7, "count", {max=5}) --> false
    """
    fields = options("cru.check.number", opts, ("min", "max", "optional"))
    checked: float | None = _check_type("number", value, name, {"optional": fields.get("optional")})
    if checked is not None:
        least, most = fields.get("min"), fields.get("max")
        if least is not None and checked < least:
            raise BadArgument(f"{name}: must be >= {tostring(least)}, got {tostring(checked)}")
        if most is not None and checked > most:
            raise BadArgument(f"{name}: must be <= {tostring(most)}, got {tostring(checked)}")
    return checked


def boolean(value: object, name: str, opts: dict[str, object] | None = None) -> bool | None:
    """check.boolean(value, name, {optional}?) -> value. Raises BadArgument.

    Example: cru.check.boolean(true, "force") --> true
    """
    checked: bool | None = _check_type("boolean", value, name, opts)
    return checked


def table(value: object, name: str, opts: dict[str, object] | None = None) -> object:
    """check.table(value, name, {optional}?) -> value. Raises BadArgument.

    Example: pcall(cru.check.table, 1, "opts") --> false
    """
    return _check_type("table", value, name, opts)


def func(value: object, name: str, opts: dict[str, object] | None = None) -> Callable[..., object] | None:
    """check.func(value, name, {optional}?) -> value. Raises BadArgument.

    Example: pcall(cru.check.func, 1, "callback") --> false
    """
    checked: Callable[..., Any] | None = _check_type("function", value, name, opts)
    return checked


def one_of(value: object, choices: list[object], name: str, opts: dict[str, object] | None = None) -> object:
    """check.one_of(value, choices, name, {optional}?) -> value. Raises BadArgument.

    Example: cru.check.one_of("a", {"a", "b"}, "mode") --> "a"
    """
    fields = options("cru.check.one_of", opts, ("optional",))
    if value is None and fields.get("optional"):
        return None
    known = array("cru.check.one_of", "choices", choices)
    if not any(value == choice and lua_type(value) == lua_type(choice) for choice in known):
        names = ", ".join(tostring(choice) for choice in known)
        raise BadArgument(f"{name}: must be one of [{names}], got {tostring(value)}")
    return value


def settings(given: dict[str, Any] | None, defaults: dict[str, Any]) -> dict[str, Any]:  # vague: a public name
    """check.settings(given, defaults) -> a new table: the defaults of a plugin with what `[plugins.NAME]` says instead. A key that has
    no default is warned about, with the closest one. Raises BadArgument for another type than the default's, and a number below 0.

    Example: cru.check.settings({limit=5}, {limit=20, tag="DONE"}).limit --> 5
    """
    section = f"[plugins.{host().plugin.name}]"
    settings = dict(defaults)
    for key, value in dict(given or {}).items():
        if key not in defaults:
            near = did_you_mean(str(key), defaults) or f"settings are {', '.join(sorted(map(str, defaults)))}"
            log("warn", f"{section} {key}: no such setting; {near}")
            continue
        settings[key] = _check_type(lua_type(defaults[key]), value, f"{section} {key}", None)
        if lua_type(value) == "number" and not value >= 0:
            raise BadArgument(f"{section} {key}: must be 0 or more, got {tostring(value)}")
    return settings


def _check_type(kind: str, value: Any, name: str, opts: dict[str, Any] | None) -> Any:
    fields = options(f"cru.check.{'func' if kind == 'function' else kind}", opts, ("optional",))
    if value is None and fields.get("optional"):
        return None
    if lua_type(value) != kind:
        raise BadArgument(f"{name}: expected {kind}, got {lua_type(value)}")
    return value
