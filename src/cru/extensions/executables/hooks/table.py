"""THE table of the hooks of executable plugins: every name that any chibi knew, which of our events it hears, what it is given, and what an
object that it returns does (docs/decisions/0015-hooks-of-programs.md)."""

from __future__ import annotations

from cru.extensions.executables.calls import ProgramContext
from cru.extensions.executables.executable import Executable
from cru.extensions.executables.hooks import effects as does
from cru.extensions.executables.hooks import payloads as gets
from cru.extensions.executables.hooks import permissions as leave
from cru.extensions.executables.hooks import request
from cru.extensions.executables.hooks.handler import HookCall
from cru.extensions.executables.hooks.hook import LegFacts, ProgramHook
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
FUEL, TOOLS, SYSTEM = "leg", "selected", "built"
# What a payload needs is observed only for hooks that somebody registered.
OBSERVED: dict[str, str] = {
    FUEL: "leg:started",
    TOOLS: "tools:select",
    SYSTEM: "system_prompt:build",
}
_CALL = ("tool:before_call",)
_DONE = ("tool:completed", "tool:failed")

TABLE: tuple[ProgramHook, ...] = (
    ProgramHook("on_start", "a session has opened, its plugins are loaded",
         ("session:started",), gets.session),
    ProgramHook("on_end", "the session ends",
         ("session:ended",), gets.session),
    ProgramHook("on_context_switch", "`-c` or `-C` took another context",
         ("context:switched",), gets.context_switch),
    ProgramHook("pre_message", "a prompt is about to be sent, continuations too",
         ("message:received",), gets.prompt, does.replace_prompt),
    ProgramHook("post_message", "a final answer is in the log; not the message of `call_user`",
         ("turn:complete",), gets.final_answer, hears=gets.is_final_answer),
    ProgramHook("pre_system_prompt", "the system prompt is made, once a prompt or continuation",
         ("system_prompt:build",), gets.system_prompt, does.prepend_section),
    ProgramHook("post_system_prompt", "the same, after all `pre_system_prompt`",
         ("system_prompt:build",), gets.system_prompt, does.append_section, step=1),
    ProgramHook("pre_tool", "before every call of a tool, unknown ones too",
         _CALL, gets.tool_call, does.block_or_change_call),
    ProgramHook("post_tool", "a call is over and its result is in the log",
         ("tool:settled",), gets.settled_call, hears=gets.is_not_steering, step=2),
    ProgramHook("pre_tool_output", "a tool has ended, well or not, or was refused",
         _DONE, gets.tool_output, does.replace_output),
    ProgramHook("post_tool_output", "it is settled what the model reads of a result",
         ("tool:settled",), gets.final_output, step=1),
    ProgramHook("pre_cache_output", "an output is too long, and is about to be saved to a file",
         ("output:cached",), gets.output_to_cache, does.change_preview, gets.is_worth_caching),
    ProgramHook("post_cache_output", "it was saved",
         ("tool:settled",), gets.cached_output, hears=gets.is_cached),
    ProgramHook("pre_api_tools", "tools are chosen, once a prompt or continuation",
         ("tools:select",), gets.tool_choice, does.narrow_tools, wants=(FUEL,)),
    ProgramHook("pre_api_request", "before the first request of a prompt or continuation",
         ("message:before_send",), request.api_request, request.change_request, request.is_first, wants=(FUEL, TOOLS, SYSTEM)),
    ProgramHook("pre_agentic_loop", "a prompt or continuation begins",
         ("leg:started",), gets.loop_start, does.steer_loop, wants=(FUEL,)),
    ProgramHook("post_tool_batch", "all calls of one reply are done",
         ("tool:batch_completed",), gets.tool_batch, does.steer_loop, wants=(FUEL,)),
    ProgramHook("pre_file_read", "a tool would read outside of the project, where no allow rule leads",
         _CALL, leave.file_to_read, does.refuse_call, leave.reads_outside, step=LAST),
    ProgramHook("pre_file_write", "a tool would write a file",
         _CALL, leave.file_to_write, does.refuse_call, leave.writes, step=LAST),
    ProgramHook("pre_shell_exec", "a command would run",
         _CALL, leave.command_to_run, does.refuse_call, leave.runs, step=LAST),
    ProgramHook("pre_fetch_url", "an address of this machine or a private network would be fetched, and no rule decides on it",
         _CALL, leave.url_to_fetch, does.refuse_call, leave.fetches_inside, step=LAST),
    ProgramHook("pre_send_message", "the agent sends a message to another context",
         ("inbox:sending",), gets.outgoing_message, does.take_delivery),
    ProgramHook("post_send_message", "it was delivered",
         ("inbox:sent",), gets.delivered_message),
    ProgramHook("pre_clear", "`-a` or `/clear` is about to empty the context",
         ("context:clearing",), gets.context_summary),
    ProgramHook("post_clear", "it is empty",
         ("context:cleared",), gets.context_name),
    ProgramHook("pre_compact", "`-z` or `/compact` is about to summarise the conversation",
         ("context:overflow",), gets.context_summary, hears=gets.is_manual),
    ProgramHook("post_compact", "it is summarised",
         ("session:compacted",), gets.context_summary, hears=gets.is_manual),
    ProgramHook("pre_rolling_compact", "the conversation is about to be summarised because it grew too long",
         ("context:overflow",), gets.automatic_compaction, hears=gets.is_automatic),
    ProgramHook("post_rolling_compact", "it was, and is shorter",
         ("session:compacted",), gets.compacted_context, hears=gets.is_automatic),
    ProgramHook("pre_spawn_agent", "a sub-agent is about to be asked", later=NO_AGENTS),
    ProgramHook("post_spawn_agent", "it has answered", later=NO_AGENTS),
    ProgramHook("post_index_file", "a source file is in the index", later=NO_INDEX),
    ProgramHook("pre_vfs_write", "a file of the virtual file system is about to be written", later=NO_VFS),
    ProgramHook("post_vfs_write", "it is written", later=NO_VFS),
)  # fmt: skip

BY_NAME: dict[str, ProgramHook] = {hook.name: hook for hook in TABLE}


def register(host: Host, executable: Executable, where: ProgramContext) -> None:
    """Put a plugin's hooks on the bus, in its name: one handler for each tool entry that registered the hook. What will never be called is
    kept for the list of plugins. Names that are no hooks are left to whoever reads the schema."""
    wanted = [
        (tool.name, BY_NAME[name]) for tool in executable.tools for name in dict.fromkeys(tool.hooks) if name in BY_NAME
    ]
    if not wanted:
        return
    facts: LegFacts = host.session.shared.setdefault(SHARED, LegFacts(host.session.parts, where.home, where.verbose))
    for tool, hook in wanted:
        call = HookCall(hook, executable, tool, facts, where)
        on_error = executable.on_error if hook.events == _CALL else "pass"
        for event in hook.events:
            host.listen(
                event, call, lane="executables", priority=PRIORITY + hook.step, limit=SECONDS,
                where=f"{executable.path} {hook.name}", on_error=on_error, hook=hook.name,
            )  # fmt: skip
    hooks = {hook.name: hook for _, hook in wanted}
    for method in dict.fromkeys(name for hook in hooks.values() for name in hook.wants):
        host.listen(OBSERVED[method], getattr(facts, method), priority=LAST, where=f"{executable.path} (looks on)")
    reasons = dict.fromkeys(hook.later for hook in hooks.values() if hook.later)
    for reason in reasons:
        names = [hook.name for hook in hooks.values() if hook.later == reason]
        host.plugin.problems.append(f"{' and '.join(names)}: never called: {reason}")
