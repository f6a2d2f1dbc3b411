"""The list of plugins, as data and as text."""

from __future__ import annotations

import re
from typing import Any

from cru.extensions.loaded_plugin import LoadedPlugin
from cru.extensions.manager import Extensions
from cru.namespace.callbacks import recent_failures

LINE = re.compile(r"\.\w+:(\d+)")


def plugin_rows(extensions: Extensions) -> list[dict[str, Any]]:
    """Every plugin by name: how it is, and all that it registered."""
    return [_row(extensions, one) for one in sorted(extensions.plugins, key=lambda one: one.name)]


def format_row(row: dict[str, Any]) -> list[str]:
    """One plugin as text."""
    version = f" {row['version']}" if row["version"] else ""
    said = [f"{row['name'] + version:<20} {row['language']:<7} {row['state']:<9} {row['layer']:<8} {row['file']}"]
    said += [f"  handler:   {_handler(one)}" for one in row["handlers"]]
    for key in ("tools", "commands", "services"):
        if row[key]:
            mark = "/" if key == "commands" else ""
            said.append(f"  {key + ':':<10} {', '.join(mark + name for name in row[key])}")
    return said + [f"  {'error:':<10} {_sentence(text)}" for text in row["errors"]]


def _sentence(text: str) -> str:
    """An error and its hint on one line."""
    return "; ".join(" ".join(line.split()) for line in text.splitlines() if line.strip()).replace(":;", ":")


def _handler(one: dict[str, Any]) -> str:
    pattern = f" pattern {one['pattern']}" if one["pattern"] else ""
    return f"{one['event']} priority {one['priority']}{pattern} {one['where']}".rstrip()


def _row(extensions: Extensions, one: LoadedPlugin) -> dict[str, Any]:
    session, found = extensions.session, one.found
    row: dict[str, Any] = {
        "name": one.name, "owner": one.name, "version": found.manifest.version if found.manifest is not None else "",
        "language": found.kind, "state": one.state, "layer": found.layer, "file": str(found.files[0]),
        "handlers": [], "tools": [], "commands": [], "services": [], "error": one.error, "errors": [one.error] if one.error else [],
    }  # fmt: skip
    if session is None or one.plugin is None:
        return row
    parts = session.parts
    handlers = [h for listed in parts.bus.registry.by_event.values() for h in listed if h.owner == one.name]
    row["handlers"] = [
        {"event": h.event, "priority": h.priority, "pattern": h.pattern, "where": h.where}
        for h in sorted(handlers, key=lambda h: (h.event, h.order))
    ]
    tools = [name for name in parts.tools.names() if getattr(parts.tools.find(name), "source", "") == one.name]
    row["tools"] = sorted(tools)
    row["commands"] = [command.name for command in parts.commands.all() if command.owner == one.name]
    services = session.shared.get("services", {}).values()
    row["services"] = sorted(service.name for service in services if service.start.host.plugin.name == one.name)
    failures = [f"{f.context}: {f.error}" for f in recent_failures(session) if f.plugin == one.name]
    row["errors"] += [*sorted(one.plugin.problems, key=line_of), *failures]
    return row


def line_of(text: str) -> int:
    """The line of a file that a text names, 0 if it names none."""
    found = LINE.search(text)
    return int(found[1]) if found else 0
