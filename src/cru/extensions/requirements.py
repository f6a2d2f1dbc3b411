"""Plugins that must run: those marked `required`, and with `--strict-hooks` all that are there. A run does not begin without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cru.config.closest import did_you_mean
from cru.extensions.errors import PluginMissing
from cru.extensions.loaded_plugin import LoadedPlugin

SHOWN = 5
"""Of each plugin so many problems are told."""


def check_required(plugins: Iterable[LoadedPlugin], config: Mapping[str, object]) -> None:
    """Raises PluginMissing if a plugin that the settings call required does not run, or not all of it. (The version before of one
    that could not be loaded anew guards as it did.)"""
    by_name = {plugin.name: plugin for plugin in plugins}
    lines = [
        f"  {name}: {reason}"
        for name in required_names(config)
        if (reason := _why_not_running(name, by_name.get(name), by_name))
    ]
    if lines:
        several = (
            "a plugin that is required does not run" if len(lines) == 1 else "plugins that are required do not run"
        )
        raise PluginMissing(
            "\n".join((f"{several}:", *lines)), "mend it, or take `required = true` out of its table in [plugins]"
        )


def check_all(plugins: Iterable[LoadedPlugin], problems: Iterable[str]) -> None:
    """Raises PluginMissing if anything of a plugin that is there is left out. `problems`: what is wrong with the folders and settings."""
    lines = [f"  {text}" for text in (*problems, *_losses(plugins))]
    if lines:
        listed = "\n".join(("--strict-hooks: not every plugin that is there can run as it is written:", *lines))
        raise PluginMissing(listed, "`cru plugin list` says how each one is")


def required_names(config: Mapping[str, object]) -> list[str]:
    return [name for name, own in config.items() if isinstance(own, Mapping) and own.get("required") is True]


def _losses(plugins: Iterable[LoadedPlugin]) -> Iterator[str]:
    for loaded in plugins:
        if loaded.state == "error":
            yield f"{loaded.name}: {_on_one_line(loaded.error)}"
        elif loaded.plugin is not None:
            problems = loaded.plugin.problems
            yield from (f"{loaded.name}: {_on_one_line(text)}" for text in problems[:SHOWN])
            if len(problems) > SHOWN:
                yield f"{loaded.name}: and {len(problems) - SHOWN} more"


def _why_not_running(name: str, loaded: LoadedPlugin | None, known: Iterable[str]) -> str:
    """ "" if it runs."""
    if loaded is None:
        hint = did_you_mean(name, known)
        return f"there is no such plugin; {hint}" if hint else "there is no such plugin"
    match loaded.state:
        case "active":
            problems = loaded.plugin.problems if loaded.plugin is not None and not loaded.held else []
            return "; ".join(_on_one_line(text) for text in problems[:SHOWN])
        case "untrusted":
            return "it belongs to this project, which is not trusted: `cru trust`"
        case "disabled":
            return f"it is switched off: [plugins.{name}] enabled = true"
    return _on_one_line(loaded.error)


def _on_one_line(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())
