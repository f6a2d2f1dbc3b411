"""The session whose tools are served, and the sessions in which prompts of clients are worked on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

from anyio import CancelScope
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.compose import SessionBundle, Start, build
from cru.core.conversations.home import Home
from cru.core.events.bus import Bus
from cru.core.events.stream import Notice, Published
from cru.core.guard.rules.modes import stricter
from cru.core.tools.protocol import Tool
from cru.core.turn.background import run_to_end
from cru.core.turn.calls import side_calls
from cru.core.turn.calls.tool_call import FinishedCall
from cru.core.turn.turn import LegResult
from cru.faces.mcp_server.asker import ClientAsker
from cru.faces.mcp_server.confinement import Confinement
from cru.faces.mcp_server.session_tools import SessionTools

VAULT = ("vault_search", "vault_read", "vault_write", "vault_links")
"""These are there only if a vault is configured."""
SERVED = ("read", "ls", "glob", "grep", "write", "edit", "list_contexts", "read_context", "send_prompt", *VAULT)
"""The tools that are served unless others are named."""
Tell = Callable[[str], None]
T = TypeVar("T")


class CallResult(Struct, frozen=True):
    """What a client gets."""

    text: str
    is_error: bool


class ServedSession:
    """The tools of a session, for clients."""

    def __init__(self, bundle: SessionBundle, globs: Sequence[str], tell: Tell) -> None:
        self._session = bundle.session
        self._parts = bundle.session.parts
        self._globs = tuple(globs) or SERVED
        self._tell = tell
        self._alone = asyncio.Lock()
        self._refreshing = asyncio.Lock()
        self._running = 0

    @property
    def has_vault(self) -> bool:
        return "vault" in self._parts.services.features

    def tools(self) -> list[Tool]:
        """Those that are served, in the order of their registration."""
        tools = (self._parts.tools.find(name) for name in self._parts.tools.names())
        return [tool for tool in tools if tool is not None and self._is_served(tool)]

    def _is_served(self, tool: Tool) -> bool:
        return not getattr(tool, "hidden", False) and any(fnmatchcase(tool.spec.name, glob) for glob in self._globs)

    async def call(self, name: str, arguments: str) -> CallResult:
        """One call, judged by hooks, rules, mode and person as a model's is; `arguments` is JSON text."""
        return await run_apart(self._call(name, arguments))

    async def _call(self, name: str, arguments: str) -> CallResult:
        try:
            await self._refresh()
            tool = self._parts.tools.find(name)
            if tool is None or not self._is_served(tool):
                return CallResult(self._no_such_tool(name), True)
            outcome = await self._run(tool, arguments)
        except CruError as error:  # another run of cru has the context, or a plugin that must be there is not
            self._tell(f"{name}: {error.message}")
            return CallResult(str(error), True)
        self._tell(f"{name}: {'failed' if outcome.is_error else 'done'}")
        return CallResult(outcome.content, outcome.is_error)

    async def _run(self, tool: Tool, arguments: str) -> FinishedCall:
        self._running += 1
        try:
            return await side_calls.call(self._parts, tool.spec.name, arguments, "model", partial(self._hold, tool))
        finally:
            self._running -= 1

    async def _refresh(self) -> None:
        """Hear of hooks and plugins that were changed, as before a prompt; not while a call is on its way through them."""
        async with self._refreshing:
            if not self._running:
                for refresh in self._parts.services.lifecycle.reloading:
                    await refresh()

    @asynccontextmanager
    async def _hold(self, tool: Tool) -> AsyncIterator[None]:
        """For the run of a call; whoever is asked about one meanwhile keeps nobody waiting. Raises CruError."""
        async with AsyncExitStack() as stack:
            if not tool.parallel:
                await stack.enter_async_context(self._alone)
                stack.enter_context(side_calls.hold_context(self._session.locked, tool))
            yield

    def _no_such_tool(self, name: str) -> str:
        if name in VAULT and not self.has_vault:
            return f"there is no tool {name!r} here: no vault is configured (cru vault init FOLDER)"
        known = ", ".join(tool.spec.name for tool in self.tools())
        return f"there is no tool {name!r} here; there are: {known}"


@asynccontextmanager
async def serve_session(
    start: Start, globs: Sequence[str], tell: Tell, *, one_client: bool
) -> AsyncIterator[ServedSession]:
    """Open the session for the block. Raises CruError."""
    asker, confinement = ClientAsker(one_client), Confinement(start.root)
    watch = _watch(tell)

    async def run_turn(context: str, prompt: str) -> LegResult:
        mode = bundle.session.parts.gate.mode
        return await _run_turn(replace(start, context=context), asker, prompt, mode, watch)

    home = Home(start.home, project=start.project)
    bundle = build(
        start,
        extensions=[confinement],
        sources=[SessionTools(home, run_turn)],
        asker=asker,
        command="cru mcp serve",
        watch=watch,
    )
    confinement.parts = bundle.session.parts
    async with _closing(bundle):
        await bundle.session.open()
        yield ServedSession(bundle, globs, tell)


async def _run_turn(
    start: Start, asker: ClientAsker, prompt: str, mode: str, watch: Callable[[Bus], None]
) -> LegResult:
    """A turn in a session of its own, in the stricter of this mode and the context's own. A client that goes ends it, with its log
    complete."""
    bundle = build(start, asker=asker, command=f"cru mcp serve: {start.context}", watch=watch)
    gate = bundle.session.parts.gate
    gate.set_mode(stricter(gate.mode, mode))

    async def work() -> LegResult:
        async with _closing(bundle):
            bundle.session.submit(prompt, literal=True)
            return await run_to_end(bundle.session) or LegResult("done")

    turn = asyncio.ensure_future(work())
    try:
        return await asyncio.shield(turn)
    except asyncio.CancelledError:
        bundle.session.end()
        await asyncio.wait([turn])
        raise


async def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Do it in a task that is cancelled once when this one is: the SDK cancels again and again, whatever has to be ended in order."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with CancelScope(shield=True):
            await asyncio.wait([task])
        raise


@asynccontextmanager
async def _closing(bundle: SessionBundle) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        stack.push_async_callback(bundle.close)
        stack.push_async_callback(bundle.session.close)
        yield


def _watch(tell: Tell) -> Callable[[Bus], None]:
    def say(item: Published[Notice]) -> None:
        if item.payload.level != "info":
            tell(item.payload.text)

    def watch(bus: Bus) -> None:
        bus.stream.subscribe(say, Notice)

    return watch
