"""The table of all settings for the documentation, made from the same structs that check them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct, json
from msgspec.structs import FieldInfo, fields

from cru.core.base.config.check import describe_range
from cru.core.base.config.layers import NOT_LOCAL, PREFIX, ConfigError, SettingsProblem

_NAMES: dict[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    object: "anything",
    Any: "anything",
    dict: "table",
    list: "list",
    tuple: "list",
}
_HEAD = "| key | type | default | what it does | in local.toml | environment |\n|---|---|---|---|---|---|\n"


def markdown(structs: Sequence[type[Struct]], docs: Mapping[str, str]) -> str:
    """Return one row for each key, in the order of the structs. `docs` maps each key, with dots for those in a table, to one line. Raises
    ConfigError for a key without a line and for a line without a key."""
    limits = {key: pair for struct in structs for key, pair in getattr(struct, "RANGES", {}).items()}
    rows: dict[str, str] = {}
    problems: list[SettingsProblem] = []
    for struct in structs:
        own = dict(row for field in fields(struct) for row in _rows(field, (), docs, limits))
        problems += [
            SettingsProblem(f"`{key}` has no line in DOCS of {struct.__module__}") for key in own if not docs.get(key)
        ]
        rows |= own
    problems += [
        SettingsProblem(f"DOCS has a line for `{key}`, which is no setting") for key in docs if key not in rows
    ]
    if problems:
        raise ConfigError(problems)
    return _HEAD + "".join(rows.values())


def _rows(
    field: FieldInfo, above: tuple[str, ...], docs: Mapping[str, str], limits: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[str, str]]:
    path = (*above, field.encode_name)
    key = ".".join(path)
    inner = _inner(field.type)
    local = "no" if path[0] in NOT_LOCAL else "yes"
    scalar = not above and inner is None and get_origin(field.type) not in (tuple, list, dict)
    env = f"`{PREFIX}{key.upper()}`" if scalar else ""
    pair = limits.get(key.replace("NAME", "*"))
    kind = describe_range(*pair).replace("a number", _type(field.type)) if pair else _type(field.type)
    cells = (f"`{key}`", kind, _default(field, inner), docs.get(key, ""), local, env)
    yield key, "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"
    if inner is not None:
        star = ("NAME",) if get_origin(field.type) is dict else ()
        for inner_field in fields(inner):
            yield from _rows(inner_field, (*path, *star), docs, limits)


def _inner(kind: object) -> type[Struct] | None:
    for member in (kind, *get_args(kind)):
        if isinstance(member, type) and issubclass(member, Struct):
            return member
    return None


def _type(kind: object) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type(args[0])
    if origin is Literal:
        return " or ".join(f"`{arg}`" if arg else '`""`' for arg in args)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f"`{member.value}`" for member in kind)
    if origin in (Union, UnionType):
        return " or ".join(_type(arg) for arg in args if arg is not NoneType)
    if origin in (tuple, list):
        return f"list of {_type(args[0])}"
    if origin is dict:
        return "table" if args[1] in (Any, object) else f"table of {_type(args[1])}s"
    if isinstance(kind, type) and issubclass(kind, Struct):
        return "table"
    return _NAMES.get(kind, getattr(kind, "__name__", str(kind)))


def _default(field: FieldInfo, inner: type[Struct] | None) -> str:
    if field.required or inner is not None:
        return "–"
    value = field.default_factory() if field.default is NODEFAULT else field.default
    if value is None or value in ({}, (), []):
        return "–"
    return f"`{json.encode(value).decode()}`"
