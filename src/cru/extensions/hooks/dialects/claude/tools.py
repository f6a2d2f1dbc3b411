"""Calls and results of our tools in the shapes that scripts for Claude Code read, and its replaced results as text again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import MILLISECONDS, ArgumentMapping, ToolMapping

NO_OUTPUT = "(no output)"
"""What our `bash` tells the model then."""


TOOLS = ToolMapping(
    tools={
        "bash": ("Bash",), "read": ("Read",), "write": ("Write",), "edit": ("Edit", "MultiEdit"), "glob": ("Glob",), "grep": ("Grep",),
        "ls": ("LS",), "fetch": ("WebFetch",), "update_todos": ("TodoWrite",),
    },
    arguments={
        "bash": {"timeout": MILLISECONDS},
        "grep": {
            "include": ArgumentMapping("glob"), "ignore_case": ArgumentMapping("-i"), "context": ArgumentMapping("-C"),
        },
        "update_todos": {"content": ArgumentMapping("todos")},
    },
    dropped={
        "bash": ("description", "run_in_background"),
        "grep": ("output_mode", "multiline", "head_limit", "-n", "-A", "-B", "type"),
        "fetch": ("prompt",),
    },
    absolute_paths=True,
)  # fmt: skip


def call_fields(tool: str, args: Mapping[str, object], call_id: str, facts: SessionFacts) -> dict[str, object]:
    """Name, arguments and id. Paths are absolute: tools resolve them against the project's root."""
    tool_input = TOOLS.to_foreign(tool, args, facts.root)
    return {"tool_name": TOOLS.foreign_name(tool), "tool_input": tool_input, "tool_use_id": call_id}


def tool_response(tool: str, tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    """What the tool gave; `text` is always there, as the model reads it."""
    shape = _SHAPES.get(tool)
    return {**(shape(tool_input, text) if shape else {"content": text}), "text": text}


def _bash(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    """Our tool gives both streams as one, in the order of their lines."""
    return {"stdout": "" if text == NO_OUTPUT else text, "stderr": "", "interrupted": False, "isImage": False}


def _read(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    file = {
        "filePath": tool_input.get("file_path"), "content": text, "numLines": len(text.splitlines()),
        "startLine": tool_input.get("offset", 1),
    }  # fmt: skip
    return {"type": "text", "file": file, "content": text}


def _write(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    return {"filePath": tool_input.get("file_path"), "content": tool_input.get("content"), "success": True}


def _edit(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    return {
        "filePath": tool_input.get("file_path"), "oldString": tool_input.get("old_string"), "newString": tool_input.get("new_string"),
        "replaceAll": tool_input.get("replace_all", False), "success": True,
    }  # fmt: skip


def _glob(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    lines = text.splitlines()
    return {"filenames": lines, "numFiles": len(lines)}


def _grep(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    return {"mode": "content", "content": text, "numLines": len(text.splitlines())}


def _fetch(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    return {"url": tool_input.get("url"), "result": text}


_SHAPES: dict[str, Callable[[Mapping[str, object], str], dict[str, object]]] = {
    "bash": _bash, "read": _read, "write": _write, "edit": _edit, "glob": _glob, "grep": _grep, "fetch": _fetch,
}  # fmt: skip


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
