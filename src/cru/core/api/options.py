"""`cru.options`: the settings of a plugin as a tree that a face can show and change. Values are kept over sessions, and given to the
plugin's own `set` again each time the tree is registered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from cru.core.api import json_file, plain_data
from cru.core.api.arguments import lua_type, number, table, text, tostring
from cru.core.api.callbacks import Callback
from cru.core.api.host import HOST, BadArgument, Host, PluginSession, host
from cru.core.api.paths import component
from cru.core.base.config.closest import did_you_mean

TYPES = ("group", "input", "select", "toggle", "range", "execute")
INHERITED = ("get", "set", "func", "values", "disabled", "hidden")
SHOWN = ("name", "desc", "values", "disabled", "hidden", "min", "max", "step", "order")
ORDER = 100


class Option(Struct, frozen=True):
    """One option: its path from the root, its type, and its fields with what it inherits."""

    path: tuple[str, ...]
    type: str
    fields: dict[str, Any]

    @property
    def info(self) -> dict[str, object]:
        return {"path": list(self.path), "name": self.path[-1] if self.path else "", "type": self.type}


class OptionTree(Struct, frozen=True):
    """The options of one plugin."""

    host: Host
    options: tuple[Option, ...]


async def options(tree: dict[str, object]) -> None:
    """options{type="group", args={KEY = {type="input"|"select"|"toggle"|"range"|"execute"|"group", name, desc, get=fn(info),
    set=fn(info, value), func=fn(info), values, min, max, disabled, hidden, order=100}}}. get, set, func, values, disabled and hidden
    are inherited from the group; any field may be fn(info), info is {path, name, type}. Raises BadArgument.

    Example: cru.options({type="group", args={loud={type="toggle", set=function(info, value) end}}}) --> nil
    """
    here = host()
    entries = tuple(_read_options((), table("cru.options", "tree", tree), {}))
    trees = here.session.family_state("options", dict[str, OptionTree])
    trees[here.plugin.name] = OptionTree(here, entries)
    here.own(lambda: trees.pop(here.plugin.name, None), "options")
    saved = json_file.load(_path(here))
    for option in entries:
        value = saved.get(".".join(option.path))
        if value is not None and option.fields.get("set") is not None:
            await Callback(option.fields["set"], here).guarded(f"option {'.'.join(option.path)}", option.info, value)


async def describe_options(session: PluginSession, plugin: str) -> list[dict[str, object]]:
    """For faces: the options of a plugin in order, with {path, type, value} and the fields of SHOWN, functions called."""
    tree = _find_tree(session, plugin)
    rows = []
    for option in tree.options:
        fields = {name: await _current_value(tree, option, option.fields.get(name)) for name in SHOWN}
        present = {name: value for name, value in fields.items() if value is not None}
        value = (
            None
            if option.type in ("group", "execute")
            else await _current_value(tree, option, option.fields.get("get"))
        )
        rows.append({"path": list(option.path), "type": option.type, "value": value, "order": ORDER, **present})
    return sorted(rows, key=lambda row: (len(row["path"]) > 1, row["path"][:-1], row["order"]))


async def change_option(session: PluginSession, plugin: str, path: str, value: object = None) -> None:
    """For faces: set an option by its dotted path, or run an `execute`. Raises BadArgument, and what the plugin raises."""
    tree = _find_tree(session, plugin)
    option = next((entry for entry in tree.options if ".".join(entry.path) == path), None)
    if option is None:
        raise BadArgument(
            f"{plugin} has no option `{path}`", did_you_mean(path, [".".join(o.path) for o in tree.options])
        )
    if await _current_value(tree, option, option.fields.get("disabled")):
        raise BadArgument(f"the option `{path}` of {plugin} is disabled")
    name = "func" if option.type == "execute" else "set"
    work = option.fields.get(name)
    if not callable(work):
        raise BadArgument(f"the option `{path}` of {plugin} cannot be changed", f"it has no `{name}` function")
    if option.type == "execute":
        await Callback(work, tree.host).call(option.info)
        return
    await _check_value(tree, option, path, value)
    await Callback(work, tree.host).call(option.info, value)
    token = HOST.set(tree.host)
    try:
        json_file.update(_path(tree.host), lambda all: all.__setitem__(path, value))
    finally:
        HOST.reset(token)


def _read_options(path: tuple[str, ...], spec: dict[str, object], above: dict[str, object]) -> Iterator[Option]:
    where = f"cru.options: {'.'.join(path) or 'the tree'}"
    kind = spec.get("type", "group" if "args" in spec else None)
    if kind not in TYPES:
        hint = did_you_mean(tostring(kind), TYPES) or f"types are {', '.join(TYPES)}"
        raise BadArgument(f"{where}: unknown type `{tostring(kind)}`", hint)
    inherited = {name: spec[name] for name in INHERITED if spec.get(name) is not None}
    fields = {**above, **spec, **inherited}
    if path:
        yield Option(path, kind, fields)
    if kind != "group":
        return
    inheritable = {name: fields[name] for name in INHERITED if fields.get(name) is not None}
    for key, inner in table(where, "args", spec.get("args")).items():
        yield from _read_options(
            (*path, text(where, "every key", key)), table(f"{where}.{key}", "the option", inner), inheritable
        )


async def _current_value(tree: OptionTree, option: Option, field: Any) -> Any:
    return await Callback(field, tree.host).call(option.info) if callable(field) else field


async def _check_value(tree: OptionTree, option: Option, path: str, value: Any) -> None:
    """That a value is of the option's type. Raises BadArgument."""
    where = f"option {path}"
    plain_data.check(where, value)
    if option.type == "toggle" and not isinstance(value, bool):
        raise BadArgument(f"{where}: value must be a boolean, got {lua_type(value)}")
    if option.type == "input":
        text(where, "value", value)
    if option.type == "range":
        least, most = option.fields.get("min"), option.fields.get("max")
        number(where, "value", value, least if isinstance(least, (int, float)) else None)
        if isinstance(most, (int, float)) and value > most:
            raise BadArgument(f"{where}: value must be at most {tostring(most)}, got {tostring(value)}")
    if option.type == "select":
        values = await _current_value(tree, option, option.fields.get("values"))
        known = list(values or ())
        if value not in known:
            raise BadArgument(
                f"{where}: value must be one of [{', '.join(map(tostring, known))}], got {tostring(value)}"
            )


def _find_tree(session: PluginSession, plugin: str) -> OptionTree:
    tree = session.family_state("options", dict[str, OptionTree]).get(plugin)
    if tree is None:
        raise BadArgument(f"the plugin {plugin} has no options")
    return tree


def _path(owner: Host) -> Path:
    return owner.session.home / "plugin-state" / component("cru.options", owner.plugin.name) / "options.json"
