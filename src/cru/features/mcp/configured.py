"""All servers that are configured somewhere: cru's own, and those of other programs that a person has accepted. Own ones win."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from cru.core.base.config.layers import PROJECT, Settings
from cru.core.base.config.positions import join_key
from cru.core.base.values.mcp_names import server_prefix
from cru.features.mcp import McpServer, McpSettings, McpTable
from cru.features.mcp.accepted import AcceptedServers
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.foreign import find_servers, foreign_files
from cru.features.mcp.references import find_secrets


class ConfiguredServers(Struct):
    """definitions: those that are used
    waiting: those that nobody has judged yet
    rejected: those that a person does not want
    hidden: those whose name is taken by another one
    problems: what cannot be read or used
    """

    settings: McpSettings
    definitions: list[ServerDefinition]
    waiting: list[ServerDefinition]
    rejected: list[ServerDefinition]
    hidden: list[ServerDefinition]
    problems: list[str]

    def secrets(self, env: Mapping[str, str]) -> set[str]:
        """What must not be shown of those that are used."""
        return find_secrets((definition.server for definition in self.definitions), env)


def _own_definition(name: str, server: McpServer, settings: Settings) -> ServerDefinition:
    key = join_key(("mcp", "servers", name))
    return ServerDefinition(name, server, settings.origin(key), of_project=PROJECT in settings.layers(key))


def find_configured(
    settings: Settings, home: Path, root: Path, user_home: Path, env: Mapping[str, str]
) -> ConfiguredServers:
    """`settings`: with or without a table `mcp`."""
    chosen = settings.of(McpTable).mcp if settings.has(McpTable) else McpSettings()
    own = [_own_definition(name, server, settings) for name, server in chosen.servers.items()]
    foreign = find_servers(foreign_files(root, user_home, env))
    accepted = AcceptedServers(home)
    servers = ConfiguredServers(
        chosen, own, [], [], [], foreign.problems + ([accepted.problem] if accepted.problem else [])
    )
    taken = {server_prefix(definition.name) for definition in own}  # for rules `a.b` and `a_b` are one name
    for definition in foreign.definitions.values():
        decision = accepted.decision(definition)
        if server_prefix(definition.name) in taken:
            servers.hidden.append(definition)
        elif decision == "accepted":
            servers.definitions.append(definition)
        else:
            (servers.rejected if decision else servers.waiting).append(definition)
    return servers
