"""`cru plugin health`: the checks that plugins bring (health.lua)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, json

from cru.core.api.host import PluginSession
from cru.core.compose import SessionBundle
from cru.core.plugins.manager import Extensions
from cru.core.plugins.testing.health import HealthCheck, check
from cru.core.tools.secret_variables import masked
from cru.faces.cli.console import one_line, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.plugin.plugins import unknown_plugin, with_plugins

if TYPE_CHECKING:
    from cru.core.events.stream import Notice

OFF = ("disabled", "untrusted")


class PluginHealth(Struct, frozen=True):
    """What `cru plugin health --json` writes of one plugin.

    checks: None if it brings none, or does not run
    """

    name: str
    state: str
    checks: tuple[HealthCheck, ...] | None = None


class HealthNotice(Struct, frozen=True):
    """What was told while the plugins were loaded. owner: the plugin or the part of cru that tells it"""

    owner: str
    text: str


class PluginHealthList(Struct, frozen=True):
    """All that it writes."""

    plugins: list[PluginHealth]
    notices: list[HealthNotice]


def check_health(parsed: Parsed, name: str, as_json: bool) -> int:
    """Of one plugin, or of all that are on. 1 if something of it is an error. Raises UnknownPlugin."""

    async def work(built: SessionBundle, extensions: Extensions) -> list[PluginHealth]:
        session = extensions.session or PluginSession(built.session.parts, extensions.home)
        chosen = [plugin for plugin in extensions.plugins if name == plugin.name or not (name or plugin.is_off)]
        if name and not chosen:
            raise unknown_plugin(name, [plugin.discovered.name for plugin in extensions.plugins])
        reports = []
        for plugin in chosen:
            checks = None if plugin.state in OFF else await check(plugin, session)
            report = PluginHealth(plugin.discovered.name, plugin.state, None if checks is None else tuple(checks))
            reports.append(report)
            if not as_json:
                _show_report(report)
        if not as_json and not chosen:
            show("there are no plugins")
        return reports

    notices: list[Notice] | None = [] if as_json else None
    reports = with_plugins(parsed, work, notices)
    if as_json:
        rows = [HealthNotice(notice.owner, notice.text) for notice in notices or ()]
        show(masked(json.encode(PluginHealthList(reports, rows)).decode()))
    return 1 if any(health.level == "error" for report in reports for health in report.checks or ()) else 0


def _show_report(report: PluginHealth) -> None:
    if not report.checks:
        if report.state in OFF:
            why = f"it is {report.state}"
        else:
            why = "it has no health check" if report.checks is None else "no check said anything"
        show(f"{report.name}: nothing to report, {why}")
        return
    show(report.name)
    for health in report.checks:
        show(f"  {health.level:<6} {one_line(health.text)}")
        for advice in health.advice:
            show(f"  {'':<6} {one_line(advice)}")
