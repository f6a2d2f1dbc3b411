"""The order in which plugins are loaded: what a plugin needs comes before it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cru.core.base.config.closest import did_you_mean
from cru.core.plugins.discovery.files import DiscoveredPlugin


def sort_by_dependencies(plugins: list[DiscoveredPlugin]) -> list[DiscoveredPlugin]:
    """The same plugins, otherwise in their order. One that lacks what it needs, or needs itself, gets a problem that says so."""
    names = {plugin.name: plugin for plugin in plugins}
    placed: dict[str, DiscoveredPlugin] = {}
    unplaced = dict(names)
    while unplaced:
        ready = next(
            (plugin for plugin in unplaced.values() if not any(name in unplaced for name in _requirements(plugin))),
            None,
        )
        if ready is None:
            ready = next(plugin for plugin in unplaced.values() if _find_cycle(plugin, unplaced))
            ready = msgspec.structs.replace(
                ready, problem=f"it needs itself: {' → '.join(_find_cycle(ready, unplaced))}"
            )
        del unplaced[ready.name]
        placed[ready.name] = _check_requirements(ready, placed, names)
    return list(placed.values())


def _requirements(plugin: DiscoveredPlugin) -> list[str]:
    return [needed.name for needed in plugin.manifest.dependencies] if plugin.loadable and plugin.manifest else []


def _find_cycle(plugin: DiscoveredPlugin, unplaced: Mapping[str, DiscoveredPlugin]) -> list[str]:
    """The shortest way from a plugin over what it needs back to itself; empty if there is none."""
    ways = [[plugin.name]]
    seen: set[str] = set()
    for way in ways:  # grows while it is walked
        for name in _requirements(unplaced[way[-1]]):
            if name == plugin.name:
                return [*way, name]
            if name in unplaced and name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []


def _check_requirements(
    plugin: DiscoveredPlugin, placed: Mapping[str, DiscoveredPlugin], names: Mapping[str, DiscoveredPlugin]
) -> DiscoveredPlugin:
    """The plugin, with a problem if something that it cannot do without is not loaded."""
    if not plugin.loadable or plugin.manifest is None:
        return plugin
    for needed in plugin.manifest.dependencies:
        other = placed.get(needed.name)
        if needed.optional or (other is not None and other.loadable):
            continue
        why = _missing_reason(needed.name, other, names)
        return msgspec.structs.replace(plugin, problem=f"it needs the plugin {needed.name}, {why}")
    return plugin


def _missing_reason(name: str, other: DiscoveredPlugin | None, names: Mapping[str, DiscoveredPlugin]) -> str:
    if other is None:
        hint = did_you_mean(name, names)
        return f"which is not there ({hint})" if hint else "which is not there"
    if other.problem:
        return "which cannot be loaded"
    return (
        f"which is off (`[plugins.{name}] enabled = true`)" if other.trusted else "which is not trusted (`cru trust`)"
    )
