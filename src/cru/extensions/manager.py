"""All plugins of a session: found, loaded when the session opens, unloaded when it closes.

Each plugin owns what it registers; one that fails to load leaves nothing behind, is reported, and the rest goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from cru.engine.parts import Parts
from cru.extensions.discover import Found, discover
from cru.namespace.host import HOST, Host, Plugin, Session
from cru.values.errors import CruError


class Language(Protocol):
    """What runs the plugins of one language; made when the first one is there."""

    def plugin(self, found: Found, config: Mapping[str, Any]) -> Plugin: ...

    async def load(self, found: Found, host: Host) -> None: ...


class Loaded(Struct):
    """One plugin and how it is: active, disabled or error (with the message)."""

    found: Found
    state: str
    error: str = ""
    plugin: Plugin | None = None


class Extensions(Struct):
    """The plugins of one session. `folders` are searched in order, the first of a name wins; bundled ones need `enabled = true`."""

    folders: list[tuple[str, Path]]
    config: Mapping[str, Any]
    home: Path
    plugins: list[Loaded] = field(default_factory=list)
    session: Session | None = None

    def any(self) -> bool:
        """Whether there may be a plugin at all: nothing of this room is loaded otherwise."""
        return any(
            found for layer, folder in self.folders for found in discover(folder, layer)[0] if self._wanted(found)
        )

    async def open(self, parts: Parts) -> None:
        """Load every plugin that is wanted."""
        self.session = Session(parts, self.home)
        languages: dict[str, Language] = {}
        for found in self._found(parts):
            if not self._wanted(found):
                self.plugins.append(Loaded(found, "disabled"))
                continue
            if found.kind not in languages:
                languages[found.kind] = _language(found.kind, self, parts)
            await self._load(languages[found.kind], found, parts)

    async def close(self) -> None:
        """End what plugins left running."""
        if self.session is None:
            return
        tasks = list(self.session.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _found(self, parts: Parts) -> list[Found]:
        chosen: dict[str, Found] = {}
        for layer, folder in self.folders:
            plugins, problems = discover(folder, layer)
            for text in problems:
                parts.bus.stream.warn(text)
            for found in plugins:
                chosen.setdefault(found.name, found)
        return list(chosen.values())

    def _wanted(self, found: Found) -> bool:
        own = self.config.get(found.name)
        enabled = own.get("enabled") if isinstance(own, Mapping) else None
        return enabled is True if found.layer == "bundled" else enabled is not False

    async def _load(self, language: Language, found: Found, parts: Parts) -> None:
        assert self.session is not None
        own = self.config.get(found.name)
        config = {k: v for k, v in own.items() if k != "enabled"} if isinstance(own, Mapping) else {}
        plugin = language.plugin(found, config)
        host = Host(self.session, plugin)
        token = HOST.set(host)
        try:
            await language.load(found, host)
            self.plugins.append(Loaded(found, "active", plugin=plugin))
        except (CruError, OSError, SyntaxError, UnicodeDecodeError) as error:
            self._failed(found, str(error), parts)
        finally:
            HOST.reset(token)

    def _failed(self, found: Found, text: str, parts: Parts) -> None:
        parts.bus.registry.drop_owner(found.name)
        parts.tools.drop(found.name)
        self.plugins.append(Loaded(found, "error", text))
        parts.bus.stream.warn(f"plugin {found.name} is not loaded: {text}", found.name)


def _language(kind: str, extensions: Extensions, parts: Parts) -> Language:
    if kind == "lua":
        from cru.extensions.lua.plugins import LuaPlugins

        return LuaPlugins(extensions.folders, parts)
    from cru.extensions.python.plugins import PythonPlugins

    return PythonPlugins()
