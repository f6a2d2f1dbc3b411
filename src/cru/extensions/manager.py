"""All plugins of a session: found, loaded when the session opens, loaded anew when asked for or changed, unloaded.

Each plugin owns what it registers: the ledger (`Host.own`) says how to take it back. One that fails to load leaves nothing behind, is
reported, and the rest goes on. One that was active and fails to load anew holds on as it was: a rule does not end because its file is
half written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from cru.engine.parts import Parts
from cru.events.stream import Notice
from cru.extensions.discovery.files import DiscoveredPlugin
from cru.extensions.discovery.places import PluginFolders
from cru.extensions.errors import PluginFailed, PluginInUse, UnknownPlugin
from cru.extensions.file_stamps import Stamp, stamp_of
from cru.extensions.lifecycle import call_in_time, load_in_time
from cru.extensions.project_copy import FileCopy, copy_of, has_empty_files, write_copy
from cru.namespace.callbacks import cancel_background
from cru.namespace.host import HOST, Host, Plugin, PluginSession
from cru.values.errors import CruError

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

EXPECTED = (CruError, OSError, SyntaxError, UnicodeDecodeError)
ROUNDS = 3
"""How often the ledger is worked off: code that is being unloaded may register once more."""


class Language(Protocol):
    """What runs the plugins of one language; made when the first one is there."""

    def plugin(self, found: DiscoveredPlugin, config: Mapping[str, Any]) -> Plugin: ...

    async def load(self, found: DiscoveredPlugin, host: Host) -> None: ...


class LoadedPlugin(Struct):
    """One plugin and how it is: active, disabled, untrusted or error (with the message and, if it is known, the traceback). `stamp` is
    what it was found as, `copy` its files as they were loaded."""

    found: DiscoveredPlugin
    state: str
    error: str = ""
    trace: str = ""
    plugin: Plugin | None = None
    stamp: Stamp = ()
    copy: FileCopy = {}

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def is_off(self) -> bool:
        """It came with cru, and nobody has turned it on."""
        return self.found.layer == "bundled" and self.state == "disabled"


class Extensions(Struct):
    """The plugins of one session: those that `places` finds."""

    places: PluginFolders
    config: Mapping[str, Any]
    home: Path
    plugins: list[LoadedPlugin] = field(default_factory=list)
    session: PluginSession | None = None
    languages: dict[str, Language] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    kept: list[TemporaryDirectory[str]] = field(default_factory=list)

    def any(self) -> bool:
        """Whether there may be a plugin at all: nothing of this room is loaded otherwise."""
        return any(found.loadable for found in self.places.find()[0])

    async def open(self, parts: Parts) -> None:
        """Load every plugin that is wanted."""
        self.session = PluginSession(parts, self.home)
        if self.watching:
            parts.lifecycle.idle.append(self.refresh)
        for found in self._find():
            self._keep(await self._load(found), report=True)

    async def close(self) -> None:
        """Let plugins say good-bye, the last one first, and end what they left running."""
        if self.session is None:
            return
        for one in reversed(self.plugins):
            if one.plugin is not None:
                await self._leave(Host(self.session, one.plugin))
        await cancel_background(self.session)
        for folder in self.kept:
            folder.cleanup()

    # at run time ------------------------------------------------------------------------------------------------------------------

    async def reload(self, name: str) -> None:
        """Unload, and load from the files as they are now. Raises NoPlugin, StaysLoaded, and PluginFailed: if it was active it holds on as
        it was then."""
        one = self.of(name)
        self._may_go(one)
        found = next((found for found in self._find() if found.name == name), None)
        if found is None:
            await self._unload(one)
            self.plugins.remove(one)
            raise UnknownPlugin(f"the plugin {name} is gone: it is unloaded", f"it was {one.found.files[0]}")
        failed = await self._renew(one, found)
        if failed is not None:
            raise PluginFailed(*failed)

    async def reload_all(self) -> list[str]:
        """Unload all, the last one first, and load those that are there now; the names of the active ones. What could not be loaded anew,
        and what is gone, is reported."""
        before = {one.name: (one, one.state) for one in self.plugins}
        for one in reversed(self.plugins):
            await self._unload(one)
        self.plugins.clear()
        for found in self._find():
            one, was = before.pop(found.name, (LoadedPlugin(found, ""), ""))
            failed = await self._loaded_anew(one, was, found)
            if failed is not None:
                self._warn(failed[0], found.name)
        for name in before:
            self._warn(f"the plugin {name} is gone and is unloaded", name)
        return [one.name for one in self.plugins if one.state == "active"]

    async def disable(self, name: str) -> None:
        """For this session. Raises NoPlugin and StaysLoaded."""
        one = self.of(name)
        self._may_go(one)
        self._switch(name, on=False)
        await self._unload(one)
        self._keep(LoadedPlugin(replace(one.found, enabled=False), "disabled", stamp=one.stamp))

    async def enable(self, name: str) -> None:
        """For this session. Raises NoPlugin and PluginFailed."""
        if self.of(name).state == "active":
            return
        self._switch(name, on=True)
        await self.reload(name)

    async def refresh(self) -> None:
        """Load, reload and unload what came, changed and went since the last time; one notice each."""
        now = {found.name: found for found in self._find()}
        for one in list(self.plugins):
            found = now.pop(one.name, None)
            stamp = stamp_of(found) if found is not None else ()
            if stamp != one.stamp:
                one.stamp = stamp
                await self._changed(one, found)
        for found in now.values():
            self._keep(await self._load(found), report=True)
            self._tell(found.name, "is new and is loaded")

    async def _changed(self, one: LoadedPlugin, found: DiscoveredPlugin | None) -> None:
        try:
            self._may_go(one)
        except PluginInUse as error:
            self._warn(f"the files of {one.name} have changed, but {error.message}", one.name)
            return
        was = one.state
        if found is None:
            await self._unload(one)
            self.plugins.remove(one)
            self._warn(f"the plugin {one.name} is gone and is unloaded", one.name)
            return
        failed = await self._renew(one, found)
        if failed is not None:
            self._warn(failed[0], one.name)
        else:
            self._tell(one.name, "has changed and is loaded anew" if was == "active" else "has changed and is loaded")

    async def _renew(self, one: LoadedPlugin, found: DiscoveredPlugin) -> tuple[str, str] | None:
        """Unload it and load what is there now; the message and the trace if that failed."""
        was = one.state
        await self._unload(one)
        return await self._loaded_anew(one, was, found)

    async def _loaded_anew(self, one: LoadedPlugin, was: str, found: DiscoveredPlugin) -> tuple[str, str] | None:
        """Load it; if that fails, what was active before holds on. The message and the trace then."""
        empty = was == "active" and any(one.copy.values()) and has_empty_files(found)
        made = await self._load(replace(found, problem=f"{found.files[0]}: it is empty") if empty else found)
        self._keep(made)
        if made.state == "untrusted":
            made.error = "it belongs to a project that is not trusted (`cru trust` shows its files)"
        if not made.error:
            return None
        why, trace = made.error, made.trace
        if was == "active" and await self._hold(one, made):
            return f"the plugin {one.name} is not loaded anew: {why}; the version before stays active", trace
        if made.state == "untrusted":
            made.error = ""
        return f"the plugin {one.name} is not loaded: {why}", trace

    async def _hold(self, one: LoadedPlugin, made: LoadedPlugin) -> bool:
        """Load the version before again, from the copy of its files."""
        from tempfile import TemporaryDirectory

        if not one.copy:
            return False
        self.kept.append(folder := TemporaryDirectory(prefix="cru-kept-"))
        try:
            held = await self._load(write_copy(one.found, one.copy, Path(folder.name)))
        except OSError:  # no room for the copy: it is reported as not loaded
            return False
        if held.plugin is None:
            return False
        held.plugin.problems.append(f"the version before is active: {made.error}")
        held.found, held.copy, held.stamp = one.found, one.copy, made.stamp
        self._keep(held)
        return True

    def of(self, name: str) -> LoadedPlugin:
        """The plugin of that name. Raises NoPlugin with the closest one."""
        for one in self.plugins:
            if one.name == name:
                return one
        from cru.config.closest import did_you_mean

        raise UnknownPlugin(f"there is no plugin {name}", did_you_mean(name, [one.name for one in self.plugins]))

    @property
    def watching(self) -> bool:
        return self.config.get("watch") is True

    # one plugin -------------------------------------------------------------------------------------------------------------------

    @property
    def _session(self) -> PluginSession:
        assert self.session is not None
        return self.session

    def _find(self) -> list[DiscoveredPlugin]:
        """All plugins in the order in which they are loaded; what is odd about the rest is told once."""
        plugins, problems = self.places.find()
        for text in problems:
            if text not in self.told:
                self.told.add(text)
                self._session.parts.bus.stream.warn(text)
        return plugins

    async def _load(self, found: DiscoveredPlugin) -> LoadedPlugin:
        """Run it. Whatever goes wrong, nothing of it stays then."""
        made = LoadedPlugin(found, "active", stamp=stamp_of(found) if self.watching else ())
        if not found.trusted or not found.enabled:
            made.state = "disabled" if found.trusted else "untrusted"
            return made
        host: Host | None = None
        try:
            self._may_come(found)
            made.copy = copy_of(found)
            language = self._language(found.kind)
            host = Host(self._session, language.plugin(found, self._config(found.name)))
            token = HOST.set(host)
            try:
                await load_in_time(language, found, host, self.config)
            finally:
                HOST.reset(token)
            made.plugin = host.plugin
        except BaseException as error:
            if host is not None:
                await self._take_back(host)
            if not isinstance(error, EXPECTED):
                raise
            made.state, made.error, made.trace = "error", str(error), _trace(error, found.folder)
        return made

    async def _unload(self, one: LoadedPlugin) -> None:
        """Take back all that it registered. It is inert afterwards, whatever fails."""
        plugin, one.plugin = one.plugin, None
        if plugin is None:
            return
        one.state, one.error = "error", "it was interrupted while it was loaded anew"
        host = Host(self._session, plugin)
        try:
            await self._leave(host)
        finally:
            await self._take_back(host)

    async def _leave(self, host: Host) -> None:
        """Its own functions for the end (`on_unload`, `teardown`), in its name. One that fails is reported."""
        token = HOST.set(host)
        try:
            for function in reversed(host.plugin.leaving):
                await call_in_time(host, "on_unload", host.plugin.invoke, function)
        finally:
            HOST.reset(token)

    async def _take_back(self, host: Host) -> None:
        """Work off the ledger, the last entry first; then look whether anything is left."""
        session, name = self._session, host.plugin.name
        for _ in range(ROUNDS):
            for undo in reversed(session.owned.pop(name, {}).values()):
                await call_in_time(host, "unloading", undo)
        session.parts.bus.registry.drop_owner(name)
        session.parts.tools.drop(name)
        session.parts.commands.drop(name)
        await cancel_background(session, name)

    def _keep(self, made: LoadedPlugin, report: bool = False) -> None:
        """Put it into the list, in the place of the one before."""
        names = [one.name for one in self.plugins]
        if made.name in names:
            self.plugins[names.index(made.name)] = made
        else:
            self.plugins.append(made)
        if report and made.error:
            self._warn(f"plugin {made.name} is not loaded: {made.error}", made.name)

    def _warn(self, text: str, owner: str) -> None:
        self._session.parts.bus.stream.warn(text, owner)

    def _tell(self, name: str, what: str) -> None:
        """An info notice, if it went well."""
        if self.of(name).state == "active":
            self._session.parts.bus.stream.tell(Notice("info", f"the plugin {name} {what}", name))

    def _may_go(self, one: LoadedPlugin) -> None:
        """Raises StaysLoaded if an active plugin needs it."""
        above = [other.name for other in self.plugins if other.state == "active" and one.name in _needs(other.found)]
        if one.state == "active" and above:
            verb = "depends" if len(above) == 1 else "depend"
            raise PluginInUse(
                f"{', '.join(above)} {verb} on the plugin {one.name}", f"`/plugin disable {above[-1]}` first"
            )

    def _may_come(self, found: DiscoveredPlugin) -> None:
        """Raises PluginFailed for one that cannot be loaded, or whose dependency is not there."""
        if found.problem:
            raise PluginFailed(found.problem)
        active = {one.name for one in self.plugins if one.state == "active"}
        for name in _needs(found):
            if name not in active:
                raise PluginFailed(
                    f"it depends on the plugin {name}, which is not active", "`cru plugin list` says why"
                )

    def _config(self, name: str) -> dict[str, Any]:
        own = self.config.get(name)
        return {k: v for k, v in own.items() if k != "enabled"} if isinstance(own, Mapping) else {}

    def _switch(self, name: str, on: bool) -> None:
        said = self.places.config
        self.places = replace(self.places, config={**said, name: {**said.get(name, {}), "enabled": on}})

    def _language(self, kind: str) -> Language:
        if kind not in self.languages:
            if kind == "lua":
                from cru.extensions.lua.plugins import LuaPlugins

                self.languages[kind] = LuaPlugins(self.places.search(), self._session.parts)
            elif kind == "executable":
                from cru.extensions.executables.plugins import Executables

                self.languages[kind] = Executables(self._session.parts, self.home, lambda: self.places.find()[0])
            else:
                from cru.extensions.python.plugins import PythonPlugins

                self.languages[kind] = PythonPlugins()
        return self.languages[kind]


def _needs(found: DiscoveredPlugin) -> tuple[str, ...]:
    said = found.manifest.dependencies if found.manifest is not None else ()
    return tuple(one.name for one in said if not one.optional)


def _trace(error: BaseException, folder: Path) -> str:
    """What the language says about the way to the error, from the plugin's first line on."""
    cause = error.__cause__
    said: str = getattr(error, "traceback", "")
    if said or cause is None:
        return said
    import traceback

    way = cause.__traceback__
    while way is not None and not way.tb_frame.f_code.co_filename.startswith(str(folder)):
        way = way.tb_next
    return "".join(traceback.format_exception(type(cause), cause, way)).rstrip()
