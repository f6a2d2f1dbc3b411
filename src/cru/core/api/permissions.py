"""`cru.permissions`: code that answers questions before a person has to. `cru.require_isolation`: denies what needs a container."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from cru.core.api import modes
from cru.core.api.answers import parse
from cru.core.api.arguments import function, options, table, text, whole
from cru.core.api.callbacks import bind_callback
from cru.core.api.host import BadArgument, host
from cru.core.events.answers import PASS, Answer, cancel
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event

_SAFE = ("read", "memory", "flow")


def on_request(work: Callable[[dict[str, object]], object], opts: dict[str, object] | None = None) -> int:
    """permissions.on_request(fn(req), {pattern, priority=100}?) -> id. req is {tool_name, args, file_path, mode, is_safe}; fn returns
    {allow = true}, {deny = true, reason?} or nil. Asked only where a rule or the mode would ask a person; a refusal beats every allow,
    and an error, or a verdict that cannot be read, refuses. `pattern` is a glob of tool names.

    Example: cru.permissions.on_request(function(req) return {allow=true} end) > 0 --> true
    """
    where = "cru.permissions.on_request"
    judge = bind_callback(function(where, "fn", work))
    fields = options(where, opts, ("pattern", "priority"))
    listening = {
        "pattern": text(where, "pattern", fields.get("pattern") or ""),
        "priority": whole(where, "priority", fields.get("priority", 100)),
    }

    async def requested(event: Event) -> Answer:
        question: Any = event.payload
        request = {
            "tool_name": question.tool,
            "args": question.args,
            "file_path": question.paths[0] if question.paths else None,
            "mode": modes.current_mode(judge.host.session),
            "is_safe": question.kind in _SAFE,
        }
        verdict = table(where, "the verdict", await judge.call(request))
        parsed = parse.parse_answer(event.row.name, event.row, verdict, request)
        answer = parsed.answer
        for warning in parsed.warnings.values():
            judge.host.session.parts.bus.stream.warn(
                f"{judge.host.plugin.name}: {where}: {warning}", judge.host.plugin.name
            )
        return replace(answer, reason="refused by a script") if answer.reason == parse.DEFAULT_REASON else answer

    return host().listen("permission:requested", requested, where=where, on_error="deny", **listening)


_KEYS = ("session", "plugin", "exempt", "exec_prefix", "exec_suffix", "exec_env_flag", "exec_env_inline")
ISOLATED = ("shell", "write")
"""Kinds of tools that reach the machine."""


def require_isolation(opts: dict[str, Any] | None = None) -> int:
    """require_isolation{exempt = {tools}, ...} -> id. Tools that run commands or write files are to work in a container. cru cannot do
    that yet, so their calls are denied, but for those of the tools in exempt. Raises BadArgument.

    Example: cru.require_isolation({exempt={"bash"}}) > 0 --> true
    """
    where = "cru.require_isolation"
    exempt = options(where, opts, _KEYS).get("exempt") or []
    if not isinstance(exempt, list) or not all(isinstance(name, str) for name in exempt):
        raise BadArgument(f"{where}: exempt must be a list of names of tools")
    here = host()
    reason = f"the plugin {here.plugin.name} requires isolation, and cru cannot isolate tools"

    def refuse(event: Event[ToolBeforeCall]) -> Answer:
        call = event.payload
        return cancel(reason) if call.kind in ISOLATED and call.name not in exempt else PASS

    here.problem(f"{where}: cru cannot isolate tools: those that run commands or write files are denied")
    return here.listen("tool:before_call", refuse, where=where, priority=0, on_error="deny")
