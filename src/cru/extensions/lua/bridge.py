"""The table `cru` of Lua, made out of the table of names: each name is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from cru.extensions.lua.convert import HostFunction, WithNull
from cru.extensions.lua.runtime import INSTALL, LuaVM
from cru.namespace.host import BadArgument, NotAvailable, Object

BARE = ("http", "fs", "shell", "oq", "paths", "graph", "mcp", "inspect", "ask", "popup", "ui")
"""Families that are global names as well."""

DIALOGS = frozenset(
    {
        "ask.ask_user",
        "popup.show",
        "show_panel",
        "ui.ask",
        "ui.ask_batch",
        "ui.edit",
        "ui.panel",
        "ui.permission",
        "ui.popup",
        "ui.show",
    }
)
"""Names that wait for a person: their waiting is not limited."""


def install(vm: LuaVM, names: Mapping[str, str]) -> None:
    """Make `cru` (and `crucible`, the same table), the bare globals and the modules `cjson` and `json`. `names` maps dotted names to
    "module:attribute" (a module without a dot is one of `cru.namespace`);
    a name that is also the beginning of others is a table that can be called."""

    def resolve(name: str) -> Any:
        return _resolved(name, names[name])

    tree = _tree(names)
    callable_tables = {path: True for path in tree if path in names}
    bare = [name for name in BARE if name in tree[""]]
    vm.finish(INSTALL, tree, callable_tables, bare, resolve, _encode, _decode)


def _tree(names: Mapping[str, str]) -> dict[str, list[str]]:
    """Each table's path (the root is "") with its members."""
    tree: dict[str, list[str]] = {"": []}
    for name in names:
        while name:
            parent, _, leaf = name.rpartition(".")
            members = tree.setdefault(parent, [])
            if leaf not in members:
                members.append(leaf)
            name = parent
    return tree


def _resolved(name: str, target: str) -> Any:
    """The function or value behind a name. One that is not there yet becomes a function that says so."""
    import importlib

    module, _, attribute = target.partition(":")
    try:
        value = getattr(importlib.import_module(module if "." in module else f"cru.namespace.{module}"), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        value = _missing(name, error)
    if callable(value) and not isinstance(value, Object):
        return HostFunction(value, name in DIALOGS)
    return value


def _missing(name: str, cause: Exception) -> Callable[..., Any]:
    def missing(*_: Any) -> Any:
        raise NotAvailable(f"cru.{name} is not available yet") from cause

    return missing


def _encode(value: Any = None) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError) as error:
        raise BadArgument(f"no JSON: {error}") from error


def _decode(text: str) -> WithNull:
    try:
        return WithNull(msgspec.json.decode(text.encode("utf-8", "surrogateescape")))
    except ValueError as error:
        raise BadArgument(f"no JSON: {error}") from error
