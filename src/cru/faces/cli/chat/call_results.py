"""What a finished call of a tool shows in the chat: the diff of a change, the last lines of a command."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING

from cru.core.base.values.interruptions import CallInterrupted
from cru.core.events.payloads import FailureKind, ToolCompleted, ToolFailed
from cru.core.turn.parts import Parts
from cru.faces.cli.chat.todos import parse_todo
from cru.faces.cli.console import one_line, printable

if TYPE_CHECKING:
    from cru.core.revisions.records import ChangeOrigin

DIFF_LINES, OUTPUT_LINES, TODO_LINES = 40, 5, 20
TODOS = "update_todos"
LONG_LINE = 400
"""Characters that are shown of a line."""
LONG_CALL = 1_000.0
"""Milliseconds from which it is said how long a call took."""


HAS_RUN = (FailureKind.FAILED.value, FailureKind.TIMEOUT.value)


SHOWN = (ToolCompleted, ToolFailed, CallInterrupted)
"""Of which payloads a chat shows results."""


class LineLook(Enum):
    """How a line is shown: its style in themes.py."""

    PLAIN = ""
    DIM = "dim"
    ADDED = "added"
    REMOVED = "removed"
    PLACE = "place"


Line = tuple[LineLook, str]
HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)")


class CallResults:
    """Of one session."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def lines(self, call: ToolCompleted | ToolFailed | CallInterrupted) -> list[Line]:
        """What is shown below the call; nothing of a call that only looked."""
        if isinstance(call, CallInterrupted):
            return list(_last_lines(call.output))
        tool = self._parts.tools.find(call.name)
        if tool is None:
            return []
        if isinstance(call, ToolFailed) and call.which not in HAS_RUN:
            return []
        if call.name == TODOS:
            return list(_todo_lines(str(call.args.get("content", ""))))
        if tool.kind == "shell":
            return [*_last_lines(call.result if isinstance(call, ToolCompleted) else call.error), *_duration(call)]
        return [*(self._diff(call.call_id) if tool.kind == "write" else ()), *_duration(call)]

    def _diff(self, call_id: str) -> Iterator[Line]:
        """Of what the call changed, if that is kept (docs/undo.md)."""
        keeper = self._parts.services.changes.known
        if keeper is None:
            return
        from cru.core.revisions import StoreFailed
        from cru.core.revisions.diff import diff_summary
        from cru.core.revisions.restore import summarize

        try:
            changes = [change for change in keeper.store.changes() if self._is_of(change.origin, call_id)]
            texts = [diff_summary(keeper.store, entry, self._name(entry.file)) for entry in summarize(changes)]
        except StoreFailed:  # told by who keeps files
            return
        lines = [line for text in texts for line in numbered(text)]
        yield from lines[:DIFF_LINES]
        if len(lines) > DIFF_LINES:
            yield LineLook.DIM, f"  … {len(lines) - DIFF_LINES} more lines; /diff shows all"

    def _is_of(self, origin: ChangeOrigin, call_id: str) -> bool:
        """Whether the call made it; a provider may use an id again for another prompt."""
        session, prompt = self._parts.bus.origin.session_id, self._parts.services.changes.prompt
        return (origin.call, origin.session, origin.prompt) == (call_id, session, prompt)

    def _name(self, file: str) -> str:
        name = os.path.relpath(file, self._parts.place.root.resolve())
        return file if name.startswith("..") else name


def _todo_lines(text: str) -> Iterator[Line]:
    lines = [line for line in text.split("\n") if line.strip()]
    for line in lines[:TODO_LINES]:
        todo = parse_todo(line)
        look = LineLook.DIM if todo is not None and todo.is_done else LineLook.PLAIN
        yield look, f"  {_cut(line)}"
    if len(lines) > TODO_LINES:
        yield LineLook.DIM, f"  … {len(lines) - TODO_LINES} more lines"


def _last_lines(output: str) -> Iterator[Line]:
    lines = [line for line in printable(output).split("\n") if line.strip()]
    if len(lines) > OUTPUT_LINES:
        yield LineLook.DIM, f"  | … {len(lines) - OUTPUT_LINES} lines before"
    yield from ((LineLook.DIM, f"  | {_cut(line)}") for line in lines[-OUTPUT_LINES:])


def _duration(call: ToolCompleted | ToolFailed) -> Iterator[Line]:
    if call.duration >= LONG_CALL:
        yield LineLook.DIM, f"  {call.duration / 1_000:.1f} s"


def numbered(diff: str) -> Iterator[Line]:
    """A unified diff with the number of each line in front: of a line that went in the old file, of all others in the new one."""
    old = new = 0
    for line in diff.split("\n") if diff else ():
        if hunk := HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[2])
            yield LineLook.PLACE, f"  {line}"
        elif not new and not old:
            yield LineLook.DIM, f"  {_cut(line)}"  # the names
        else:
            look = {"+": LineLook.ADDED, "-": LineLook.REMOVED}.get(line[:1], LineLook.PLAIN)
            yield look, f"  {old if look is LineLook.REMOVED else new:>5} {_cut(line)}"
            old, new = old + (look is not LineLook.ADDED), new + (look is not LineLook.REMOVED)


def _cut(line: str) -> str:
    return one_line(line, LONG_LINE)


def styled(lines: list[Line], escape: Callable[[str], str]) -> str:
    """The lines for a terminal. escape: the parameters of the escape sequence of a style, "" = none."""
    codes = ((escape(look.value) if look is not LineLook.PLAIN else "", text) for look, text in lines)
    return "".join(f"\x1b[{code}m{text}\x1b[0m\n" if code else f"{text}\n" for code, text in codes)
