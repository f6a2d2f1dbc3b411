"""MCP servers in a session: they start beside its first request, and their tools join the others between two requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import msgspec

from cru.core.base.config.layers import Settings
from cru.core.base.values.mcp_names import PREFIX, note_owner, server_prefix
from cru.core.compose.start import Start, user_home
from cru.core.events.payloads import McpAttached, ToolDiscovered
from cru.core.events.stream import Notice, Published, StateChanged
from cru.core.tools.web import sensitive_reason
from cru.core.turn.parts import Parts
from cru.core.turn.turn import LegState
from cru.features.mcp import McpSettings
from cru.features.mcp.configured import ConfiguredServers, find_configured
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.listing import ServerState
from cru.features.mcp.listing_cache import ListingCache
from cru.features.mcp.place import ServerPlace
from cru.features.mcp.pool import ServerPool
from cru.features.mcp.ports import ServerRequests
from cru.features.mcp.prompts import add_prompts
from cru.features.mcp.search_tool import SearchTool
from cru.features.mcp.server_requests import SessionRequests
from cru.features.mcp.tools import OWNER, McpTool, make_tools

AFTER_REQUEST = 0.05
"""Seconds after the first request began: it is on its way then, and nothing here slows it down."""
WITHOUT_REQUEST = 1.0
"""Seconds after which servers start where nobody asks the model anything."""
MOST_SHOWN = 100
"""Tools of servers that are offered at once; providers take 128 in all."""
BYTES_PER_TOKEN = 4
LOOK_AGAIN = -1
"""In the place of a size of the window: which tools are shown must be decided anew."""


def find_servers(start: Start, settings: Settings) -> SessionServers:
    """The servers that may join a session: by cru's settings, by other programs' settings that a person has accepted, or by the
    project's, of which a person is told."""
    return SessionServers(start, find_configured(settings, start.home, start.root, user_home(start), start.env))


class SessionServers:
    """The servers that are configured, as a part of a session."""

    readable = ()

    def __init__(self, start: Start, configured: ConfiguredServers) -> None:
        self._start, self._configured = start, configured

    def secrets(self, env: Mapping[str, str]) -> Iterable[str]:
        return self._configured.secrets(env)

    def join(self, parts: Parts) -> None:
        stream, start, configured = parts.bus.stream, self._start, self._configured
        for text in configured.problems:
            stream.warn(text)
        project = [d.name for d in configured.waiting if d.origin == str(start.root / ".mcp.json")]
        if project:
            stream.warn(
                f"MCP servers of this project's .mcp.json wait for you: {', '.join(project)} (cru mcp list, cru mcp accept NAME)"
            )
        if not configured.definitions:
            return
        requests = SessionRequests(parts, start.home)
        session = McpSession(parts, start, configured.definitions, configured.settings, requests)
        parts.services.features["mcp"] = session.pool
        lifecycle = parts.services.lifecycle
        lifecycle.opening.insert(0, session.open)
        lifecycle.closing.append(session.close)
        lifecycle.before_round.append(session.before_round)
        lifecycle.missing.append(session.missing)


