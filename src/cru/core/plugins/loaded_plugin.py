"""One plugin of a session, and the state that it is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from cru.core.api.host import Plugin
from cru.core.events.registry import Handler
from cru.core.plugins.discovery.files import DiscoveredPlugin
from cru.core.plugins.plugin_files import FileCopy, Stamp

PluginState = Literal["active", "disabled", "untrusted", "error"]


class LoadedPlugin(Struct):
    """A plugin that was found, loaded or not.

    discovered: the version that was found
    state: active, disabled, untrusted or error
    error: why it is not loaded; "": nothing went wrong
    trace: the way to the error, as its language shows it; "": not known
    plugin: what owns its registrations; None: it is not loaded
    stamp: what it was found as; (): changes are not watched
    copy: its files as they were loaded
    held: it is the version before, since the files as they are now could not be loaded
    guards: its handlers that could refuse a call when it was last active
    is_idle: it was loaded, and has neither registered nor called anything
    has_no_effect: so it is, and no other plugin uses it
    """

    discovered: DiscoveredPlugin
    state: PluginState
    error: str = ""
    trace: str = ""
    plugin: Plugin | None = None
    stamp: Stamp = ()
    copy: FileCopy = {}
    held: bool = False
    guards: Sequence[Handler] = ()
    is_idle: bool = False
    has_no_effect: bool = False

    @property
    def name(self) -> str:
        return self.discovered.name

    @property
    def is_active(self) -> bool:
        return self.state == "active"

    @property
    def is_off(self) -> bool:
        """It came with cru, and nobody has turned it on."""
        return self.discovered.layer == "bundled" and self.state == "disabled"


def required_plugins(plugin: DiscoveredPlugin) -> tuple[str, ...]:
    """The names of the plugins that it cannot do without."""
    dependencies = plugin.manifest.dependencies if plugin.manifest is not None else ()
    return tuple(dependency.name for dependency in dependencies if not dependency.optional)
