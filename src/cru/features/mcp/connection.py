"""One server: its state, its connection, and what it offers. A task of its own holds the connection and takes it up again if it is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from cru.core.base.files.glob import matches_text, parse_glob
from cru.features.mcp import CallTimeout, RequestFailed, ServerUnavailable, SessionForgotten
from cru.features.mcp.callbacks import Callbacks
from cru.features.mcp.content import RemoteResult, SaveFile, contents_text, join_blocks, read_result
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.errors import ConnectionFailure, describe_failure, is_lost, translate_call_error
from cru.features.mcp.limits import CallClocks
from cru.features.mcp.listing import RemotePrompt, RemoteResource, ServerFacts, ServerState
from cru.features.mcp.place import ServerPlace
from cru.features.mcp.ports import ServerRequests
from cru.features.mcp.requests import call_as_task, hear_changes, list_prompts, list_resources, list_tools
from cru.features.mcp.sdk import ATTEMPT, Attempt, load_sdk
from cru.features.mcp.transport import ServerTransport, make_transport

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp.shared.dispatcher import ProgressFnT

T = TypeVar("T")
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each attempt to connect again; after the last one somebody must ask for it."""
GENTLE_SECONDS = 1.0
"""For other requests to come to an end over a connection that is given up."""
RELIST_PAUSE = 0.5
"""Seconds between two listings of tools, however often a server says that they have changed."""
CHECK_SECONDS = 5.0
"""Seconds in which a server must answer something short after a call of it has timed out."""


