"""Our todos, which are one text, as the lists that scripts of other programs read, and back."""

from __future__ import annotations

import re

_MARK = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s+)?(?:\[([ xX~>-])\]\s+)?")
_MARKS = {"completed": "x", "in_progress": "-", "pending": " "}
"""`status` of a todo → what stands between its brackets."""
_STATUS = {"x": "completed", "X": "completed", "-": "in_progress", "~": "in_progress", ">": "in_progress"}


def to_todo_list(text: object, names: tuple[str, ...]) -> object:
    """One for each line that says something; what is no text goes through as it is. names: the keys of what it says, beside `status`."""
    if not isinstance(text, str):
        return text
    todos = []
    for line in filter(str.strip, text.splitlines()):
        mark = _MARK.match(line)
        status = _STATUS.get((mark and mark[1]) or " ", "pending")
        todos.append({**dict.fromkeys(names, line[mark.end() if mark else 0 :].strip()), "status": status})
    return todos


def to_todo_text(todos: object, name: str) -> object:
    """A list of todos as our text; what is none goes through as it is. name: the key of what a todo says."""
    if not isinstance(todos, list) or not all(isinstance(todo, dict) for todo in todos):
        return todos
    return "\n".join(f"- [{_MARKS.get(str(todo.get('status')), ' ')}] {todo.get(name, '')}" for todo in todos)
