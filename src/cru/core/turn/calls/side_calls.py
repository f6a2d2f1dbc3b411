"""Calls beside the conversation: a script's (`cru.tools.call`) and those by hand (`cru -P`). They go the road of all calls; their results
are whole, and neither logged nor sent to the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from msgspec.structs import replace

from cru.core.base.values.messages import Entry, ToolCall
from cru.core.conversations import ContextHeld, StoreUnwritable
from cru.core.conversations.entries import new_id
from cru.core.tools.protocol import Tool
from cru.core.turn.calls import tool_call
from cru.core.turn.calls.tool_call import FinishedCall
from cru.core.turn.history import History
from cru.core.turn.parts import Parts

BY_HAND = "command line"
_NO_LIMIT = 1 << 60

# Kinds of tools that leave the context alone; the others may write into it (notes), or run code that may.
_HARMLESS = frozenset({"read", "write", "shell", "fetch", "message"})


async def call(
    parts: Parts,
    name: str,
    arguments: str,
    origin: str,
    hold: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    call_id: str = "",
    prompt_file: dict[str, str] | None = None,
) -> FinishedCall:
    """Decide and run one call; `arguments` is JSON text; what `hold` makes is entered for the run. Raises nothing that a tool or a handler
    causes."""
    beside = _beside(parts)
    asked = ToolCall(call_id or f"{origin}_{new_id()[:8]}", name, arguments)
    decided = await tool_call.decide(beside, asked, origin, prompt_file)
    async with hold():
        return await tool_call.run(beside, decided)


async def call_by_hand(parts: Parts, name: str, arguments: str, origin: str = "user") -> FinishedCall:
    """A call from the command line, in the trace as a turn without requests."""
    recorder, run = parts.recorder, parts.bus.origin.run_id
    recorder.begin()
    recorder.leg(f"{run}-{new_id()[:8]}", "", BY_HAND, run)
    parts.bus.counts = {}
    cause, error = "interrupted", ""
    try:
        done = await call(parts, name, arguments, origin)
        cause, error = ("error", done.content) if done.is_error else ("done", "")
        return done
    finally:
        recorder.end("", cause, parts.bus.counts, error.partition("\n")[0])


@contextmanager
def hold_context(lock: Callable[[], AbstractContextManager[None]], tool: Tool | None) -> Iterator[None]:
    """Hold the context for a call by hand, so that nobody renames or deletes it meanwhile. While somebody else holds it, or where
    nothing can be written, a call that leaves the context alone runs beside that. Raises ContextHeld, StoreUnwritable."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock())
        except (ContextHeld, StoreUnwritable):
            if _writes(tool):
                raise
        yield


def _writes(tool: Tool | None) -> bool:
    """Whether a call may write into the context. A program has no way to but a `cru` of its own."""
    return tool is not None and tool.kind not in _HARMLESS and not getattr(tool, "outside", False)


def _beside(parts: Parts) -> Parts:
    """The same session, where results are neither logged nor sent to the model, nor cut short."""
    unlimited = replace(parts.tool_services.settings, tool_output_cache_threshold=_NO_LIMIT)
    services = replace(parts.tool_services, settings=unlimited)
    return replace(parts, store=_Unlogged(parts.store), history=History(), tool_services=services)


class _Unlogged:
    """A context's store that takes no entries."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def append(self, *entries: Entry) -> None:
        pass
