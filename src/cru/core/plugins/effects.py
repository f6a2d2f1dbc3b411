"""Plugins that were loaded and do nothing: an empty file, a handler that nobody registers. They may have been guards, and are told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cru.core.api.host import Host
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.loaded_plugin import LoadedPlugin
from cru.core.plugins.plugin_files import FileCopy

CODE, TASKS = "code", "stray tasks"
"""What a language takes back in any case: the plugin's own modules, and the watch over its tasks."""
IMPORT = rb"\b(?:require|import|from|include|dofile|loadfile)\b[^\n]*(?<![\w-])"
"""What stands before the name of another plugin where that is used."""


def has_effect(host: Host) -> bool:
    """Whether a plugin that was just loaded has registered anything, or has called anything of cru's that reaches its session."""
    owned = host.session.owned.get(host.plugin.name, {})
    return host.plugin.has_called or bool(owned.keys() - {CODE, TASKS})


def find_idle(plugins: Iterable[LoadedPlugin]) -> Iterator[tuple[LoadedPlugin, str]]:
    """(plugin, what is wrong) of each that has no effect and that no other plugin uses."""
    everything = list(plugins)
    copies = [(loaded.discovered, loaded.copy) for loaded in everything]
    for loaded in everything:
        if loaded.is_idle and not is_used(loaded.discovered, copies):
            yield loaded, f"{loaded.discovered.files[0]}: {describe_idle(loaded.discovered, loaded.copy)}"


def describe_idle(plugin: DiscoveredPlugin, copy: FileCopy) -> str:
    """What is wrong with a plugin that has no effect."""
    is_empty = not any(copy.get(file, b"").strip() for file in plugin.files)
    why = "it is empty" if is_empty else "it registers nothing, calls nothing of cru, and no other plugin uses it"
    return f"this plugin has no effect: {why}"


def is_used(library: DiscoveredPlugin, plugins: Iterable[tuple[DiscoveredPlugin, FileCopy]]) -> bool:
    """Whether another plugin names it: as a dependency, or where it loads modules."""
    names = {library.name, *(file.stem for file in library.files)}
    pattern = re.compile(
        IMPORT + b"(?:" + b"|".join(re.escape(name.encode()) for name in sorted(names)) + rb")(?![\w-])"
    )
    for user, copy in plugins:
        needed = user.manifest.dependencies if user.manifest is not None else ()
        is_named = any(dependency.name == library.name for dependency in needed)
        if user != library and (is_named or any(pattern.search(content) for content in copy.values())):
            return True
    return False
