"""Calls of our tools in the words that scripts for Claude Code read, and its replaced results as text again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from signal import SIGTERM

import msgspec

from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import MILLISECONDS, ArgumentMapping, ToolMapping
from cru.core.hooks.parsing.common import to_todo_list, to_todo_text
from cru.core.tools.protocol import AGENT_ALIASES

NO_OUTPUT = "(no output)"
"""What our `bash` tells the model then."""
_ENDED = re.compile(r"(?:^|\n)\[(?:exit code (\d+)|ended by signal (\d+))\]\Z")
_TIMED_OUT = re.compile(r"(?:^|\n)\[?the command ran longer than ([\d.]+) s and was ended[^\n]*\Z")

TODO_LIST = ArgumentMapping(
    "todos", lambda text: to_todo_list(text, ("content", "activeForm")), lambda todos: to_todo_text(todos, "content")
)
AGENTS = {own: name for name, own in AGENT_ALIASES.items()}
AGENT = ArgumentMapping(
    "subagent_type",
    lambda agent: AGENTS.get(agent, agent) if isinstance(agent, str) else agent,
    lambda agent: AGENT_ALIASES.get(agent, agent) if isinstance(agent, str) else agent,
)
TOOLS = ToolMapping(
    tools={
        "bash": ("Bash",), "read": ("Read",), "write": ("Write",), "edit": ("Edit", "MultiEdit"), "glob": ("Glob",), "grep": ("Grep",),
        "ls": ("LS",), "fetch": ("WebFetch",), "update_todos": ("TodoWrite",),
        "task_output": ("TaskOutput", "BashOutput", "BashOutputTool", "AgentOutputTool"),
        "task_cancel": ("TaskStop", "KillShell", "KillBash"), "task": ("Agent", "Task"), "skill": ("Skill",),
    },
    arguments={
        "bash": {"timeout": MILLISECONDS, "background": ArgumentMapping("run_in_background")},
        "task_output": {"id": ArgumentMapping("task_id"), "wait": MILLISECONDS},
        "task_cancel": {"id": ArgumentMapping("task_id")},
        "grep": {
            "include": ArgumentMapping("glob"), "ignore_case": ArgumentMapping("-i"), "context": ArgumentMapping("-C"),
        },
        "update_todos": {"content": TODO_LIST},
        "task": {"agent": AGENT, "background": ArgumentMapping("run_in_background")},
        "skill": {"name": ArgumentMapping("skill"), "arguments": ArgumentMapping("args")},
    },
    dropped={
        "bash": ("description",),
        "task_output": ("block",),
        "grep": ("output_mode", "multiline", "head_limit", "-n", "-A", "-B", "type"),
        "fetch": ("prompt",),
        "task": ("name", "mode", "resume", "max_turns", "team_name", "effort"),
    },
    absolute_paths=True,
    has_double_names=True,
    agents=AGENTS,
)  # fmt: skip


def call_fields(tool: str, args: Mapping[str, object], call_id: str, facts: SessionFacts) -> dict[str, object]:
    """Name, arguments and id. Paths are absolute: tools resolve them against the project's root."""
    tool_input = TOOLS.to_foreign(tool, args, facts.root)
    if tool == "edit":
        tool_input.setdefault("replace_all", False)
    return {"tool_name": TOOLS.foreign_name(tool), "tool_input": tool_input, "tool_use_id": call_id}


def failure_text(tool: str, text: str) -> str:
    """`error` of PostToolUseFailure: of a command first how it ended, then what it printed."""
    if tool != "bash":
        return text
    timed_out = _TIMED_OUT.search(text)
    if timed_out is not None:
        output = text[: timed_out.start()]
        return f"Exit code {128 + SIGTERM}\nCommand timed out after {timed_out[1]}s" + (f"\n{output}" if output else "")
    ended = _ENDED.search(text)
    if ended is None:
        return text
    output = text[: ended.start()].removesuffix("\n")
    status = 128 + int(ended[2]) if ended[2] else int(ended[1])
    return f"Exit code {status}" + (f"\n{output}" if output and output != NO_OUTPUT else "")


def result_text(value: object) -> str:
    """A replaced result as the model will read it: a text as it is, what a shape holds as text, blocks one a line, else JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(
        isinstance(block, dict) and isinstance(block.get("text"), str) for block in value
    ):
        return "\n".join(block["text"] for block in value)
    if isinstance(value, dict):
        if "stdout" in value or "stderr" in value:
            return "\n".join(str(value[key]).rstrip("\n") for key in ("stdout", "stderr") if value.get(key))
        file = value.get("file")
        inner = file.get("content") if isinstance(file, dict) else None
        for content in (inner, *(value.get(key) for key in ("content", "result", "text"))):
            if isinstance(content, str | list):
                return result_text(content)
    return msgspec.json.encode(value).decode()
