"""Plugins in Python: a file or a package, executed afresh for each session under a private name."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isawaitable
from typing import Any

from cru.events.errors import EventError
from cru.extensions.discover import Found
from cru.extensions.errors import PluginFailed
from cru.namespace.host import Host, NamespaceError, Plugin, call

PRIVATE = "cru_plugin_{name}"


class PluginRaised(NamespaceError):
    """A function of a plugin raised; the message names the plugin's own line."""


class PythonPlugins:
    """Runs Python plugins. `TOOLS` of the module are its tools, as `tools` of the table that a Lua plugin returns: name → {desc, params =
    [{name, type, desc?, optional?}], fn}. A top-level `setup(cru)` is called once a session with the whole namespace."""

    def plugin(self, found: Found, config: Mapping[str, Any]) -> Plugin:
        return Plugin(found.name, found.folder, "python", config, partial(_invoke, str(found.folder)), _where)

    async def load(self, found: Found, host: Host) -> None:
        """Raises PluginFailed, whatever the plugin's code raised."""
        from cru.namespace.python import NAMESPACE

        file = found.files[0]
        name = PRIVATE.format(name=found.name)
        is_package = file.name == "__init__.py"
        spec = spec_from_file_location(
            name, file, submodule_search_locations=[str(file.parent)] if is_package else None
        )
        assert spec is not None and spec.loader is not None
        for old in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
            del sys.modules[old]
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
            for tool, about in getattr(module, "TOOLS", {}).items():
                _add_tool(host, str(tool), about)
            if callable(getattr(module, "setup", None)):
                await call(module.setup, NAMESPACE)
        except PluginFailed:
            raise
        except EventError as error:
            raise PluginFailed(error.message, error.hint) from error
        except (Exception, SystemExit) as error:  # the boundary around a plugin's code: reported with its place
            raise PluginFailed(
                f"{_place(error, str(found.folder), str(file))}: {type(error).__name__}: {error}"
            ) from error


def _add_tool(host: Host, name: str, about: Mapping[str, Any]) -> None:
    from cru.extensions.lua.annotations import schema
    from cru.extensions.tools import PluginTool

    if not callable(about.get("fn")):
        raise PluginFailed(f"the tool {name} has no function", '{"desc": …, "params": […], "fn": function}')
    params = [dict(one) for one in about.get("params") or ()]
    properties = {
        str(p["name"]): {**schema(str(p.get("type", "any"))), "description": str(p.get("desc", ""))} for p in params
    }
    required = [str(p["name"]) for p in params if not p.get("optional")]
    shape = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    host.session.parts.tools.add(PluginTool(host, name, str(about.get("desc", "")), shape, about["fn"]))


def _invoke(folder: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of a plugin. What it raises is told with the plugin's own line."""
    try:
        result = function(*args)
    except (Exception, SystemExit) as error:  # the boundary around a plugin's code: raised again with its place
        raise _failure(error, folder) from error
    return _waited(folder, result) if isawaitable(result) else result


async def _waited(folder: str, waiting: Awaitable[Any]) -> Any:
    try:
        return await waiting
    except (Exception, SystemExit) as error:  # as above
        raise _failure(error, folder) from error


def _failure(error: BaseException, folder: str) -> PluginRaised:
    text = error.message if isinstance(error, NamespaceError) else f"{type(error).__name__}: {error}"
    place = _place(error, folder, "")
    return PluginRaised(f"{place}: {text}" if place else text, getattr(error, "hint", ""))


def _place(error: BaseException, folder: str, otherwise: str) -> str:
    """The last line of the plugin itself on the way to the error."""
    place, trace = otherwise, error.__traceback__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(folder):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _where(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
