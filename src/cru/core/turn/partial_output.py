"""The output of calls that were interrupted: kept for the model, and shown."""

from __future__ import annotations

from cru.core.base.values.interruptions import CallInterrupted
from cru.core.base.values.messages import ToolCall
from cru.core.tools.output import is_too_long, save_output
from cru.core.tools.protocol import ToolResult
from cru.core.turn.parts import Parts

MARK = "[interrupted; above is what came until then, and it may have done more]"


def describe_partial(parts: Parts, call: ToolCall, output: str) -> str:
    """Return the result of a call that was interrupted, as the model reads it, and tell faces of it. No handler hears of it: it has no
    time to answer."""
    if parts.place.secrets.hidden:
        output = parts.place.secrets.hide(ToolResult(output)).content
    output = output.removesuffix("\n")
    parts.bus.stream.tell(CallInterrupted(call.name, call.id, output))
    text = f"{output}\n{MARK}"
    if not is_too_long(text, parts.tool_services.settings):
        return text
    stub, _ = save_output(parts.store.folder, call.id, call.name, text, parts.tool_services.settings, None)
    return f"{stub}\n{MARK}"
