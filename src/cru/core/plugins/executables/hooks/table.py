"""THE table of the hooks of executable plugins: every name that any chibi knew, which of our events it hears, what it is given, and what an
object that it returns does (docs/decisions/plugins.md)."""

from __future__ import annotations

from cru.core.plugins.executables.hooks import api_request, effects, payloads, permissions
from cru.core.plugins.executables.hooks.hook import ObservedFact, ProgramHook

LAST = 10_000
"""What sees an event as everybody else has left it."""
NO_INDEX = "cru keeps no index of source files"
NO_VFS = "cru has no virtual file system: files are files, and pre_file_write hears of them"
CALL = ("tool:before_call",)
SPAWN = ("task:spawned",)
DONE = ("tool:completed", "tool:failed")

TABLE: tuple[ProgramHook, ...] = (
    ProgramHook("on_start", "a session has opened, its plugins are loaded",
         ("session:started",), payloads.session),
    ProgramHook("on_end", "the session ends",
         ("session:ended",), payloads.session),
    ProgramHook("on_context_switch", "`-c` or `-C` took another context",
         ("context:switched",), payloads.context_switch),
    ProgramHook("pre_message", "a prompt is about to be sent, continuations too",
         ("message:received",), payloads.prompt, effects.replace_prompt),
    ProgramHook("post_message", "a final answer is in the log; not the message of `call_user`",
         ("turn:complete",), payloads.final_answer, hears=payloads.is_final_answer),
    ProgramHook("pre_system_prompt", "the system prompt is made, once a prompt or continuation",
         ("system_prompt:build",), payloads.system_prompt, effects.prepend_section),
    ProgramHook("post_system_prompt", "the same, after all `pre_system_prompt`",
         ("system_prompt:build",), payloads.system_prompt, effects.append_section, step=1),
    ProgramHook("pre_tool", "before every call of a tool, unknown ones too",
         CALL, payloads.tool_call, effects.block_or_change_call),
    ProgramHook("post_tool", "a call is over and its result is in the log",
         ("tool:settled",), payloads.settled_call, hears=payloads.is_not_steering, step=2),
    ProgramHook("pre_tool_output", "a tool has ended, well or not, or was refused",
         DONE, payloads.tool_output, effects.replace_output),
    ProgramHook("post_tool_output", "it is settled what the model reads of a result",
         ("tool:settled",), payloads.final_output, step=1),
    ProgramHook("pre_cache_output", "an output is too long, and is about to be saved to a file",
         ("output:cached",), payloads.output_to_cache, effects.change_preview, payloads.is_worth_caching),
    ProgramHook("post_cache_output", "it was saved",
         ("tool:settled",), payloads.cached_output, hears=payloads.is_cached),
    ProgramHook("pre_api_tools", "tools are chosen, once a prompt or continuation",
         ("tools:select",), payloads.tool_choice, effects.narrow_tools, observes=(ObservedFact.FUEL,)),
    ProgramHook("pre_api_request", "before the first request of a prompt or continuation",
         ("message:before_send",), api_request.api_request, api_request.change_request, api_request.is_meant,
         repeats=api_request.is_later, observes=tuple(ObservedFact)),
    ProgramHook("pre_agentic_loop", "a prompt or continuation begins",
         ("leg:started",), payloads.loop_start, effects.steer_loop, observes=(ObservedFact.FUEL,)),
    ProgramHook("post_tool_batch", "all calls of one reply are done",
         ("tool:batch_completed",), payloads.tool_batch, effects.steer_loop, observes=(ObservedFact.FUEL,)),
    ProgramHook("pre_file_read", "a tool would read outside of the project, where no allow rule leads",
         CALL, permissions.file_to_read, effects.refuse_call, permissions.reads_outside, step=LAST),
    ProgramHook("pre_file_write", "a tool would write a file",
         CALL, permissions.file_to_write, effects.refuse_call, permissions.writes, step=LAST),
    ProgramHook("pre_shell_exec", "a command would run",
         CALL, permissions.command_to_run, effects.refuse_call, permissions.runs, step=LAST),
    ProgramHook("pre_fetch_url", "an address of this machine or a private network would be fetched, and no rule decides on it",
         CALL, permissions.url_to_fetch, effects.refuse_call, permissions.fetches_inside, step=LAST),
    ProgramHook("pre_send_message", "the agent sends a message to another context",
         ("inbox:sending",), payloads.outgoing_message, effects.take_delivery),
    ProgramHook("post_send_message", "it was delivered, or could not be",
         ("inbox:sent",), payloads.delivered_message),
    ProgramHook("pre_clear", "`-a` or `/clear` is about to empty the context",
         ("context:clearing",), payloads.context_summary),
    ProgramHook("post_clear", "it is empty",
         ("context:cleared",), payloads.context_name),
    ProgramHook("pre_compact", "`-z` or `/compact` is about to summarise the conversation",
         ("context:overflow",), payloads.context_summary, hears=payloads.is_manual),
    ProgramHook("post_compact", "it is summarised",
         ("session:compacted",), payloads.context_summary, hears=payloads.is_manual),
    ProgramHook("pre_rolling_compact", "the conversation is about to be summarised because it grew too long",
         ("context:overflow",), payloads.automatic_compaction, hears=payloads.is_automatic),
    ProgramHook("post_rolling_compact", "it was, and is shorter",
         ("session:compacted",), payloads.compacted_context, hears=payloads.is_automatic),
    ProgramHook("pre_spawn_agent", "a sub-agent is about to be asked",
         SPAWN, payloads.new_agent, effects.answer_for_agent, payloads.is_agent),
    ProgramHook("post_spawn_agent", "it has answered",
         ("task:completed",), payloads.agent_answer, hears=payloads.is_agent),
    ProgramHook("post_index_file", "a source file is in the index", later=NO_INDEX),
    ProgramHook("pre_vfs_write", "a file of the virtual file system is about to be written", later=NO_VFS),
    ProgramHook("post_vfs_write", "it is written", later=NO_VFS),
)  # fmt: skip

BY_NAME: dict[str, ProgramHook] = {hook.name: hook for hook in TABLE}
