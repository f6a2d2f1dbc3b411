"""What other people add to a session: extensions, plugins, command hooks, commands."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cru.app.ports import Redact
from cru.app.start import Start, hooks_where, plugin_places
from cru.config.merge import Settings
from cru.engine.parts import Parts
from cru.engine.settling import inject_recursion
from cru.events.bus import Bus
from cru.extensions.hooks.discovery import HookWatcher
from cru.extensions.hooks.settings import HookOptions
from cru.extensions.packages import installed_packages
from cru.extensions.settings import PATH_VARIABLES, PluginSettings
from cru.values.errors import CruError

if TYPE_CHECKING:
    from cru.events.extension import Extension
    from cru.extensions.manager import Extensions


class BadExtension(CruError):
    """Code that was to be registered raised."""


def register(bus: Bus, extensions: Iterable[Extension]) -> None:
    """The built-in handlers first, then everybody's, in order. Raises BadExtension."""
    bus.registry.on("turn:complete", inject_recursion, owner="cru", where="recurse", priority=0)
    for extension in extensions:
        try:
            extension.register(bus)
        except (Exception, SystemExit) as error:  # the boundary around other people's code: told as what it is
            raise BadExtension(f"{extension.owner} cannot be registered: {type(error).__name__}: {error}") from error


def add_plugins(parts: Parts, start: Start, settings: Settings) -> Extensions | None:
    """All plugins, if there may be any; they are loaded when the session opens."""
    chosen = settings.of(PluginSettings)
    said = chosen.plugins or chosen.runtimepath or any(start.env.get(name) for name in PATH_VARIABLES)
    folders = (start.home / "plugins", start.root / ".cru" / "plugins")
    if not (said or any(os.path.isdir(folder) for folder in folders) or installed_packages(start.home)):
        return None
    from cru.extensions.manager import Extensions

    extensions = Extensions(plugin_places(start, settings), chosen.plugins, start.home)
    parts.lifecycle.opening.append(extensions.open)
    parts.lifecycle.closing.append(extensions.close)
    return extensions


async def bind(parts: Parts) -> None:
    """A workflow that is saved as running binds the model, even if no plugin could be loaded that defines it."""
    try:
        saved = (parts.store.folder / "plugin-state.json").read_bytes()
    except FileNotFoundError:
        return
    except OSError:
        saved = b'"fsm:'  # nobody knows
    if b'"fsm:' in saved:
        from cru.namespace.fsm.workflows import bind_saved_runs

        bind_saved_runs(parts)


def add_hooks(parts: Parts, start: Start, options: HookOptions, redact: Redact, plugins: Extensions | None) -> None:
    """Command hooks; nothing of them is loaded before a file is there that may hold some. Raises Untrusted."""
    if start.hooks == "none":
        return
    door = HookWatcher(hooks_where(start), options, start.hooks, start.strict_hooks, parts, redact, plugins)
    door.look()
    parts.lifecycle.idle.append(door.again)
