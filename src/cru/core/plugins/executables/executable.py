"""What is known of a plugin that is a program: its tools as its `--schema` gave them, which of chibi's two generations it speaks, and what
`[plugins.NAME]` says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from msgspec import Struct

from cru.core.base.config.closest import did_you_mean
from cru.core.plugins.errors import PluginFailed

T = TypeVar("T", bound=str)
Era = Literal["env", "stdin"]
"""env: arguments and payloads come in environment variables (chibi up to 0.6); stdin: as JSON on standard input (from 0.7 on)."""
ERAS: tuple[Era, ...] = get_args(Era)

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
ON_ERROR: tuple[OnError, ...] = get_args(OnError)

KEYS: dict[str, str] = {
    "era": "how it is given arguments and payloads: `env` or `stdin` (seen in the file itself)",
    "timeout": "seconds that a call of a tool may take (600)",
    "hook_timeout": "seconds that a hook may take (30)",
    "on_error": "what becomes of a call if `pre_tool` or a permission hook of it fails: `pass`, `deny` or `ask` (`pass`)",
}
MOST_SECONDS = 86400


class ToolSchema(Struct, frozen=True):
    """One tool of a plugin.

    parameters: JSON Schema
    parallel: it may run beside others
    flow_control: it is not run, a call of it only says how to go on
    ends_turn: which then is back to the user
    summary_params: the arguments that tell a person what a call does
    """

    name: str
    description: str
    parameters: dict[str, Any]
    hooks: tuple[str, ...] = ()
    parallel: bool = True
    flow_control: bool = False
    ends_turn: bool = False
    summary_params: tuple[str, ...] = ()


class Executable(Struct, frozen=True):
    """One plugin.

    path: the file that is run, links followed
    era: the generation of chibi that it was written for
    timeout, hook_timeout: seconds
    on_error: what becomes of a call if a hook of it fails that may refuse it
    problems: what is wrong with its schema and its settings, for the person
    """

    name: str
    path: Path
    era: Era
    tools: tuple[ToolSchema, ...] = ()
    timeout: float = TOOL_SECONDS
    hook_timeout: float = HOOK_SECONDS
    on_error: OnError = "pass"
    problems: tuple[str, ...] = ()


class ExecutableSettings(Struct, frozen=True):
    """The table of one plugin; whatever is wrong in it raises PluginFailed."""

    plugin: str
    config: Mapping[str, object]

    def choice(self, key: str, known: tuple[T, ...], default: T) -> T:
        value = self.config.get(key, default)
        for choice in known:
            if choice == value:
                return choice
        hint = did_you_mean(str(value), known) or f"one of: {', '.join(known)}"
        raise PluginFailed(f"[plugins.{self.plugin}] {key}: there is no {value!r}", hint)

    def seconds(self, key: str, default: float) -> float:
        value = self.config.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_SECONDS:
            problem = f"[plugins.{self.plugin}] {key} must be a number of seconds, at most {MOST_SECONDS}"
            raise PluginFailed(problem, f"{key} = {default:g}")
        return float(value)

    def near_misses(self) -> Iterator[str]:
        """Keys that are nearly one of ours; others may be the program's own."""
        for key in self.config:
            near = did_you_mean(key, KEYS) if key not in KEYS else ""
            if near:
                yield f"[plugins.{self.plugin}] {key} has no effect; {near}"
