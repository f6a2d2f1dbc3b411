"""All plugins of a session: found, loaded when the session opens, loaded anew when asked for or changed, unloaded.

One that cannot be loaded is reported, and the rest goes on. One that was active and fails to load anew holds on as it was: a rule does
not end because its file is half written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cru.core.api.host import PluginSession
from cru.core.base.config.closest import did_you_mean
from cru.core.events.registry import Handler
from cru.core.events.stream import Notice
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.discovery.places import PluginFolders
from cru.core.plugins.effects import find_idle
from cru.core.plugins.errors import PluginFailed, PluginInUse, PluginMissing, UnknownPlugin
from cru.core.plugins.loaded_plugin import LoadedPlugin, required_plugins
from cru.core.plugins.loader import Language, PluginLoader
from cru.core.plugins.patterns import find_unfitting
from cru.core.plugins.plugin_files import has_empty_files, stamp_of
from cru.core.plugins.requirements import require_all, require_plugins, required_names
from cru.core.plugins.stand_ins import register_stand_ins
from cru.core.turn.parts import Parts


class LoadFailure(Struct, frozen=True):
    """Why a plugin could not be loaded anew.

    message: for the person, with what holds now
    trace: the way to the error, "" if it is not known
    """

    message: str
    trace: str = ""


class Extensions:
    """The plugins of one session.

    places: where they are looked for
    config: `[plugins]` as a whole
    home: cru's home folder
    strict: none may be left out
    session: what they share; None before `open`
    """

    def __init__(self, places: PluginFolders, config: Mapping[str, object], home: Path, strict: bool = False) -> None:
        self.places = places
        self.config = config
        self.home = home
        self.strict = strict
        self._plugins: dict[str, LoadedPlugin] = {}
        self.session: PluginSession | None = None
        self._opened: PluginLoader | None = None
        self._problems: list[str] = []
        self._was_missing = False
        self._gone: set[str] = set()
        self._reported: set[str] = set()

    @property
    def plugins(self) -> list[LoadedPlugin]:
        """In the order in which they were loaded."""
        return list(self._plugins.values())

    @property
    def languages(self) -> Mapping[str, Language]:
        """The languages that were needed until now, by the kind of plugin."""
        return self._opened.languages if self._opened is not None else {}

    async def open(self, parts: Parts) -> None:
        """Load every plugin that is wanted."""
        self.session = PluginSession(parts, self.home)
        parts.services.tasks.wakers.append(self.session.prompts)
        self._opened = PluginLoader(self.session, self.config, lambda: self.places)
        for plugin in self._find():
            await self._load_new(plugin)
        self._check_effects({loaded.name for loaded in self.plugins})
        named = [_describe(loaded) for loaded in self.plugins if not loaded.is_off]
        if parts.services.face.is_verbose and named:
            parts.bus.stream.tell(Notice("info", f"plugins: {', '.join(named)}"))

    async def require(self, parts: Parts) -> None:
        """Raises PluginMissing if a plugin does not run that must. What was missing before is looked for again."""
        try:
            self._check_complete()
        except PluginMissing:
            if not self._was_missing:
                self._was_missing = True
                raise
            await self._load_missing()
            self._check_complete()

    def _check_complete(self) -> None:
        require_plugins(self.plugins, self.places.config)
        if self.strict:
            require_all(self.plugins, self._problems, sorted(self._gone - self._plugins.keys()))

    async def prepare_prompt(self) -> None:
        """Before each prompt: take in what has changed, if that is watched. Raises PluginMissing as `require` does."""
        if self.session is None:
            return
        if self._is_watching:
            await self.refresh()
        await self.require(self.session.parts)

    async def _load_missing(self) -> None:
        """A person may have mended what failed."""
        for plugin in self._find():
            before = self._plugins.get(plugin.name)
            if before is None or not before.is_active:
                self._loader.session.parts.bus.registry.drop_owner(plugin.name)  # what stands in for it
                loaded = await self._load(plugin)
                self._guard(loaded, before.guards if before is not None else (), loaded.error)
                self._check_effects((plugin.name,))
            elif before.plugin is not None and before.plugin.problems:
                await self._replace(before, plugin)

    async def close(self) -> None:
        """Let plugins say good-bye, the last one first, and end what they left running."""
        if self._opened is None:
            return
        for loaded in reversed(self.plugins):
            if loaded.plugin is not None:
                await self._loader.tear_down(loaded.plugin)
        await self._loader.close()

    def of(self, name: str) -> LoadedPlugin:
        """The plugin of that name. Raises UnknownPlugin with the closest one."""
        if name in self._plugins:
            return self._plugins[name]
        raise UnknownPlugin(f"there is no plugin {name}", did_you_mean(name, self._plugins))

    # what a person asks for -------------------------------------------------------------------------------------------------------

    async def enable(self, name: str) -> None:
        """For this session. Raises UnknownPlugin and PluginFailed."""
        if self.of(name).is_active:
            return
        self._switch(name, enabled=True)
        await self.reload(name)

    async def disable(self, name: str) -> None:
        """For this session. Raises UnknownPlugin and PluginInUse."""
        loaded = self.of(name)
        if name in required_names(self.places.config):
            raise PluginInUse(f"the plugin {name} is required", f"[plugins.{name}] required = true says so")
        self._check_unused(loaded)
        self._switch(name, enabled=False)
        await self._loader.unload(loaded)
        self._plugins[name] = LoadedPlugin(replace(loaded.discovered, enabled=False), "disabled", stamp=loaded.stamp)

    async def reload(self, name: str) -> None:
        """Unload, and load from the files as they are now. Raises UnknownPlugin, PluginInUse, and PluginFailed: if it was active it holds
        on as it was then."""
        old = self.of(name)
        self._check_unused(old)
        plugin = next((plugin for plugin in self._find() if plugin.name == name), None)
        if plugin is None:
            await self._remove(old)
            raise UnknownPlugin(f"the plugin {name} is gone: it is unloaded", f"it was {old.discovered.files[0]}")
        failure = await self._replace(old, plugin)
        if failure is not None:
            raise PluginFailed(failure.message, failure.trace)

    async def reload_all(self) -> list[str]:
        """Unload all, the last one first, and load those that are there now; the names of the active ones. What could not be loaded anew,
        and what is gone, is reported."""
        before = {loaded.name: (loaded, loaded.is_active) for loaded in self.plugins}
        for loaded in reversed(self.plugins):
            await self._loader.unload(loaded)
        self._plugins.clear()
        for plugin in self._find():
            old, was_active = before.pop(plugin.name, (None, False))
            failure = await self._load_again(old if was_active else None, plugin, old.guards if old is not None else ())
            if failure is not None:
                self._warn(failure.message, plugin.name)
        for name, (_, was_active) in before.items():
            if was_active:
                self._gone.add(name)
            self._warn(f"the plugin {name} is gone and is unloaded", name)
        return [loaded.name for loaded in self.plugins if loaded.is_active]

    # what changed by itself -------------------------------------------------------------------------------------------------------

    @property
    def _is_watching(self) -> bool:
        return self.config.get("watch") is True

    async def refresh(self) -> None:
        """Load, reload and unload what came, changed and went since the last time; one notice each."""
        now = {plugin.name: plugin for plugin in self._find()}
        for loaded in self.plugins:
            plugin = now.pop(loaded.name, None)
            stamp = stamp_of(plugin) if plugin is not None else ()
            if stamp != loaded.stamp:
                loaded.stamp = stamp
                await self._refresh_one(loaded, plugin)
        for plugin in now.values():
            await self._load_new(plugin)
            self._check_effects((plugin.name,))
            self._announce(plugin.name, "is new and is loaded")

    async def _refresh_one(self, old: LoadedPlugin, plugin: DiscoveredPlugin | None) -> None:
        try:
            self._check_unused(old)
        except PluginInUse as error:
            self._warn(f"the files of {old.name} have changed, but {error.message}", old.name)
            return
        if plugin is None:
            await self._remove(old)
            self._warn(f"the plugin {old.name} is gone and is unloaded", old.name)
            return
        how = "is loaded anew" if old.is_active else "is loaded"
        failure = await self._replace(old, plugin)
        if failure is not None:
            self._warn(failure.message, old.name)
        else:
            self._announce(old.name, f"has changed and {how}")

    # one plugin -------------------------------------------------------------------------------------------------------------------

    @property
    def _loader(self) -> PluginLoader:
        assert self._opened is not None
        return self._opened

    def _find(self) -> list[DiscoveredPlugin]:
        """All plugins in the order in which they are loaded; what is odd about the rest is reported once."""
        plugins, self._problems = self.places.find()
        for text in self._problems:
            if text not in self._reported:
                self._reported.add(text)
                self._loader.session.parts.bus.stream.warn(text)
        return plugins

    def _active_names(self) -> set[str]:
        return {loaded.name for loaded in self.plugins if loaded.is_active}

    async def _load(self, plugin: DiscoveredPlugin) -> LoadedPlugin:
        loaded = await self._loader.load(plugin, self._active_names, self._is_watching)
        self._plugins[loaded.name] = loaded  # in the place of the one before
        return loaded

    async def _load_new(self, plugin: DiscoveredPlugin) -> None:
        loaded = await self._load(plugin)
        if loaded.state == "error":
            self._warn(f"plugin {loaded.name} is not loaded: {loaded.error}", loaded.name)

    async def _replace(self, old: LoadedPlugin, plugin: DiscoveredPlugin) -> LoadFailure | None:
        """Unload it and load what is there now."""
        was_active = old.is_active
        await self._loader.unload(old)
        return await self._load_again(old if was_active else None, plugin, old.guards)

    async def _load_again(
        self, active: LoadedPlugin | None, plugin: DiscoveredPlugin, guards: Sequence[Handler]
    ) -> LoadFailure | None:
        """Load what is there now; if that fails, the version that was active before, if any, holds on. What it guarded when it last was
        is refused if no version can be loaded."""
        if active is not None and any(active.copy.values()) and has_empty_files(plugin):
            plugin = replace(plugin, problem=f"{plugin.files[0]}: it is empty")
        loaded = await self._load(plugin)
        self._check_effects((plugin.name,))
        reason = loaded.error if loaded.state == "error" else ""
        if loaded.state == "untrusted":
            reason = "it belongs to a project that is not trusted (`cru trust` shows its files)"
        if not reason:
            return None
        if active is not None and await self._restore(active, loaded, reason):
            held = f"the plugin {plugin.name} is not loaded anew: {reason}; the version before stays active"
            return LoadFailure(held, loaded.trace)
        self._guard(loaded, guards, reason)
        refused = ": the calls that it guarded are refused" if guards else ""
        return LoadFailure(f"the plugin {plugin.name} is not loaded: {reason}{refused}", loaded.trace)

    def _guard(self, failed: LoadedPlugin, guards: Sequence[Handler], reason: str) -> None:
        """Refuse what a plugin guarded that does not run although nobody switched it off."""
        if failed.state not in ("error", "untrusted") or not guards:
            return
        failed.guards = guards
        text = f"the plugin {failed.name} guards this and cannot be loaded ({reason}): mend it, or `/plugin disable {failed.name}`"
        register_stand_ins(self._loader.session.parts.bus.registry, guards, text)

    async def _restore(self, old: LoadedPlugin, failed: LoadedPlugin, reason: str) -> bool:
        """Put the version before in the place of one that cannot be loaded; whether that worked."""
        restored = await self._loader.load_copy(old, self._active_names)
        if restored is None or restored.plugin is None:
            return False
        restored.plugin.problems.append(f"the version before is active: {reason}")
        restored.discovered, restored.copy, restored.stamp = old.discovered, old.copy, failed.stamp
        restored.held = True
        self._plugins[restored.name] = restored
        return True

    async def _remove(self, loaded: LoadedPlugin) -> None:
        if loaded.is_active or loaded.guards:
            self._gone.add(loaded.name)
        await self._loader.unload(loaded)
        del self._plugins[loaded.name]

    def _check_effects(self, names: Collection[str]) -> None:
        """Tell which of these plugins do nothing, and which of their handlers look at no tool, now that all are there."""
        parts = self._loader.session.parts
        unfitting = find_unfitting(parts.bus.registry, names, parts.tools.names())
        idle = [(loaded, text) for loaded, text in find_idle(self.plugins) if loaded.name in names]
        for loaded, _ in idle:
            loaded.has_no_effect = True
        for loaded, text in (*((self.of(owner), text) for owner, text in unfitting), *idle):
            if loaded.plugin is not None:
                loaded.plugin.problems.append(text)
                self._warn(f"{loaded.name}: {text}", loaded.name)

    def _switch(self, name: str, enabled: bool) -> None:
        config = self.places.config
        self.places = replace(self.places, config={**config, name: {**config.get(name, {}), "enabled": enabled}})

    def _check_unused(self, loaded: LoadedPlugin) -> None:
        """Raises PluginInUse if an active plugin needs it."""
        users = [
            other.name
            for other in self.plugins
            if other.is_active and loaded.name in required_plugins(other.discovered)
        ]
        if loaded.is_active and users:
            verb = "depends" if len(users) == 1 else "depend"
            raise PluginInUse(
                f"{', '.join(users)} {verb} on the plugin {loaded.name}", f"`/plugin disable {users[-1]}` first"
            )

    # notices ----------------------------------------------------------------------------------------------------------------------

    def _warn(self, text: str, owner: str) -> None:
        self._loader.session.parts.bus.stream.warn(text, owner)

    def _announce(self, name: str, what: str) -> None:
        """An info notice, if it went well."""
        if self.of(name).is_active:
            self._loader.session.parts.bus.stream.tell(Notice("info", f"the plugin {name} {what}", name))


def _describe(loaded: LoadedPlugin) -> str:
    """A plugin in a list for people."""
    kind = loaded.discovered.kind
    return f"{loaded.name} ({kind if loaded.is_active else f'{kind}, {loaded.state}'})"
