"""THE table of the hooks of executable plugins: every name that any chibi knew, which of our events it hears, what it is given, and what an
object that it returns does (docs/decisions/0015-hooks-of-programs.md)."""

from __future__ import annotations

from cru.extensions.executables import hooks_effects as does
from cru.extensions.executables import hooks_payloads as gets
from cru.extensions.executables import hooks_permissions as leave
from cru.extensions.executables import hooks_request as request
from cru.extensions.executables.executable import Executable
from cru.extensions.executables.hooks_call import HookCall
from cru.extensions.executables.hooks_types import Facts, Hook
from cru.extensions.executables.process import Where
from cru.namespace.host import Host

PRIORITY = 100
LAST = 10_000
"""What sees an event as everybody else has left it."""
SHARED = "executable hooks"
SECONDS = 86_400.0
"""The bus does not wait longer; the limit of a hook is the plugin's own."""

NO_AGENTS = "cru has no sub-agents yet"
NO_INDEX = "cru keeps no index of source files"
NO_VFS = "cru has no virtual file system: files are files, and pre_file_write hears of them"
FUEL, TOOLS, SYSTEM, SIZE = "leg", "selected", "built", "sized"
# What a payload needs is observed only for hooks that somebody registered.
OBSERVED: dict[str, str] = {
    FUEL: "leg:started",
    TOOLS: "tools:select",
    SYSTEM: "system_prompt:build",
    SIZE: "context:overflow",
}
_CALL = ("tool:before_call",)
_DONE = ("tool:completed", "tool:failed")

TABLE: tuple[Hook, ...] = (
    Hook("on_start", ("session:started",), gets.run),
    Hook("on_end", ("session:ended",), gets.run),
    Hook("on_context_switch", ("context:switched",), gets.switched),
    Hook("pre_message", ("message:received",), gets.received, does.prompt),
    Hook("post_message", ("turn:complete",), gets.answered, hears=gets.is_answer),
    Hook("pre_system_prompt", ("system_prompt:build",), gets.system_prompt, does.above),
    Hook("post_system_prompt", ("system_prompt:build",), gets.system_prompt, does.below, step=1),
    Hook("pre_tool", _CALL, gets.tool, does.call),
    Hook("post_tool", ("tool:settled",), gets.settled, hears=gets.is_no_steering, step=2),
    Hook("pre_tool_output", _DONE, gets.output, does.output),
    Hook("post_tool_output", ("tool:settled",), gets.final_output, step=1),
    Hook("pre_cache_output", ("output:cached",), gets.to_cache, does.cache, gets.is_worth_caching),
    Hook("post_cache_output", ("tool:settled",), gets.cached, hears=gets.is_cached),
    Hook("pre_api_tools", ("tools:select",), gets.tools, does.tools, wants=(FUEL,)),
    Hook(
        "pre_api_request", ("message:before_send",), request.request, request.changed, request.is_first,
        wants=(FUEL, TOOLS, SYSTEM),
    ),
    Hook("pre_agentic_loop", ("leg:started",), gets.loop, does.loop, wants=(FUEL,)),
    Hook("post_tool_batch", ("tool:batch_completed",), gets.batch, does.loop, wants=(FUEL,)),
    Hook("pre_file_read", _CALL, leave.read, does.leave, leave.reads_outside, step=LAST),
    Hook("pre_file_write", _CALL, leave.write, does.leave, leave.writes, step=LAST),
    Hook("pre_shell_exec", _CALL, leave.shell, does.leave, leave.runs, step=LAST),
    Hook("pre_fetch_url", _CALL, leave.fetch, does.leave, leave.fetches_inside, step=LAST),
    Hook("pre_send_message", ("inbox:sending",), gets.message, does.sent),
    Hook("post_send_message", ("inbox:sent",), gets.delivered),
    Hook("pre_clear", ("context:clearing",), gets.context),
    Hook("post_clear", ("context:cleared",), gets.context_name),
    Hook("pre_compact", ("context:overflow",), gets.context, hears=gets.is_manual),
    Hook("post_compact", ("session:compacted",), gets.context, hears=gets.is_manual),
    Hook("pre_rolling_compact", ("context:overflow",), gets.rolling, hears=gets.is_automatic),
    Hook("post_rolling_compact", ("session:compacted",), gets.rolled, hears=gets.is_automatic, wants=(SIZE,)),
    Hook("pre_spawn_agent", later=NO_AGENTS),
    Hook("post_spawn_agent", later=NO_AGENTS),
    Hook("post_index_file", later=NO_INDEX),
    Hook("pre_vfs_write", later=NO_VFS),
    Hook("post_vfs_write", later=NO_VFS),
)  # fmt: skip

BY_NAME: dict[str, Hook] = {hook.name: hook for hook in TABLE}


def register(host: Host, executable: Executable, where: Where) -> None:
    """Put a plugin's hooks on the bus, in its name: one handler for each tool entry that registered the hook. What will never be called is
    kept for the list of plugins. Names that are no hooks are left to whoever reads the schema."""
    wanted = [
        (tool.name, BY_NAME[name]) for tool in executable.tools for name in dict.fromkeys(tool.hooks) if name in BY_NAME
    ]
    if not wanted:
        return
    facts: Facts = host.session.shared.setdefault(SHARED, Facts(host.session.parts, where))
    for tool, hook in wanted:
        call = HookCall(hook, executable, tool, facts, where)
        for event in hook.events:
            host.listen(
                event, call, lane="executables", priority=PRIORITY + hook.step, limit=SECONDS,
                where=f"{executable.path} {hook.name}",
            )  # fmt: skip
    hooks = {hook.name: hook for _, hook in wanted}
    for method in dict.fromkeys(name for hook in hooks.values() for name in hook.wants):
        host.listen(OBSERVED[method], getattr(facts, method), priority=LAST, where=f"{executable.path} (looks on)")
    reasons = dict.fromkeys(hook.later for hook in hooks.values() if hook.later)
    for reason in reasons:
        names = [hook.name for hook in hooks.values() if hook.later == reason]
        host.plugin.problems.append(f"{' and '.join(names)}: never called: {reason}")
