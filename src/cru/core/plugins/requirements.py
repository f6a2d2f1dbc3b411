"""Plugins that must run: those marked `required`, and with `--strict-hooks` all that are there. A run does not begin without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cru.core.base.config.closest import did_you_mean
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.errors import PluginMissing
from cru.core.plugins.loaded_plugin import LoadedPlugin
from cru.core.plugins.lost_guards import LossKind, LostGuard

SHOWN = 5
"""Of each plugin so many problems are told."""
PLUGINS = "plugins"
"""Where a plugin stands that is not there."""


def require_plugins(plugins: Iterable[LoadedPlugin], config: Mapping[str, object]) -> None:
    """Raises PluginMissing if a plugin that the settings call required does not run, or not all of it. (The version before of one
    that could not be loaded anew guards as it did.)"""
    loaded = {plugin.name: plugin for plugin in plugins}
    lost = find_unmet(config, {name: plugin.discovered for name, plugin in loaded.items()})
    required = (loaded[name] for name in required_names(config) if name in loaded)
    lost += find_not_running(plugin for plugin in required if not plugin.held)
    if lost:
        names = dict.fromkeys(guard.owner for guard in lost)
        several = (
            "a plugin that is required does not run" if len(names) == 1 else "plugins that are required do not run"
        )
        reasons = {name: "; ".join(_in_a_row(guard) for guard in lost if guard.owner == name) for name in names}
        lines = [f"{several}:", *(f"  {name}: {reason}" for name, reason in reasons.items())]
        raise PluginMissing("\n".join(lines), "mend it, or take `required = true` out of its table in [plugins]")


def require_all(plugins: Iterable[LoadedPlugin], problems: Iterable[str], gone: Iterable[str]) -> None:
    """Raises PluginMissing if anything of a plugin that is there is left out. `problems`: what is wrong with the folders and settings;
    `gone`: the names of plugins that were active."""
    texts = [*problems, *(f"the plugin {name} was active and is gone" for name in gone)]
    texts += (f"{guard.owner}: {_in_a_row(guard)}" for guard in find_not_running(plugins))
    if texts:
        listed = [f"  {text}" for text in texts]
        what = "\n".join(("--strict-hooks: not every plugin that is there can run as it is written:", *listed))
        raise PluginMissing(what, "`cru plugin list` says how each one is")


def required_names(config: Mapping[str, object]) -> list[str]:
    return [name for name, own in config.items() if isinstance(own, Mapping) and own.get("required") is True]


def find_unmet(config: Mapping[str, object], plugins: Mapping[str, DiscoveredPlugin]) -> list[LostGuard]:
    """Plugins that are required and not to be loaded at all. plugins: those that were found, by name."""
    return [guard for name in required_names(config) for guard in _why_not_loaded(name, plugins.get(name), plugins)]


def _why_not_loaded(name: str, plugin: DiscoveredPlugin | None, known: Iterable[str]) -> Iterator[LostGuard]:
    if plugin is None:
        text = "it is required, and there is no such plugin"
        yield LostGuard(LossKind.MISSING, name, PLUGINS, text, did_you_mean(name, known))
    elif not plugin.trusted:
        text = "it is required, and belongs to a project that is not trusted"
        yield LostGuard(LossKind.AWAITING, name, str(plugin.files[0]), text, "cru trust")
    elif not plugin.enabled:
        text = "it is required, and switched off"
        yield LostGuard(LossKind.SWITCHED_OFF, name, str(plugin.files[0]), text, f"[plugins.{name}] enabled = true")


def find_not_running(plugins: Iterable[LoadedPlugin]) -> list[LostGuard]:
    """Plugins that failed to load, and parts of others that have no effect."""
    lost = []
    for loaded in plugins:
        file = str(loaded.discovered.files[0]) if loaded.discovered.files else PLUGINS
        texts = [loaded.error] if loaded.state == "error" else []
        if loaded.plugin is not None:
            texts += loaded.plugin.problems[:SHOWN]
            left = len(loaded.plugin.problems) - SHOWN
            texts += [f"and {left} more"] if left > 0 else []
        kind = LossKind.LEFT_OUT if loaded.state == "error" else LossKind.POWERLESS
        lost += [LostGuard(kind, loaded.name, file, text) for text in texts]
    return lost


def _in_a_row(guard: LostGuard) -> str:
    """Without its place, which the text of a plugin names itself."""
    text = "; ".join(line.strip() for line in guard.text.splitlines() if line.strip())
    return f"{text} ({guard.hint})" if guard.hint else text
