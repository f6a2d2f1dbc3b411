"""`cru.tbl_deep_extend` and `cru.tbl_get`."""

from __future__ import annotations

from typing import Any

from cru.core.api.arguments import lua_type, table
from cru.core.api.host import BadArgument

BEHAVIOURS = ("force", "keep")


def tbl_deep_extend(behaviour: str, *tables: dict[Any, Any] | None) -> dict[Any, Any]:
    """tbl_deep_extend("force"|"keep", t1, ...) -> a new table; with "force" later ones win, with "keep" earlier ones. Nested tables
    with keys are merged, arrays replace each other. Raises BadArgument.

    Example: cru.tbl_deep_extend("force", {a=1, b={c=1}}, {b={d=2}}).b.d --> 2
    """
    where = "cru.tbl_deep_extend"
    if behaviour not in BEHAVIOURS:
        raise BadArgument(f'{where}: the behaviour is "force" or "keep", got {behaviour!r}')
    merged: dict[object, object] = {}
    for source in tables:
        _merge_into(merged, table(where, "every argument", source), behaviour == "force")
    return merged


def tbl_get(value: Any, *keys: Any) -> Any:
    """tbl_get(t, k1, k2, ...) -> the value at that path, nil if anything on the way is missing. Arrays count from 1. Raises
    BadArgument if t is neither a table nor nil.

    Example: cru.tbl_get({a={{b=3}}}, "a", 1, "b") --> 3
    """
    if value is not None and not isinstance(value, (dict, list, tuple)):
        raise BadArgument(f"cru.tbl_get: t must be a table, got {lua_type(value)}")
    current = value
    for key in keys:
        if isinstance(current, dict):
            current = current.get(key)
        elif isinstance(current, (list, tuple)):
            index = (
                isinstance(key, (int, float))
                and not isinstance(key, bool)
                and 1 <= key <= len(current)
                and key == int(key)
            )
            current = current[int(key) - 1] if index else None
        else:
            return None
    return current


def _merge_into(target: dict[object, object], source: dict[object, object], force: bool) -> None:
    for key, value in source.items():
        old = target.get(key)
        if isinstance(value, dict) and (isinstance(old, dict) or old is None):
            fresh: dict[object, object] = old if isinstance(old, dict) else {}
            _merge_into(fresh, value, force)
            target[key] = fresh
        elif force or old is None:
            target[key] = value
