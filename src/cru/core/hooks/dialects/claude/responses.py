"""`tool_response` in Claude Code's shapes: what files held before and after a call, and what the model reads of each call of a batch.

Our events carry a result as text only, so that all this is looked at just where hooks of PostToolUse or PostToolBatch are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from msgspec import Struct

from cru.core.base.files.regular import read_regular
from cru.core.events.payloads import ToolCalled, ToolSettled
from cru.core.events.stamp import Event
from cru.core.hooks.dialects.claude.tools import NO_OUTPUT, TODO_LIST
from cru.core.hooks.model.facts import FactsOf, SessionFacts
from cru.core.hooks.parsing.common import save_text

CHANGES_FILE = ("write", "edit")
LARGEST = 8 << 20
"""Bytes of a file that is looked at; of a larger one there is no content and no patch."""
_TASK = re.compile(r"\[(?:the command runs in the background as )?task ([0-9a-f]+)\b")
"""How `bash` names the task of a command that goes on in the background."""
NO_NEWLINE = "\\ No newline at end of file"
CONTEXT_LINES = 3
LONGEST_OUTPUT = 30_000
"""Characters of an output from which Claude Code saves it to a file, and cru does unless `tool_output_cache_threshold` says otherwise."""
COMPARED = 2_000
"""Lines between the first and the last change that are compared; more are one hunk."""


class CallRecord(Struct):
    """What hooks are told of calls that run.

    before: call → text of the file that it changes, or the todos that it replaces; None: there was none
    todos: the todos that a sub-agent has set last
    results: call → what the model reads
    """

    before: dict[str, str | None] = {}
    todos: str | None = None
    results: dict[str, str] = {}


def note_file(facts_of: FactsOf) -> Callable[[Event], None]:
    """A handler of `tool:called` that keeps what a file holds before it is changed."""

    def note(event: Event) -> None:
        payload = event.payload
        if isinstance(payload, ToolCalled) and payload.name in CHANGES_FILE:
            facts = facts_of(event.stamp)
            facts.state(CallRecord).before[payload.call_id] = _text_of(_path(facts, payload.args))
        elif isinstance(payload, ToolCalled) and payload.name == "update_todos":
            facts = facts_of(event.stamp)
            facts.state(CallRecord).before[payload.call_id] = _todos(facts)

    return note


def note_result(facts_of: FactsOf) -> Callable[[Event], None]:
    """A handler of `tool:settled` that keeps what the model reads."""

    def note(event: Event) -> None:
        payload = event.payload
        if isinstance(payload, ToolSettled):
            facts_of(event.stamp).state(CallRecord).results[payload.call_id] = payload.content

    return note


def forget_calls(facts_of: FactsOf) -> Callable[[Event], None]:
    """A handler of `message:before_send`: the batch is over."""

    def forget(event: Event) -> None:
        record = facts_of(event.stamp).state(CallRecord)
        record.before, record.results = {}, {}

    return forget


def tool_response(
    tool: str,
    args: Mapping[str, object],
    tool_input: Mapping[str, object],
    text: str,
    call_id: str,
    facts: SessionFacts,
) -> dict[str, object]:
    """What the tool gave. `args` in our words, `tool_input` in Claude Code's; `text` is always there, as the model reads it."""
    if tool in CHANGES_FILE:
        before = facts.state(CallRecord).before.get(call_id)
        return {**_changed(tool, tool_input, before, _text_of(_path(facts, args))), "text": text}
    if tool == "read":
        return {**_read(args, tool_input, text, _text_of(_path(facts, args))), "text": text}
    if tool == "task":
        from cru.core.hooks.dialects.claude.tasks import describe_call

        return {**describe_call(tool_input, text, call_id, facts), "text": text}
    if tool == "update_todos":
        return {**_replaced_todos(args, tool_input, call_id, facts), "text": text}
    if tool == "bash":
        return {**_bash(tool_input, text), **_saved(text, facts), "text": text}
    shape = _SHAPES.get(tool)
    return {**(shape(tool_input, text) if shape else {"content": text}), "text": text}


def _path(facts: SessionFacts, args: Mapping[str, object]) -> Path:
    return facts.root / Path(str(args.get("file_path", ""))).expanduser()


def _text_of(path: Path) -> str | None:
    """None: there is none, it is no text, or it is too large."""
    try:
        return read_regular(path, LARGEST).decode()
    except (OSError, UnicodeDecodeError):
        return None


def _changed(tool: str, tool_input: Mapping[str, object], before: str | None, after: str | None) -> dict[str, object]:
    patch = structured_patch(before, after) if before is not None and after is not None else []
    common = {"originalFile": before, "structuredPatch": patch, "userModified": False}
    if tool == "edit":
        strings = {"oldString": tool_input.get("old_string"), "newString": tool_input.get("new_string")}
        whole = {"replaceAll": tool_input.get("replace_all", False)}
        return {"filePath": tool_input.get("file_path"), **strings, **common, **whole}
    kind = "create" if before is None else "update"
    return {"type": kind, "filePath": tool_input.get("file_path"), "content": tool_input.get("content"), **common}