class McpSession:
    """The servers of one session."""

    def __init__(
        self,
        parts: Parts,
        start: Start,
        definitions: Iterable[ServerDefinition],
        settings: McpSettings,
        requests: ServerRequests,
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._cache = ListingCache(start.home)
        place = ServerPlace(
            start.root, start.home, start.env, parts.place.env, self._why_not, sensitive_reason, parts.place.secrets.names,
            parts.services.sandbox.confine_project, parts.bus.stream.warn,
        )  # fmt: skip
        self.pool = ServerPool(definitions, place, requests, self._note)
        self._changed: set[str] = set()
        self._announced: dict[str, set[str]] = {}
        self._warned: set[str] = set()
        self._shown: set[str] = set()
        self._is_searched = False
        self._window = LOOK_AGAIN
        self._timer: asyncio.TimerHandle | None = None
        enabled = [s.name for s in self.pool.servers if s.definition.server.enabled]
        self._search = SearchTool(enabled, self._find_all, self._show)
        self._search.hidden = True

    async def open(self, _: Parts) -> None:
        """What is known from earlier is offered at once; servers start when the first request is on its way."""
        for server in self.pool.servers:
            if server.definition.server.enabled:
                server.facts.tools = tuple(
                    tool for tool in self._cache.load(server.definition).tools if server.allows(tool.name)
                )
                self._update(server)
        self._parts.tools.update_source(self._search.source, [self._search])
        add_prompts(self._parts, self.pool)
        self._parts.bus.stream.subscribe(self._hear, StateChanged)
        self._start_in(WITHOUT_REQUEST)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.pool.close()

    async def before_round(self, window: int) -> None:
        """What has come since the last request joins the other tools."""
        names, self._changed = sorted(self._changed), set()
        for name in names:
            self._update(self.pool.find(name))
        if window != self._window:
            self._window = window
            self._choose_shown(window)
        for name in names:
            await self._announce(self.pool.find(name))

    async def missing(self, name: str) -> None:
        """A tool is wanted that is not there: its server may be starting."""
        if not name.startswith(PREFIX):
            return
        servers = [server for server in self.pool.servers if name.startswith(server_prefix(server.name))]
        for server in servers:
            if server.facts.state is ServerState.IDLE or server.is_starting:
                await server.wait_settled()
            self._update(server)

    def start(self) -> None:
        """Start the servers now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.pool.start()

    def _hear(self, item: Published[StateChanged]) -> None:
        if self._timer is not None and item.payload.new == LegState.CALLING.value:
            self._start_in(AFTER_REQUEST)

    def _start_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.start)

    def _why_not(self, url: str) -> str:
        verdict = self._parts.gate.judge("fetch", "fetch", url)
        return verdict.reason if verdict.decision == "deny" and verdict.explicit else ""

    def _note(self, server: ServerConnection) -> None:
        """A server has changed: what that means for the model waits for the next request."""
        stream = self._parts.bus.stream
        self._changed.add(server.name)
        facts = server.facts
        if server.is_closed:
            return
        if facts.state is ServerState.READY:
            self._warned.discard(server.name)
        elif facts.state is not ServerState.FAILED:
            return
        elif server.name not in self._warned:
            self._warned.add(server.name)
            hint = f" ({facts.hint})" if facts.hint else ""
            stream.warn(f"the MCP server {server.name} does not work: {facts.why}{hint}")
        try:
            self._cache.save(server.definition, facts)
        except OSError as error:
            self._warn_once(f"what is known of MCP servers cannot be kept for the next run: {error.strerror}")

    def _update(self, server: ServerConnection) -> None:
        """Put its tools into the session's list, in the places that they have."""
        self._window = LOOK_AGAIN
        tools, problems = make_tools(server)
        for text in problems:
            self._warn_once(text)
        for name, tool in tools.items():
            tool.hidden = self._is_searched and name not in self._shown
        for text in (*self._parts.tools.update_source(f"{OWNER}{server.name}", tools.values()), *server.facts.left_out):
            self._warn_once(f"MCP server {server.name}: {text}")
        for known in self._tools():  # rules about a server are not about one whose tool only wanted the name
            note_owner(known.spec.name, *known.owner)

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._parts.bus.stream.warn(text)

    async def _announce(self, server: ServerConnection) -> None:
        """Tell of tools that were not told of before, once the server is there."""
        if server.facts.state is not ServerState.READY:
            return
        names = {tool.spec.name for tool in self._tools() if tool.source == f"{OWNER}{server.name}"}
        before, bus = self._announced.get(server.name), self._parts.bus
        self._announced[server.name] = names
        if before is None:
            bus.stream.tell(Notice("info", f"MCP server {server.name}: {len(names)} tools"))
            await bus.dispatch(McpAttached(server.name, len(names)))
        for name in sorted(names - (before or set())):
            await bus.dispatch(ToolDiscovered(name, server.name))

    def _tools(self) -> list[McpTool]:
        registry = self._parts.tools
        return [tool for tool in registry.all() if isinstance(tool, McpTool)]

    def _choose_shown(self, window: int) -> None:
        """Beyond the limit, tools are offered once they were searched for. There is no way back: the list would change."""
        tools = self._tools()
        size = sum(len(msgspec.json.encode(tool.spec)) for tool in tools) // BYTES_PER_TOKEN
        limit = window * self._settings.search_percent / 100 if window else 0
        if (limit and size > limit) or len(tools) > MOST_SHOWN:
            self._is_searched = True
        for tool in tools:
            tool.hidden = self._is_searched and tool.spec.name not in self._shown
        waits = any(s.definition.server.enabled and not s.facts.tools and s.can_come for s in self.pool.servers)
        self._search.hidden = self._search.hidden and not (self._is_searched or waits)
        self._parts.tools.refresh()

    async def _find_all(self) -> tuple[list[McpTool], list[str]]:
        self.start()
        await asyncio.gather(*(s.wait_settled() for s in self.pool.servers if s.can_come))
        for server in self.pool.servers:
            self._update(server)
        failed = [s for s in self.pool.servers if s.facts.state is ServerState.FAILED]
        return self._tools(), [f"[the server {s.name} does not work: {s.facts.why}]" for s in failed]

    def _show(self, tools: Iterable[McpTool]) -> None:
        self._shown.update(tool.spec.name for tool in tools)
        self._window = LOOK_AGAIN
