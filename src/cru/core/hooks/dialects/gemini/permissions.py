"""Our tools in the words of Gemini CLI, and `tools` of its settings.json as rules of ours: what it excludes is denied, in the project's
files too, since that only tightens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cru.core.base.config.closest import did_you_mean
from cru.core.guard import BadRule
from cru.core.guard.rules import RuleLists
from cru.core.guard.rules.rules import parse_rule
from cru.core.hooks.model.entry import ProblemKind
from cru.core.hooks.model.mapping import ArgumentMapping, ToolMapping
from cru.core.hooks.parsing.common import to_todo_list, to_todo_text
from cru.core.hooks.parsing.reading import Reading

_TODO_LIST = ArgumentMapping(
    "todos", lambda text: to_todo_list(text, ("description",)), lambda todos: to_todo_text(todos, "description")
)
_FOLDER = {"path": ArgumentMapping("dir_path")}

TOOLS = ToolMapping(
    tools={
        "bash": ("run_shell_command",), "read": ("read_file", "read_many_files"), "write": ("write_file",), "edit": ("replace",),
        "glob": ("glob",), "grep": ("grep_search", "search_file_content"), "ls": ("list_directory",),
        "fetch": ("web_fetch", "google_web_search"), "update_todos": ("write_todos",),
        "task": ("invoke_agent",),
    },
    arguments={
        "ls": _FOLDER, "glob": _FOLDER, "grep": _FOLDER, "update_todos": {"content": _TODO_LIST},
        "task": {"agent": ArgumentMapping("agent_name")},
    },
    dropped={
        "bash": ("description", "dir_path", "directory"), "edit": ("instruction", "expected_replacements", "allow_multiple"),
        "fetch": ("prompt",),
    },
    absolute_paths=True,
)  # fmt: skip


EXCLUDED = (("tools", "exclude"), ("excludeTools",))
"""Where the list stands, and stood in older files."""
CHOSEN = (("tools", "core"), ("coreTools",))
"""Lists of the only tools that there are: it tightens, and cru has no such list."""
ALLOWED = (("tools", "allowed"), ("allowedTools",))
"""Tools that run without a question."""
ABSENT = (
    "save_memory", "ask_user", "activate_skill", "enter_plan_mode", "exit_plan_mode", "get_internal_docs", "google_web_search",
    "WebSearchTool", "read_many_files", "ReadManyFilesTool",
)  # fmt: skip
"""Tools that cru has not, whatever their hooks are told: there is nothing to guard."""
CLASSES = {
    "ShellTool": "bash", "ReadFileTool": "read", "WriteFileTool": "write", "EditTool": "edit", "GlobTool": "glob", "GrepTool": "grep",
    "LSTool": "ls", "WebFetchTool": "fetch",
}  # fmt: skip
"""Older names of tools → ours."""
_RULE = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)


def read_excluded(reading: Reading) -> tuple[RuleLists, dict[tuple[str, str], int]]:
    """The deny rules of a file, and the line of each by what it decides and its text."""
    for path, kind, text in (
        *((path, ProblemKind.UNHELD, "does not hold here: cru has all its tools") for path in CHOSEN),
        *((path, ProblemKind.IGNORED, "has no effect in cru") for path in ALLOWED),
    ):
        if _value(reading, path):
            hint = "refuse tools with deny rules" if kind is ProblemKind.UNHELD else "write allow rules of your own"
            reading.wrong(f"`{'.'.join(path)}` {text}", hint, line=reading.line(*path), kind=kind)
    lines: dict[tuple[str, str], int] = {}
    for path in EXCLUDED:
        for rule, line in _rules(reading, path):
            lines.setdefault(("deny", rule), line)
    return RuleLists(deny=tuple(rule for _, rule in lines)), lines


def _value(reading: Reading, path: tuple[str, ...]) -> object:
    value: object = reading.value
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _rules(reading: Reading, path: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    listed = _value(reading, path)
    name = ".".join(path)
    if listed is not None and not isinstance(listed, list):
        reading.wrong(f"`{name}` must be a list", line=reading.line(*path), kind=ProblemKind.PART)
        return
    for number, text in enumerate(listed or ()):
        line = reading.line(*path, number)
        match = _RULE.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            reading.wrong(f"`{name}`: {text!r} names no tool", line=line, kind=ProblemKind.PART)
            continue
        rule = _rule(match[1], (match[2] or "").strip())
        if rule is None:
            known = [name for names in TOOLS.tools.values() for name in names]
            hint = did_you_mean(match[1], known)
            kind = ProblemKind.PART if hint else ProblemKind.ODDITY
            reading.wrong(f"`{name}`: cru has no tool `{match[1]}`", hint, line=line, kind=kind)
        elif rule:
            try:
                parse_rule(rule)
            except BadRule as error:
                reading.wrong(f"`{name}`: {error}", line=line, kind=ProblemKind.PART)
                continue
            yield rule, line


def _rule(tool: str, command: str) -> str | None:
    """ "" for what cru has no tool for, None for what nobody knows."""
    if tool in ABSENT:
        return ""
    own = CLASSES.get(tool) or TOOLS.own_name(tool)
    if "__" in tool:  # of an MCP server, with or without `mcp__` before it
        return TOOLS.own_name(tool if tool.startswith("mcp__") else f"mcp__{tool}")
    if own not in TOOLS.tools:
        return own if own.startswith("mcp_") else None
    return f"bash:{command}" if command and own == "bash" else own