def _read(
    args: Mapping[str, object], tool_input: Mapping[str, object], text: str, content: str | None
) -> dict[str, object]:
    start = args.get("offset", 1)
    file: dict[str, object] = {"filePath": tool_input.get("file_path"), "content": text}
    if content is not None and isinstance(start, int):
        lines = content.split("\n")
        limit = args.get("limit")
        page = lines[start - 1 : start - 1 + limit] if isinstance(limit, int) else lines[start - 1 :]
        file |= {"content": "\n".join(page), "numLines": len(page), "startLine": start, "totalLines": len(lines)}
    return {"type": "text", "file": file}


def structured_patch(before: str, after: str) -> list[dict[str, object]]:
    """The hunks between two texts, with three lines around each change."""
    old, new = _lines(before), _lines(after)
    head = _same_at_start(old, new)
    tail = _same_at_start(old[head:][::-1], new[head:][::-1])
    blocks = _changes(old[head : len(old) - tail], new[head : len(new) - tail])
    hunks: list[list[tuple[int, int, int, int]]] = []
    for a1, a2, b1, b2 in ((a1 + head, a2 + head, b1 + head, b2 + head) for a1, a2, b1, b2 in blocks):
        if hunks and a1 - hunks[-1][-1][1] <= 2 * CONTEXT_LINES:
            hunks[-1].append((a1, a2, b1, b2))
        else:
            hunks.append([(a1, a2, b1, b2)])
    return [_hunk(old, new, blocks) for blocks in hunks]


def _lines(text: str) -> list[str]:
    """Its lines with their ends, of which the last may have none."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _same_at_start(old: Sequence[str], new: Sequence[str]) -> int:
    return next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _changes(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    if not old and not new:
        return []
    if len(old) + len(new) > COMPARED:
        return [(0, len(old), 0, len(new))]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [(a1, a2, b1, b2) for tag, a1, a2, b1, b2 in matcher.get_opcodes() if tag != "equal"]


def _hunk(old: Sequence[str], new: Sequence[str], blocks: Sequence[tuple[int, int, int, int]]) -> dict[str, object]:
    start = max(blocks[0][0] - CONTEXT_LINES, 0)
    end = min(blocks[-1][1] + CONTEXT_LINES, len(old))
    marked, at = [], start
    for a1, a2, b1, b2 in blocks:
        marked += [f" {line}" for line in old[at:a1]]
        marked += [f"-{line}" for line in old[a1:a2]] + [f"+{line}" for line in new[b1:b2]]
        at = a2
    marked += [f" {line}" for line in old[at:end]]
    first = blocks[0][2] - (blocks[0][0] - start)
    length = sum(not line.startswith("-") for line in marked)
    lines = [part for line in marked for part in ([line[:-1]] if line.endswith("\n") else [line, NO_NEWLINE])]
    return {"oldStart": start + 1, "oldLines": end - start, "newStart": first + 1, "newLines": length, "lines": lines}


def _bash(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    """Our tool gives both streams as one, in the order of their lines."""
    task = _TASK.match(text) if tool_input.get("run_in_background") else None
    stdout = "" if text == NO_OUTPUT or task is not None else text
    shape = {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
    return shape if task is None else {**shape, "backgroundTaskId": task[1]}


def _saved(text: str, facts: SessionFacts) -> dict[str, object]:
    """The file of a long output. The engine saves what is left of the output only after the hooks, which may rewrite it."""
    if len(text) <= LONGEST_OUTPUT:
        return {}
    try:
        path = save_text(text, facts)
        return {"persistedOutputPath": str(path), "persistedOutputSize": path.stat().st_size}
    except OSError as error:
        facts.warn(f"a long output could not be saved for hooks: {error.strerror or error}")
        return {}


def _todos(facts: SessionFacts) -> str | None:
    """The todos as they are now: the main agent's are a file of its context, a sub-agent begins with none."""
    if facts.agent_transcript is not None:
        return facts.state(CallRecord).todos
    return _text_of(facts.folder / "todos.md")


def _replaced_todos(
    args: Mapping[str, object], tool_input: Mapping[str, object], call_id: str, facts: SessionFacts
) -> dict[str, object]:
    record = facts.state(CallRecord)
    record.todos = str(args.get("content", ""))
    return {"oldTodos": TODO_LIST.to_foreign(record.before.get(call_id) or ""), "newTodos": tool_input.get("todos")}


def _glob(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    lines = text.splitlines()
    return {"filenames": lines, "numFiles": len(lines)}


def _grep(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    return {"mode": "content", "content": text, "numLines": len(text.splitlines())}


def _fetch(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    return {"url": tool_input.get("url"), "result": text}


def _task_stop(tool_input: Mapping[str, object], text: str) -> dict[str, object]:
    return {"message": text, "task_id": tool_input.get("task_id")}


_SHAPES: dict[str, Callable[[Mapping[str, object], str], dict[str, object]]] = {
    "glob": _glob, "grep": _grep, "fetch": _fetch, "task_cancel": _task_stop,
}  # fmt: skip
