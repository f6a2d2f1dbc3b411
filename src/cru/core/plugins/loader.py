"""Loads and unloads single plugins, each in its language and within its time.

Each plugin owns what it registers: the ledger (`Host.own`) says how to take it back. One that fails to load leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cru.core.api.callbacks import cancel_background, report_failure
from cru.core.api.host import HOST, Host, Plugin, PluginSession, call
from cru.core.base.values.errors import CruError
from cru.core.events.calling import describe_error
from cru.core.plugins import OWN_KEYS
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.discovery.places import PluginFolders
from cru.core.plugins.effects import has_effect
from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.loaded_plugin import LoadedPlugin, required_plugins
from cru.core.plugins.lua.fennel import FennelPlace
from cru.core.plugins.lua.plugins import LuaPlugins
from cru.core.plugins.plugin_files import FileCopy, copy_of, describe_encoding, stamp_of, write_copy
from cru.core.plugins.stand_ins import guards_of

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

SETUP_SECONDS = 10.0
"""For its code and its `setup`, unless `[plugins] setup_timeout` says otherwise."""
TEARDOWN_SECONDS = 5.0
"""For each of its functions for the end, and for each entry of the ledger."""
EXPECTED = (CruError, OSError, SyntaxError, UnicodeDecodeError)
ROUNDS = 3
"""How often the ledger is worked off: code that is being unloaded may register once more."""


class Language(Protocol):
    """What runs the plugins of one language; made when the first one is there. `load` gets the content of files that were read."""

    def plugin(self, plugin: DiscoveredPlugin, config: Mapping[str, object]) -> Plugin: ...

    async def load(self, plugin: DiscoveredPlugin, host: Host, content: FileCopy, /) -> None: ...


def _explain(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        return describe_encoding(error)
    return str(error) or describe_error(error)


class PluginLoader:
    """The languages of one session, and the loading of a plugin in its own.

    session: what the plugins share
    config: `[plugins]` as a whole
    places: where plugins are looked for, as of now
    languages: by the kind of plugin, those that were needed until now
    """

    def __init__(self, session: PluginSession, config: Mapping[str, Any], places: Callable[[], PluginFolders]) -> None:
        self.session = session
        self.languages: dict[str, Language] = {}
        self._config = config
        self._places = places
        self._folders: list[TemporaryDirectory[str]] = []

    async def load(
        self, plugin: DiscoveredPlugin, active: Callable[[], Collection[str]], watched: bool = False
    ) -> LoadedPlugin:
        """Run it; `active` tells which plugins are loaded. Whatever goes wrong, nothing of it stays then."""
        loaded = LoadedPlugin(plugin, "active", stamp=stamp_of(plugin) if watched else ())
        if not plugin.trusted or not plugin.enabled:
            loaded.state = "disabled" if plugin.trusted else "untrusted"
            return loaded
        host: Host | None = None
        try:
            _check_loadable(plugin, active)
            loaded.copy = copy_of(plugin)
            language = self._language(plugin.kind)
            host = Host(self.session, language.plugin(plugin, self._plugin_config(plugin.name)))
            token = HOST.set(host)
            try:
                await self._load_in_time(language, plugin, host, loaded.copy)
            finally:
                HOST.reset(token)
            loaded.plugin = host.plugin
            loaded.is_idle = not has_effect(host)
        except BaseException as error:
            if host is not None:
                await self._take_back(host)
            if not isinstance(error, EXPECTED):
                raise
            loaded.state, loaded.error = "error", _explain(error)
            loaded.trace = _traceback(error, plugin.folder)
        return loaded

    async def load_copy(self, old: LoadedPlugin, active: Callable[[], Collection[str]]) -> LoadedPlugin | None:
        """Load a version that was active before, from the copy of its files; None if that fails, too."""
        from tempfile import TemporaryDirectory

        if not old.copy:
            return None
        self._folders.append(folder := TemporaryDirectory(prefix="cru-kept-"))
        try:
            restored = await self.load(write_copy(old.discovered, old.copy, Path(folder.name)), active)
        except OSError:  # no room for the copy: it is reported as not loaded
            return None
        return restored if restored.plugin is not None else None

    async def unload(self, loaded: LoadedPlugin) -> None:
        """Take back all that it registered. It is inert afterwards, whatever fails."""
        plugin, loaded.plugin = loaded.plugin, None
        registry = self.session.parts.bus.registry
        if plugin is None:
            registry.drop_owner(loaded.name)  # what stands in for it
            return
        loaded.guards = guards_of(registry, loaded.name, loaded.discovered.kind == "executable")
        loaded.state, loaded.error = "error", "it was interrupted while it was loaded anew"
        try:
            await self.tear_down(plugin)
        finally:
            await self._take_back(Host(self.session, plugin))

    async def tear_down(self, plugin: Plugin) -> None:
        """Call its own functions for the end (`on_unload`, `teardown`), in its name. One that fails is reported."""
        host = Host(self.session, plugin)
        token = HOST.set(host)
        try:
            for function in reversed(plugin.leaving):
                await _call_in_time(host, "on_unload", plugin.invoke, function)
        finally:
            HOST.reset(token)

    async def close(self) -> None:
        """End what plugins left running, and remove the copies."""
        await cancel_background(self.session)
        for folder in self._folders:
            folder.cleanup()

    async def _take_back(self, host: Host) -> None:
        """Work off the ledger, the last entry first; then look whether anything is left."""
        session, name = self.session, host.plugin.name
        for _ in range(ROUNDS):
            for undo in reversed(session.owned.pop(name, {}).values()):
                await _call_in_time(host, "unloading", undo)
        session.parts.bus.registry.drop_owner(name)
        session.parts.tools.drop_source(name)
        session.parts.services.commands.drop(name)
        await cancel_background(session, name)

    async def _load_in_time(self, language: Language, plugin: DiscoveredPlugin, host: Host, content: FileCopy) -> None:
        """Raises what the language raises, and PluginFailed if it takes too long; programs have limits of their own."""
        seconds = None if plugin.kind == "executable" else float(self._config.get("setup_timeout") or SETUP_SECONDS)
        try:
            async with asyncio.timeout(seconds) as clock:
                await language.load(plugin, host, content)
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise PluginFailed(
                f"{plugin.files[0] if plugin.files else plugin.name}: it was not ready after {seconds:g} s",
                "what takes longer may go on beside everything else (cru.spawn), or give it more time: [plugins] setup_timeout",
            ) from error

    def _plugin_config(self, name: str) -> dict[str, object]:
        section = self._config.get(name)
        return {k: v for k, v in section.items() if k not in OWN_KEYS} if isinstance(section, Mapping) else {}

    def _language(self, kind: str) -> Language:
        if kind not in self.languages:
            self.languages[kind] = self._start_language(kind)
        return self.languages[kind]

    def _start_language(self, kind: str) -> Language:
        if kind == "lua":
            places = self._places()
            return LuaPlugins(places.search(), self.session.parts, FennelPlace(places.fennel, places.home))
        if kind == "executable":
            from cru.core.plugins.executables.plugins import Executables

            return Executables(self.session.parts, self.session.home, lambda: self._places().find()[0])
        from cru.core.plugins.python.plugins import PythonPlugins

        return PythonPlugins()


def _check_loadable(plugin: DiscoveredPlugin, active: Callable[[], Collection[str]]) -> None:
    """Raises PluginFailed for one that cannot be loaded, or whose dependency is not there."""
    if plugin.problem:
        raise PluginFailed(plugin.problem)
    required = required_plugins(plugin)
    present = active() if required else ()
    for name in required:
        if name not in present:
            raise PluginFailed(f"it depends on the plugin {name}, which is not active", "`cru plugin list` says why")


async def _call_in_time(host: Host, context: str, function: Callable[..., object], *args: object) -> None:
    """Call what takes something back. One that fails, or does not end, is reported."""
    try:
        async with asyncio.timeout(TEARDOWN_SECONDS) as clock:
            await call(function, *args)
    except TimeoutError as error:
        late = TimeoutError(f"it took longer than {TEARDOWN_SECONDS:g} s and was ended")
        report_failure(host, late if clock.expired() else error, context)
    except Exception as error:  # noqa: BLE001  the boundary around a plugin that goes: reported, the rest goes on
        report_failure(host, error, context)


def _traceback(error: BaseException, folder: Path) -> str:
    """What the language says about the way to the error, from the plugin's first line on."""
    cause = error.__cause__
    own: str = getattr(error, "traceback", "")
    if own or cause is None:
        return own
    import traceback

    frame = cause.__traceback__
    while frame is not None and not frame.tb_frame.f_code.co_filename.startswith(str(folder)):
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(cause), cause, frame)).rstrip()
