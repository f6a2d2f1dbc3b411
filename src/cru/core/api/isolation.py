"""`cru.require_isolation`: a plugin wants commands to run in a container. cru has none, so they do not run."""

from __future__ import annotations

from typing import Any

from cru.core.api.arguments import options
from cru.core.api.host import BadArgument, host
from cru.core.events.answers import PASS, Answer, cancel
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event

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
