"""What runs the functions of entries in Lua and Python: their code is loaded into the machines of the session's plugins."""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from cru.core.api.host import HOST, Host, Plugin, PluginSession
from cru.core.base.config.closest import did_you_mean
from cru.core.base.files.regular import read_regular
from cru.core.hooks import MAX_CONFIG_BYTES
from cru.core.hooks.errors import HookError
from cru.core.hooks.model.entry import HookEntry, is_lua_file
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.lua.fennel import FennelPlace
from cru.core.plugins.lua.plugins import LuaPlugins
from cru.core.plugins.lua.runtime import LuaFunction
from cru.core.plugins.python.plugins import MODULE_NAME, PythonPlugins
from cru.core.turn.parts import Parts

if TYPE_CHECKING:
    from cru.core.plugins.manager import Extensions


class BadFunction(HookError):
    """The code of an entry cannot be used."""


def lua_source(entry: HookEntry) -> tuple[str, str]:
    """(source of a chunk that returns the function, its name in messages). Raises OSError and UnicodeError if it is a file that cannot
    be read."""
    if is_lua_file(entry.command):
        return read_regular(Path(entry.command), MAX_CONFIG_BYTES).decode(), f"@{entry.command}"
    return f"return function(ctx, event) {entry.command}\nend", f"={entry.where}"


class HookLanguages(Struct):
    """What runs the functions of a session's entries: the machines of its plugins, if it has any, else their own."""

    parts: Parts
    home: Path
    plugins: Extensions | None = None
    _session: PluginSession | None = None
    _lua: LuaPlugins | None = None
    _python: PythonPlugins | None = None
    _modules: dict[tuple[str, int, int], str] = field(default_factory=dict)

    @property
    def session(self) -> PluginSession:
        if self.plugins is not None and self.plugins.session is not None:
            return self.plugins.session
        if self._session is None:
            self._session = PluginSession(self.parts, self.home)
        return self._session

    async def load_function(self, entry: HookEntry) -> tuple[Host, Callable[..., Any]]:
        """The function of an entry, and the plugin in whose name it runs. Raises CruError with the place, OSError if there is no file."""
        plugin, function = await (self._load_lua(entry) if entry.kind == "lua" else self._load_python(entry))
        return Host(self.session, plugin), function

    async def _load_lua(self, entry: HookEntry) -> tuple[Plugin, Callable[..., Any]]:
        if self._lua is None:
            known = self.plugins.languages.get("lua") if self.plugins is not None else None
            own = FennelPlace("", self.home)
            self._lua = known if isinstance(known, LuaPlugins) else LuaPlugins([], self.parts, own)
        vm, path = self._lua.vm, entry.command
        is_file = is_lua_file(path)
        code, chunk_name = lua_source(entry)
        plugin = self._lua.plugin(_plugin_of(entry.owner, "lua", Path(path) if is_file else entry.source.path), {})
        token = HOST.set(Host(self.session, plugin))
        try:
            chunk = vm.load(code.encode(), chunk_name, vm.environment())
            values = await vm.run(chunk)
        finally:
            HOST.reset(token)
        if not values or not isinstance(values[0], LuaFunction):
            raise BadFunction(f"{path} returns no function", "return function(ctx, event) … end")
        return plugin, values[0]

    async def _load_python(self, entry: HookEntry) -> tuple[Plugin, Callable[..., Any]]:
        self._python = self._python or PythonPlugins()
        file, _, name = entry.command.rpartition(":")
        plugin = self._python.plugin(_plugin_of(entry.owner, "python", Path(file)), {})
        module = sys.modules[await self._load_module(self._python, file)]
        function = getattr(module, name, None)
        if not callable(function):
            known = [known for known, value in vars(module).items() if callable(value)]
            raise BadFunction(f"{file} has no function {name}", did_you_mean(name, known))
        return plugin, function

    async def _load_module(self, python: PythonPlugins, file: str) -> str:
        """The name of the file's module; several entries of one file share it, a changed file is another one."""
        status = Path(file).stat()
        key = (file, status.st_mtime_ns, status.st_size)
        if key not in self._modules:
            plugin = _plugin_of(f"hook_{sha256(repr(key).encode()).hexdigest()[:12]}", "python", Path(file))
            host = Host(self.session, python.plugin(plugin, {}))
            token = HOST.set(host)
            try:
                await python.load(plugin, host, {})
            finally:
                HOST.reset(token)
            self._modules[key] = MODULE_NAME.format(name=plugin.name)
        return self._modules[key]


def _plugin_of(name: str, kind: Literal["lua", "python"], file: Path) -> DiscoveredPlugin:
    return DiscoveredPlugin(name, kind, (file,), file.parent)
