"""What the verbs of `cru plugin` share: the plugins that are found, and a session in which they are loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from cru.core.base.config.closest import did_you_mean
from cru.core.compose import SessionBundle, Start, load_settings, plugin_places
from cru.core.plugins.errors import UnknownPlugin
from cru.core.plugins.executables.schemas import SchemaCache
from cru.core.plugins.listing import line_of
from cru.core.plugins.lua.fennel import FennelPlace
from cru.core.plugins.manager import Extensions
from cru.faces.cli.console import say
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import context_name, open_home, start_of
from cru.faces.cli.session_run import open_session

if TYPE_CHECKING:
    from cru.core.events.stream import Notice
    from cru.core.plugins.discovery.files import DiscoveredPlugin

T = TypeVar("T")


def plugin_start(parsed: Parsed) -> Start:
    return start_of(parsed, context_name(parsed, open_home(parsed)))


def find_plugins(parsed: Parsed) -> list[DiscoveredPlugin]:
    """Every plugin that is found, loaded or not."""
    start = plugin_start(parsed)
    return plugin_places(start, load_settings(start)[0]).find()[0]


def find_fennel(parsed: Parsed) -> FennelPlace:
    """Where the compiler of Fennel is looked for, by the settings."""
    start = plugin_start(parsed)
    return FennelPlace(plugin_places(start, load_settings(start)[0]).fennel, start.home)


def unknown_plugin(name: str, known: Iterable[str]) -> UnknownPlugin:
    """The error for a name that no plugin has."""
    hint = did_you_mean(name, tuple(known)) or "cru plugin list shows those that are there"
    return UnknownPlugin(f"there is no plugin {name}", hint)


def with_plugins(
    parsed: Parsed, work: Callable[[SessionBundle, Extensions], Awaitable[T]], kept: list[Notice] | None = None
) -> T:
    """Load the plugins into a session in which no turn runs, and do something with them. kept: notices are put there and not said"""
    start = plugin_start(parsed)

    async def run() -> T:
        SchemaCache(start.home).forget_failures()
        notices: list[Notice] = []
        async with open_session(start, notices.append) as built:
            # A session without a folder of plugins has none; then those that come with cru and are off.
            extensions = built.extensions or Extensions(plugin_places(start, built.settings), {}, start.home)
            if extensions.session is None:
                await extensions.open(built.session.parts)
            # What is wrong with broken ones is part of what is asked for.
            broken = {loaded.discovered.name for loaded in extensions.plugins if loaded.state == "error"}
            notices = [notice for notice in _sorted_notices(notices) if notice.owner not in broken]
            if kept is None:
                for notice in notices:
                    say(f"cru: {notice.text}")
            else:
                kept.extend(notices)
            return await work(built, extensions)

    return run_interruptible(run())


def _sorted_notices(notices: list[Notice]) -> list[Notice]:
    """By plugin and line."""
    owners = list(dict.fromkeys(notice.owner for notice in notices))
    return sorted(notices, key=lambda notice: (owners.index(notice.owner), line_of(f"cru: {notice.text}")))
