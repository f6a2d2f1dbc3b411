"""The list of plugins, as data and as text."""

from __future__ import annotations

import re
from typing import Any

from cru.core.api.callbacks import recent_failures
from cru.core.plugins.loaded_plugin import LoadedPlugin
from cru.core.plugins.manager import Extensions

LINE = re.compile(r"\.\w+:(\d+)")


def plugin_rows(extensions: Extensions) -> list[dict[str, object]]:
    """Every plugin by name: how it is, and all that it registered."""
    return [_plugin_row(extensions, plugin) for plugin in sorted(extensions.plugins, key=lambda plugin: plugin.name)]


def format_row(row: dict[str, Any]) -> list[str]:
    """One plugin as text."""
    version = f" {row['version']}" if row["version"] else ""
    lines = [f"{row['name'] + version:<20} {row['language']:<7} {row['state']:<9} {row['layer']:<8} {row['file']}"]
    lines += [f"  handler:   {format_handler(handler)}" for handler in row["handlers"]]
    for key in ("tools", "commands", "services"):
        if row[key]:
            mark = "/" if key == "commands" else ""
            lines.append(f"  {key + ':':<10} {', '.join(mark + name for name in row[key])}")
    return lines + [f"  {'error:':<10} {_on_one_line(text)}" for text in row["errors"]]


def _on_one_line(text: str) -> str:
    """An error and its hint on one line."""
    return "; ".join(" ".join(line.split()) for line in text.splitlines() if line.strip()).replace(":;", ":")


def format_handler(handler: dict[str, object]) -> str:
    """One of the handlers of a row as text."""
    pattern = f" pattern {handler['pattern']}" if handler["pattern"] else ""
    return f"{handler['event']} priority {handler['priority']}{pattern} {handler['where']}".rstrip()


def _plugin_row(extensions: Extensions, loaded: LoadedPlugin) -> dict[str, object]:
    session, plugin = extensions.session, loaded.discovered
    row: dict[str, Any] = {
        "name": loaded.name, "owner": loaded.name, "version": plugin.manifest.version if plugin.manifest is not None else "",
        "language": plugin.kind, "state": _state_of(loaded), "layer": plugin.layer, "file": str(plugin.files[0]),
        "handlers": [], "tools": [], "commands": [], "services": [],
        "error": loaded.error, "errors": [loaded.error] if loaded.error else [],
    }  # fmt: skip
    if session is None or loaded.plugin is None:
        return row
    parts = session.parts
    handlers = [h for group in parts.bus.registry.by_event.values() for h in group if h.owner == loaded.name]
    row["handlers"] = [
        {"event": h.event, "priority": h.priority, "pattern": h.pattern, "where": h.where}
        for h in sorted(handlers, key=lambda h: (h.event, h.order))
    ]
    tools = [name for name in parts.tools.names() if getattr(parts.tools.find(name), "source", "") == loaded.name]
    row["tools"] = sorted(tools)
    row["commands"] = [command.name for command in parts.services.commands.all() if command.owner == loaded.name]
    services = session.shared.get("services", {}).values()
    row["services"] = sorted(service.name for service in services if service.start.host.plugin.name == loaded.name)
    failures = [f"{f.context}: {f.error}" for f in recent_failures(session) if f.plugin == loaded.name]
    row["errors"] += [*sorted(loaded.plugin.problems, key=line_of), *failures]
    return row


def _state_of(loaded: LoadedPlugin) -> str:
    """What a person reads: one that was loaded and does nothing is not called active."""
    return "no effect" if loaded.is_active and loaded.has_no_effect else loaded.state


def line_of(text: str) -> int:
    """The line of a file that a text names, 0 if it names none."""
    match = LINE.search(text)
    return int(match[1]) if match else 0