class ServerConnection:
    """`changed` hears of each new state and each new list of tools; `auth` logs in, if not what was kept of an earlier login."""

    def __init__(
        self,
        definition: ServerDefinition,
        place: ServerPlace,
        requests: ServerRequests,
        changed: Callable[[ServerConnection], None],
        auth: Any = None,
    ) -> None:
        self.definition = definition
        self.facts = ServerFacts(ServerState.IDLE if definition.server.enabled else ServerState.OFF)
        self._place = place
        self._requests = requests
        self._changed = changed
        self._auth = auth
        self._client: Client | None = None
        self._old: Client | None = None
        """A connection that is to end."""
        self._silent: Client | None = None
        """The connection on which the last call timed out, until the server answers again."""
        self._asking = 0
        self._transport: ServerTransport | None = None
        self._task: asyncio.Task[None] | None = None
        self._clocks = CallClocks()
        self._settled = asyncio.Event()
        self._stop = asyncio.Event()
        self._lost = asyncio.Event()
        self._relist = asyncio.Event()
        self._breach: RequestFailed | None = None
        """What the server did that the connection is ended for."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_starting(self) -> bool:
        """Whether it may still become ready by itself."""
        return self.facts.state in (ServerState.STARTING, ServerState.LOST)

    @property
    def is_closed(self) -> bool:
        return self._stop.is_set()

    @property
    def can_come(self) -> bool:
        """Whether it may still become ready without anybody doing something about it."""
        return self.is_starting or self.facts.state is ServerState.IDLE

    def start(self) -> None:
        """Connect in the background; nothing happens if that is done or switched off."""
        if self.facts.state is ServerState.OFF or self._stop.is_set():
            return
        if self._task is None or self._task.done():
            self._settled.clear()
            self._set(ServerState.STARTING)
            self._task = asyncio.create_task(self._run(), name=f"mcp {self.name}")

    async def close(self) -> None:
        """End the connection and what it started."""
        self._stop.set()
        self._lost.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def restart(self) -> None:
        """End the connection, if there is one, and make another; returns when it is ready or has failed."""
        if self._task is not None and not self._task.done():
            self._stop.set()
            self._lost.set()
            await asyncio.wait([self._task])
            self._stop.clear()
        self._task = None
        await self.wait_settled()

    async def wait_settled(self, seconds: float | None = None) -> None:
        """Until it is ready or has failed, at most so long."""
        self.start()
        if self._task is None:
            return
        try:
            await asyncio.wait_for(self._settled.wait(), seconds)
        except TimeoutError:
            pass

    async def ready(self) -> Client:
        """The connection, once there is one. Raises ServerUnavailable that says why there is none."""
        await self.wait_settled()
        if self._client is not None and self.facts.state is ServerState.READY:
            return self._client
        if self.facts.state is ServerState.OFF:
            raise ServerUnavailable(
                f"the MCP server {self.name} is switched off", f"mcp.servers.{self.name}.enabled = true"
            )
        raise ServerUnavailable(f"the MCP server {self.name} is not there: {self.facts.why}", self.facts.hint)

    async def ask(self, work: Callable[[Client], Awaitable[T]], what: str) -> T:
        """Have it do something. Raises McpError; cancelled, the server is told. Once more if the server had forgotten the session: it
        has not looked at the request then."""
        try:
            return await self._ask_once(work, what)
        except SessionForgotten:
            return await self._ask_once(work, what)

    async def _ask_once(self, work: Callable[[Client], Awaitable[T]], what: str) -> T:
        client, transport = await self.ready(), self._transport
        attempt = Attempt()
        token = ATTEMPT.set(attempt)
        self._asking += 1
        try:
            if self._silent is client:
                await self._check_alive(client)
            return await work(client)
        except Exception as error:
            if attempt.is_forgotten:
                self._lose(client, gently=True)
                raise SessionForgotten(f"the MCP server {self.name} forgets its sessions at once") from error
            failure = await translate_call_error(error, self.name, what, transport)
            if is_lost(error):
                self._lose(client)
            raise failure from error
        finally:
            self._asking -= 1
            ATTEMPT.reset(token)

    async def _check_alive(self, client: Client) -> None:
        """Ask for something short, so that a server that is stopped does not cost the whole time limit of each call. Raises CallTimeout."""
        from mcp.shared.exceptions import MCPError

        try:
            async with asyncio.timeout(min(CHECK_SECONDS, self.definition.server.call_timeout / 2)):
                await client.list_tools()  # newer versions of the protocol have no ping
        except TimeoutError as error:
            text = f"{self.name} still does not answer since a call of it timed out; this call was not sent"
            raise CallTimeout(text) from error
        except MCPError:
            pass  # an error is an answer, too; if the connection is gone, the call itself says so
        self._silent = None

    def _lose(self, client: Client, *, gently: bool = False) -> None:
        """Nobody uses this connection any more: who asks waits for the next one. gently: what is being asked may come to its end."""
        if self._client is client:
            self._client = None
            self._settled.clear()
            self._old = client
        if self._old is not client:
            return
        if gently and self._asking > 1:
            asyncio.get_running_loop().call_later(GENTLE_SECONDS, self._lose, client)
        else:
            self._lost.set()

    async def call(
        self,
        tool: str,
        args: dict[str, Any],
        save: SaveFile,
        progress: ProgressFnT,
    ) -> RemoteResult:
        """What came of a call. Raises McpError."""

        async def work(client: Client) -> Any:
            if any(known.name == tool and known.as_task for known in self.facts.tools):
                return await call_as_task(client, tool, args)
            return await client.call_tool(tool, args, progress_callback=progress)

        return read_result(await self._timed(self.ask(work, f"the tool {tool}")), save)

    async def read(self, uri: str, save: SaveFile) -> str:
        """A resource as text. Raises McpError."""

        async def work(client: Client) -> Any:
            return await client.read_resource(uri)

        contents = (await self._timed(self.ask(work, f"the resource {uri}"))).contents
        return "\n".join(contents_text(content, save) for content in contents)

    async def prompt(self, name: str, args: dict[str, str], save: SaveFile) -> str:
        """The messages of a prompt as one text. Raises McpError."""

        async def work(client: Client) -> Any:
            return await client.get_prompt(name, args)

        messages = (await self._timed(self.ask(work, f"the prompt {name}"))).messages
        texts = [(message.role, join_blocks([message.content], save)) for message in messages]
        if all(role == "user" for role, _ in texts):
            return "\n\n".join(text for _, text in texts)
        return "\n\n".join(f"{role}: {text}" for role, text in texts)

    async def _timed(self, work: Awaitable[T]) -> T:
        seconds = self.definition.server.call_timeout
        try:
            async with self._clocks.limit(seconds):
                return await work
        except TimeoutError as error:
            self._silent = self._client
            raise CallTimeout(f"{self.name} did not answer within {seconds:g} s") from error

    async def resources(self) -> tuple[RemoteResource, ...]:
        return await self._timed(self.ask(list_resources, "the list of resources"))

    async def prompts(self) -> tuple[RemotePrompt, ...]:
        return await self._timed(self.ask(list_prompts, "the list of prompts"))

    def allows(self, tool: str) -> bool:
        """Whether settings let a tool through, by the server's own name of it."""
        server = self.definition.server
        return _fits(server.allow_tools, tool) and not _fits(server.deny_tools, tool)

    def _set(self, state: ServerState, why: str = "", hint: str = "") -> None:
        self.facts.state, self.facts.why, self.facts.hint = state, why, hint
        if state in (ServerState.READY, ServerState.FAILED):
            self._settled.set()
        self._changed(self)

    async def _run(self) -> None:
        """Connect, serve, and again after a pause if that breaks. A server that never was there is tried again when somebody wants it."""
        pauses = iter(PAUSES)
        while not self._stop.is_set():
            started = self.facts.starts
            failure = await self._serve()
            if self._stop.is_set():
                break
            if self.facts.starts > started:
                pauses = iter(PAUSES)
            pause = next(pauses, None) if failure.retries and self.facts.starts else None
            if pause is None:
                self._set(ServerState.FAILED, failure.why, failure.hint)
                return
            self._settled.clear()
            self._set(ServerState.LOST, failure.why, failure.hint)
            await _wait_for(self._stop, pause)
        self._set(ServerState.FAILED, "it is closed")

    async def _serve(self) -> ConnectionFailure:
        """One connection from its beginning to its end; why it ended."""
        self._lost.clear()
        self._breach = None
        try:
            self.definition.check()
            await load_sdk()
            begin = time.monotonic()
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.definition.server.start_timeout):
                    client = await self._connect(stack)
                    await self._list(client)
                self._client = client
                self.facts.seconds = time.monotonic() - begin
                self.facts.starts += 1
                self._set(ServerState.READY)
                await self._stay(client)
            failure: Exception = self._breach or ServerUnavailable("the connection was lost")
        except Exception as error:  # noqa: BLE001  the boundary around the SDK and a stranger's server: told as the server's state
            failure = error
        finally:
            self._client = self._old = None
        return describe_failure(failure, self.definition, self._transport)

    async def _connect(self, stack: AsyncExitStack) -> Client:
        from mcp.client.client import Client

        callbacks = Callbacks(self.name, self._requests, self._clocks.stopped)
        self._transport = make_transport(self.definition, self._place, self._auth)
        client = Client(
            self._transport.streams, cache=None, list_roots_callback=callbacks.list_roots, elicitation_callback=callbacks.elicit,
            sampling_callback=callbacks.sample, message_handler=self._hear, client_info=_client_info(),
        )  # fmt: skip
        await stack.enter_async_context(client)
        self.facts.version = client.protocol_version
        info = client.server_info
        self.facts.title = "" if info is None else f"{info.title or info.name} {info.version}".strip()[:200]
        return client

    async def _list(self, client: Client) -> None:
        assert self._transport is not None
        self._transport.problems.clear()
        tools, problems = await list_tools(client)
        self.facts.tools = tuple(tool for tool in tools if self.allows(tool.name))
        self.facts.left_out = (*self._transport.problems, *problems)
        try:
            self.facts.prompts = await list_prompts(client)
        except Exception as error:  # noqa: BLE001  a server whose prompts cannot be listed has tools all the same
            failure = await translate_call_error(error, self.name, "the list of prompts", None)
            self.facts.left_out += (failure.message,)

    async def _stay(self, client: Client) -> None:
        """As long as the connection holds; lists of tools that have changed are read again."""
        assert self._transport is not None
        lost = [asyncio.ensure_future(event.wait()) for event in (self._lost, self._transport.ended)]
        changes = asyncio.ensure_future(self._relist_on_change(client))
        listening = asyncio.ensure_future(hear_changes(client, self._relist))
        tasks = [*lost, changes, listening]
        try:
            await asyncio.wait([*lost, changes], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _relist_on_change(self, client: Client) -> None:
        while True:
            await self._relist.wait()
            await asyncio.sleep(RELIST_PAUSE)
            self._relist.clear()
            await self._list(client)
            self._changed(self)

    async def _hear(self, message: object) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._relist.set()
        elif isinstance(message, RequestFailed):
            self._breach = message
            self._lost.set()


def _client_info() -> Any:
    from mcp_types import Implementation

    return Implementation(name="cru", version=version("cru"))


def _fits(globs: tuple[str, ...], name: str) -> bool:
    return any(matches_text(parse_glob(glob), name) for glob in globs)


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        pass
