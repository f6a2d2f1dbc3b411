"""The table `cru` of Lua, made out of the table of names: each name is imported when it is first used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from cru.core.api.host import BadArgument, Object
from cru.core.api.names import ABSENT, CONSTANTS, INDEXED, NAMES, AbsentAnswer, make_absent
from cru.core.command_table import load_target
from cru.core.plugins.lua.convert import HostFunction, WithNull
from cru.core.plugins.lua.runtime import INSTALL, LuaVM

BARE = ("http", "fs", "shell", "oq", "paths", "graph", "mcp", "inspect", "ask", "popup", "ui", "statusline")
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

STORES = {"state": 'cru.state.set("key", value)', "storage": 'cru.storage.set("entity", "key", text)'}
"""Families that keep values, and how: a value of one's own in their tables would be gone with the process."""


def install(
    vm: LuaVM,
    names: Mapping[str, str] = NAMES,
    *,
    constants: Mapping[str, str] = CONSTANTS,
    indexed: Mapping[str, tuple[str, str]] = INDEXED,
    absent: Mapping[str, tuple[AbsentAnswer, str]] = ABSENT,
) -> None:
    """Make `cru` (and `crucible`, the same table), the bare globals and the modules `cjson` and `json`. `names` maps dotted names to
    "package.module:attribute"; a name that is also the beginning of others is a table that can be called. The other tables are those of
    `cru.core.api.names`; null itself is put in by Lua."""
    targets = {
        **dict.fromkeys(absent, ""),
        **{n: t for n, t in constants.items() if not n.endswith(".null")},
        **names,
    }

    def resolve(name: str) -> object:
        """The function or value behind a name."""
        target = targets[name]
        value = load_target(target) if target else make_absent(name, *absent[name])
        return HostFunction(value, name in DIALOGS) if callable(value) and not isinstance(value, Object) else value

    tree = _name_tree(targets)
    for path in indexed:
        tree.setdefault(path, [])
        tree[""] = [*tree[""], *([] if path in tree[""] else [path])]
    callable_tables = {path: True for path in tree if path in names}
    keyed = {path: _key_functions(path, read, assign) for path, (read, assign) in indexed.items()}
    keyed.update({path: _read_only(path, instead) for path, instead in STORES.items() if path in tree})
    bare = [name for name in BARE if name in tree[""]]
    vm.call_builtin(INSTALL, tree, callable_tables, keyed, bare, resolve, _encode, _decode)


def _name_tree(names: Iterable[str]) -> dict[str, list[str]]:
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


def _key_functions(path: str, read: str, assign: str) -> dict[str, object]:
    """How the other keys of a table are read and assigned."""

    def get(key: object) -> object:
        return load_target(read)(key)

    def put(key: object, value: object = None) -> None:
        if not assign:
            raise BadArgument(f"cru.{path}.{key} cannot be assigned", f"cru.{path}.set{{…}}")
        load_target(assign)(key, value)

    return {"get": get, "put": put}


def _read_only(path: str, instead: str) -> dict[str, object]:
    """A family that looks as if it kept what is put into it. A function is another thing: somebody makes the family anew."""

    def put(key: object, value: object = None) -> bool:
        if callable(value):
            return True
        raise BadArgument(f"cru.{path}.{key} cannot be assigned", instead)

    return {"get": lambda _key: None, "put": put}


def _encode(value: object = None) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError) as error:
        raise BadArgument(f"no JSON: {error}") from error


def _decode(text: str) -> WithNull:
    try:
        return WithNull(msgspec.json.decode(text.encode("utf-8", "surrogateescape")))
    except ValueError as error:
        raise BadArgument(f"no JSON: {error}") from error
