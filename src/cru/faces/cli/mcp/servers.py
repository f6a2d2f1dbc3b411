"""What the commands about MCP servers know: all that is configured, and what is known of their last start."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from cru.core.base.config.layers import Layer, Settings
from cru.core.compose import children_env, secret_variables
from cru.core.compose.start import Start, load_settings, user_home
from cru.core.guard.rules import PermissionSettings, layer_rules
from cru.core.guard.rules.gate import Gate
from cru.core.guard.rules.grants import Grants
from cru.core.tools.web import sensitive_reason
from cru.faces.cli.console import complain
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import start_of
from cru.features.mcp import UnknownServer
from cru.features.mcp.configured import ConfiguredServers, find_configured
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.listing_cache import ListingCache
from cru.features.mcp.place import ServerPlace


class KnownServers(Struct):
    start: Start
    settings: Settings
    layers: list[Layer]
    configured: ConfiguredServers
    cache: ListingCache

    def find(self, name: str) -> ServerDefinition:
        """One of those that are used. Raises UnknownServer."""
        self._check_judged(name)
        from cru.features.mcp.pool import ServerPool
        from cru.features.mcp.ports import NoRequests

        return ServerPool(self.configured.definitions, self.place(), NoRequests(self.start.root)).find(name).definition

    def _check_judged(self, name: str) -> None:
        """Raises UnknownServer for one of another program's settings that is not used, with the next step."""
        if name in {definition.name for definition in self.configured.definitions}:
            return
        for judgement, definitions in (
            ("not accepted", self.configured.waiting),
            ("rejected", self.configured.rejected),
        ):
            for definition in definitions:
                if definition.name == name:
                    raise UnknownServer(
                        f"{name} ({definition.owner}, {definition.origin}) is {judgement}", f"cru mcp accept {name}"
                    )

    def place(self) -> ServerPlace:
        start = self.start
        chosen = self.settings.of(PermissionSettings)
        grants = Grants(start.home / "grants.json", start.root)
        gate = Gate(chosen, layer_rules(self.layers), start.root, start.home, grants, user_home=user_home(start))

        def why_not(url: str) -> str:
            verdict = gate.judge("fetch", "fetch", url)
            return verdict.reason if verdict.decision == "deny" and verdict.explicit else ""

        children, hidden = children_env(start, self.settings), secret_variables(start, self.settings, complain).names
        return ServerPlace(start.root, start.home, start.env, children, why_not, sensitive_reason, hidden)

    def settings_file(self, scope: str) -> Path:
        """That of the user, or of the project."""
        return self.start.root / ".cru" / "config.toml" if scope == "project" else self.start.home / "config.toml"


def load_servers(parsed: Parsed) -> KnownServers:
    """Raises ConfigError. What is wrong with settings goes to standard error."""
    start = start_of(parsed, "default")
    settings, layers, notices = load_settings(start)
    for text in notices:
        complain(text)
    configured = find_configured(settings, start.home, start.root, user_home(start), start.env)
    return KnownServers(start, settings, layers, configured, ListingCache(start.home))
