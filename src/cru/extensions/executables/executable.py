"""What is known of a plugin that is a program: its tools as its `--schema` gave them, and which of chibi's two generations it speaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct

Era = Literal["env", "stdin"]
"""env: arguments and payloads come in environment variables (chibi up to 0.6); stdin: as JSON on standard input (from 0.7 on)."""
ERAS: tuple[str, ...] = get_args(Era)

HOOKS = (
    "on_start", "on_end", "on_context_switch", "pre_message", "post_message", "pre_system_prompt", "post_system_prompt",
    "pre_tool", "post_tool", "pre_tool_output", "post_tool_output", "pre_cache_output", "post_cache_output",
    "pre_api_tools", "pre_api_request", "pre_agentic_loop", "post_tool_batch",
    "pre_file_read", "pre_file_write", "pre_shell_exec", "pre_fetch_url", "pre_send_message", "post_send_message",
    "pre_clear", "post_clear", "pre_compact", "post_compact", "pre_rolling_compact", "post_rolling_compact",
    "pre_spawn_agent", "post_spawn_agent", "post_index_file", "pre_vfs_write", "post_vfs_write",
)  # fmt: skip
"""Every name of a hook that any version of chibi knew."""

TOOL_SECONDS = 600.0
HOOK_SECONDS = 30.0
OnError = Literal["pass", "deny", "ask"]
"""What becomes of a call if a hook that may refuse it fails."""
POLICIES: tuple[str, ...] = get_args(OnError)


class ToolSchema(Struct, frozen=True):
    """One tool of a plugin. parameters: JSON Schema; parallel: it may run beside others; flow_control: it is not run, a call of it only
    says how to go on; ends_turn: which then is back to the user; summary_params: the arguments that tell a person what a call does."""

    name: str
    description: str
    parameters: dict[str, Any]
    hooks: tuple[str, ...] = ()
    parallel: bool = True
    flow_control: bool = False
    ends_turn: bool = False
    summary_params: tuple[str, ...] = ()


class Executable(Struct, frozen=True):
    """One plugin: its name, the file that is run (links followed), its generation, its tools, and its limits in seconds. `on_error`
    is meant for hooks that may refuse a call; `problems` is what was odd about its schema."""

    name: str
    path: Path
    era: Era
    tools: tuple[ToolSchema, ...] = ()
    timeout: float = TOOL_SECONDS
    hook_timeout: float = HOOK_SECONDS
    on_error: OnError = "pass"
    problems: tuple[str, ...] = ()
