"""What a plugin says about its own state: its `health.lua` (or `.fnl`), or the function `health` it returned (docs/plugin-tests.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

import cru
from cru.core.api import health
from cru.core.api.host import Plugin, PluginSession, call
from cru.core.base.values.errors import CruError
from cru.core.plugins.loaded_plugin import LoadedPlugin
from cru.core.plugins.lua.fennel import SUFFIX, FennelCompiler
from cru.core.plugins.lua.plugins import LuaPlugins
from cru.core.plugins.python.plugins import MODULE_NAME
from cru.core.plugins.testing.machine import run_as, search_path

# What a plugin returned is kept under its name.
RETURNED = """
local spec = package.loaded[...]
local health = type(spec) == "table" and rawget(spec, "health")
if type(health) == "table" then health = rawget(health, "check") end
return type(health) == "function" and health or nil
"""


class HealthCheck(Struct, frozen=True):
    """One line of a report.

    level: ok, info, warn or error
    advice: what to do
    """

    level: str
    text: str
    advice: tuple[str, ...] = ()


async def check(loaded: LoadedPlugin, session: PluginSession) -> list[HealthCheck] | None:
    """Run a plugin's checks; None if it has none. Whatever is raised in them is an error of the report."""
    if loaded.state == "error":
        text, *advice = loaded.error.splitlines()
        return [HealthCheck("error", text, tuple(line.strip() for line in advice))]
    if loaded.plugin is None:
        return None
    with run_as(session, loaded.plugin):
        try:
            function = await _find_check(loaded, loaded.plugin)
            if function is None:
                return None
            health.start(loaded.discovered.name)
            await call(function)
        except Exception as error:  # noqa: BLE001  the boundary around code of a plugin: reported
            health.error(_error_text(error))
        return [_to_check(entry) for entry in health.get_results()["checks"]]


async def _find_check(loaded: LoadedPlugin, plugin: Plugin) -> Callable[..., object] | None:
    """The function that checks, whatever the plugin's language."""
    language = getattr(plugin.invoke, "__self__", None)
    if not isinstance(language, LuaPlugins):
        return _python_check(loaded.discovered.name)
    vm = language.vm  # the machine that the plugin runs in
    folder = loaded.discovered.folder
    file = next(
        (path for path in (folder / "health.lua", folder / "health.fnl") if path.is_file()), folder / "health.lua"
    )
    single = (
        loaded.discovered.files[0].parent == loaded.discovered.folder
        and loaded.discovered.files[0].stem == loaded.discovered.name
    )
    if single or not file.is_file() or file in loaded.discovered.files:
        return _callable((await vm.run(vm.load(RETURNED, "=[cru health]"), loaded.discovered.name) or (None,))[0])
    vm.set_path(search_path(loaded.discovered.folder))
    code = file.read_bytes()
    if file.suffix == SUFFIX:
        code = FennelCompiler(language.fennel).compile(code, file).encode()
    returned = (await vm.run(vm.load(code, f"@{file}")) or (None,))[0]
    function = _callable(returned.get("check") if isinstance(returned, Mapping) else returned)
    if function is None:
        raise CruError(f"{file} returns no function `check`", "return { check = function() ... end }")
    return function


def _python_check(name: str) -> Callable[..., object] | None:
    """`health(cru)` of a Python plugin."""
    function = getattr(sys.modules.get(MODULE_NAME.format(name=name)), "health", None)
    return (lambda: function(cru)) if callable(function) else None


def _callable(value: object) -> Callable[..., object] | None:
    return value if callable(value) else None


def _to_check(entry: Mapping[str, Any]) -> HealthCheck:
    advice = entry["advice"]
    texts = advice if isinstance(advice, (list, tuple)) else [] if advice is None else [advice]
    return HealthCheck(entry["level"], entry["msg"], tuple(t if isinstance(t, str) else _json(t) for t in texts))


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=repr).decode()


def _error_text(error: Exception) -> str:
    if isinstance(error, CruError):
        return f"{error.message} ({error.hint})" if error.hint else error.message
    return f"{type(error).__name__}: {error}"
