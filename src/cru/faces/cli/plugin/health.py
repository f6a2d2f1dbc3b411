"""`cru plugin health`: the checks that plugins bring (health.lua)."""

from __future__ import annotations

from collections.abc import Sequence

from cru.app import SessionBundle
from cru.extensions.loaded_plugin import LoadedPlugin
from cru.extensions.manager import Extensions
from cru.extensions.testing.health import HealthCheck, check
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.plugin.chibi_link import check_link
from cru.faces.cli.plugin.plugins import unknown_plugin, with_plugins
from cru.namespace.host import PluginSession

OFF = ("disabled", "untrusted")


def check_health(parsed: Parsed, name: str) -> int:
    """Of one plugin, or of all that are on. 1 if something of it is an error. Raises UnknownPlugin."""

    async def work(built: SessionBundle, extensions: Extensions) -> int:
        session = extensions.session or PluginSession(built.session.parts, extensions.home)
        chosen = [plugin for plugin in extensions.plugins if name == plugin.name or not (name or plugin.is_off)]
        if name and not chosen:
            raise unknown_plugin(name, [plugin.discovered.name for plugin in extensions.plugins])
        is_healthy = True
        for plugin in chosen:
            checks = None if plugin.state in OFF else await check(plugin, session)
            is_healthy = _report(plugin, checks) and is_healthy
        if not chosen:
            show("there are no plugins")
        link = check_link(
            extensions.home, [plugin.discovered.files[0] for plugin in chosen if plugin.discovered.kind == "executable"]
        )
        if link:
            show(one_line(link))
        return 0 if is_healthy else 1

    return with_plugins(parsed, work)


def _report(plugin: LoadedPlugin, checks: Sequence[HealthCheck] | None) -> bool:
    """Print what the checks of a plugin say; whether none of it is an error."""
    name = plugin.discovered.name
    if not checks:
        if plugin.state in OFF:
            why = f"it is {plugin.state}"
        else:
            why = "it has no health check" if checks is None else "no check said anything"
        show(f"{name}: nothing to report, {why}")
        return True
    show(name)
    for health in checks:
        show(f"  {health.level:<6} {one_line(health.text)}")
        for advice in health.advice:
            show(f"  {'':<6} {one_line(advice)}")
    return all(health.level != "error" for health in checks)
