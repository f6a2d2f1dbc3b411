"""Calls that were running when a run was killed: whether they run again when the prompt is resumed (docs/decisions/fleet.md)."""

from __future__ import annotations

from cru.core.base.values.messages import ToolCall
from cru.core.events.stream import Notice
from cru.core.tools.builtin import ToolRegistry as Tools
from cru.core.turn import MayHaveRun, log_writer
from cru.core.turn.parts import Parts

READ_ONLY = ("read",)
"""Kinds of tools that change nothing, so that a second run does no harm."""


def settle_open_calls(parts: Parts) -> tuple[ToolCall, ...]:
    """The calls without a result that are to run again, as `on_interrupted` says; the others get one that tells the model that they may
    have run. Raises MayHaveRun if one must be looked at by a person first."""
    policy = parts.settings.on_interrupted
    again: list[ToolCall] = []
    unsafe: list[ToolCall] = []
    for call in parts.history.open_calls():
        if policy == "retry" or _only_reads(parts.tools, call):
            again.append(call)
        elif policy == "fail":
            unsafe.append(call)
        else:
            log_writer.interrupted(parts, call)
    if unsafe:
        names = ", ".join(dict.fromkeys(call.name for call in unsafe))
        raise MayHaveRun(
            f"the run was killed while it called {names}, which may have done its work (on_interrupted = fail)",
            f"look at what it did, then: cru -C {parts.store.name} --resume (the model is told that it may have run)",
        )
    for call in again:
        text = f"{call.name} runs again: the run was killed before it had a result, and it may have run"
        parts.bus.stream.tell(Notice("info" if _only_reads(parts.tools, call) else "warning", text))
    return tuple(again)


def _only_reads(tools: Tools, call: ToolCall) -> bool:
    tool = tools.find(call.name)
    return tool is not None and tool.kind in READ_ONLY
