"""Our tools in the words of Gemini CLI."""

from __future__ import annotations

from cru.core.hooks.model.mapping import ArgumentMapping, ToolMapping
from cru.core.hooks.parsing.common import to_todo_list, to_todo_text

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
