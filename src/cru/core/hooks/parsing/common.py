"""What dialects have in common: reading an output, the usual fields of a payload, todos as lists, and long texts: a file in the
context's folder, and the beginning of it for the model."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cru.core.base.files.atomic import replace_file
from cru.core.events.stamp import Event
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import FolderOf
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.tools.protocol import OUTPUT_FOLDER
from cru.core.turn.turn import TYPED_SOURCES

BLANK = " \t\r\n\ufeff"


def parse_json(text: str) -> tuple[Any, str]:
    """(the one JSON value that the text is, "") or (None, what is wrong)."""
    try:
        return msgspec.json.decode(text.strip(BLANK)), ""
    except (msgspec.DecodeError, RecursionError) as error:
        mended = _mended(text.strip(BLANK)) if "\\ud" in text.lower() else None
        return (mended, "") if mended is not None else (None, f"not JSON: {error}")


def _mended(text: str) -> Any:
    """The value of JSON with halves of characters in it (`\\ud800`), as programs in Python print them; None if more is wrong."""
    import json

    try:
        return msgspec.json.decode(_whole(json.dumps(json.loads(text), ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None


def _whole(text: str) -> str:
    """Text that UTF-8 can hold: halves of a character that belong together joined, others replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def tool_name(event: Event) -> str:
    """The tool that an event is about, in our words."""
    payload = event.payload
    return str(getattr(payload, "name", "") or getattr(payload, "tool", ""))


def tool_arguments(event: Event) -> dict[str, Any]:
    return dict(getattr(event.payload, "args", {}) or {})


def to_json_line(value: object) -> bytes:
    """Compact JSON with a newline at its end: `read -r` under `set -e` needs it. Bytes that are no text (a path may have them)
    are replaced."""
    try:
        return msgspec.json.encode(value, enc_hook=repr) + b"\n"
    except UnicodeEncodeError:
        import json

        plain = json.dumps(value, ensure_ascii=False, default=repr, separators=(",", ":"))
        return _whole(plain).encode() + b"\n"


MODES: dict[str, str] = {"ask": "default", "auto": "acceptEdits", "plan": "plan", "trust": "bypassPermissions"}
"""Our permission modes as Claude and Codex call them."""
"""Sources of a prompt that a person gave."""


def is_typed(event: Event, facts: SessionFacts) -> bool:
    """Whether a prompt is one that a person gave."""
    return event.stamp.source in TYPED_SOURCES


def payload_field(event: Event, name: str) -> Any:
    """A field of the payload, "" if it has none of that name."""
    return getattr(event.payload, name, "")


def ended_by(*causes: str) -> Callable[[Event, SessionFacts], bool]:
    """Whether a turn ended for one of these causes."""
    return lambda event, facts: payload_field(event, "cause") in causes


def agent_ended_by(*causes: str) -> Callable[[Event, SessionFacts], bool]:
    """Whether a sub-agent's work ended for one of these causes."""
    return lambda event, facts: event.stamp.is_sub_agent and payload_field(event, "cause") in causes


def is_agent(event: Event, facts: SessionFacts) -> bool:
    """Whether a task is one for a sub-agent, and no command."""
    return str(payload_field(event, "kind")) == "subagent"


def was_run(event: Event, facts: SessionFacts) -> bool:
    """Whether a call that failed ran at all; one that was refused or invalid did not."""
    return payload_field(event, "which") in ("failed", "timeout")


def is_compacting(event: Event, facts: SessionFacts) -> bool:
    """Whether a compaction follows; `context:overflow` is raised without one, too, where automatic compaction is off."""
    return str(payload_field(event, "trigger")) != "none"


def failed_result(run: HookRun) -> HookResult:
    """An exit status that means nothing but failure, with the first line of what it had to say."""
    first = run.stderr.strip().partition("\n")[0]
    return HookResult(failed=f"exit status {run.exit}" + (f": {first}" if first else ""))


def is_valid(event: Event, facts: SessionFacts) -> bool:
    """Whether a call can run at all: of an unknown tool or of bad arguments other programs tell nobody beforehand."""
    return bool(payload_field(event, "valid"))


def project_folder(name: str) -> FolderOf:
    """Where a project begins for programs that keep its hooks in the folder `name`: for a project's hook the folder that has it, so that
    its scripts are found; for others the one in which cru was started if that is in the project and has it, else the project's root."""

    def folder(entry: HookEntry, facts: SessionFacts) -> Path:
        if entry.of_project:
            return entry.source.path.parent.parent
        is_own = facts.cwd.is_relative_to(facts.root) and (facts.cwd / name).is_dir()
        return facts.cwd if is_own else facts.root

    return folder


LONGEST_CONTEXT = 10_000
"""Characters of one context that go on as they are (Claude's limit; Codex' is about the same)."""
CONTEXT_PREVIEW = 2_000


def spill_context(result: HookResult, facts: SessionFacts) -> HookResult:
    """The same with contexts that are too long in files."""
    context = tuple(spill_text(text, facts) for text in result.answer.context)
    return (
        result if context == result.answer.context else replace(result, answer=replace(result.answer, context=context))
    )


def spill_text(text: str, facts: SessionFacts) -> str:
    """A text as it goes on: a longer one is saved, and its beginning and the file stand for it."""
    if len(text) <= LONGEST_CONTEXT:
        return text
    shown = f"{text[:CONTEXT_PREVIEW]}\n[… {len(text) - CONTEXT_PREVIEW:,} more characters"
    try:
        path = save_text(text, facts)
    except OSError as error:
        return f"{shown}; they could not be saved: {error.strerror}]"
    return f"[{len(text):,} characters from a hook; all of them are in {path}]\n{shown} in the file]"


def save_text(text: str, facts: SessionFacts) -> Path:
    """Save a text among the outputs of the context, named by its content, and return its path. Raises OSError."""
    data = text.encode("utf-8", "replace")
    path = facts.folder / OUTPUT_FOLDER / f"hook_{sha256(data).hexdigest()[:12]}.txt"
    replace_file(path, data, keep_mode=False, make_folders=True)
    return path


_MARK = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s+)?(?:\[([ xX~>-])\]\s+)?")
_MARKS = {"completed": "x", "in_progress": "-", "pending": " "}
"""`status` of a todo → what stands between its brackets."""
_STATUS = {"x": "completed", "X": "completed", "-": "in_progress", "~": "in_progress", ">": "in_progress"}


def to_todo_list(text: object, names: tuple[str, ...]) -> object:
    """Return our todos, which are one text, as the list that scripts of other programs read: one for each line that is not empty. What
    is no text is returned as it is. names: the keys of what a todo says, beside `status`."""
    if not isinstance(text, str):
        return text
    todos = []
    for line in filter(str.strip, text.splitlines()):
        mark = _MARK.match(line)
        status = _STATUS.get((mark and mark[1]) or " ", "pending")
        todos.append({**dict.fromkeys(names, line[mark.end() if mark else 0 :].strip()), "status": status})
    return todos


def to_todo_text(todos: object, name: str) -> object:
    """Return a list of todos as our text. What is no list of todos is returned as it is. name: the key of what a todo says."""
    if not isinstance(todos, list) or not all(isinstance(todo, dict) for todo in todos):
        return todos
    return "\n".join(f"- [{_MARKS.get(str(todo.get('status')), ' ')}] {todo.get(name, '')}" for todo in todos)
