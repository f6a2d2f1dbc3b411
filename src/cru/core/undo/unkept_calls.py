"""Calls whose effects nobody can take back: they are named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from cru.core.base.files import is_inside
from cru.core.base.values.messages import TOOL_CALL, Entry
from cru.core.base.values.visible import fold_blanks, visible
from cru.core.guard.shell.readers import only_reads
from cru.core.revisions.records import ChangedBy, CommandLook, FileChange
from cru.core.tools.protocol import Kind
from cru.core.turn.parts import Parts
from cru.core.undo.call_outcomes import results_by_call, why_not_run

TEXTS: dict[Kind, str] = {
    "shell": "commands ran that cannot be taken back",
    "write": "files were written of which no revision is kept",
    "tool": "tools ran whose effects are not known",
    "flow": "sub-agents worked, whose commands cannot be taken back",
}
HEAD_MOVED = "commands have moved HEAD (a commit, another branch): that stays as it is"
IGNORED = "files that git ignores were changed or removed; they stay so"
SHOWN = 80
MOST = 5


def find_unkept(
    parts: Parts, entries: Sequence[Entry], changes: Iterable[FileChange], looks: Sequence[CommandLook]
) -> Iterator[str]:
    """A line for each kind of calls of which there are any, and whether the branch was moved."""
    kept = {change.origin.call for change in changes if change.origin.by is ChangedBy.TOOL}
    kept |= {look.origin.call for look in looks if not look.why}
    reasons = {look.origin.call: look.why for look in looks}
    unkept: dict[Kind, dict[str, None]] = {}
    for call in _calls_that_ran(entries):
        if call.tool_call_id not in kept:
            kind, name = _describe(parts, call, reasons.get(call.tool_call_id, ""))
            if name:
                unkept.setdefault(kind, {})[name] = None
    for look in looks:
        if look.origin.agent and look.why:
            unkept.setdefault("shell", {})[f"{_short(look.command)} ({look.why})"] = None
    for of_kind, text in TEXTS.items():
        if names := list(unkept.get(of_kind, ())):
            more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
            yield f"{text}: {', '.join(names[:MOST])}{more}"
    if ignored := list(dict.fromkeys(name for look in looks for name in look.ignored)):
        names = [_short(_below(name, parts.place.root)) for name in ignored[:MOST]]
        more = f" and {len(ignored) - MOST} more" if len(ignored) > MOST else ""
        yield f"{IGNORED}: {', '.join(names)}{more}"
    if any(look.moved_head for look in looks):
        yield HEAD_MOVED


def _calls_that_ran(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Those that may have done something: a file that was not written is as it was."""
    results = results_by_call(entries)
    for entry in entries:
        result = results.get(entry.tool_call_id)
        if entry.entry_type != TOOL_CALL or why_not_run(result):
            continue
        if entry.to not in ("write", "edit") or result is None or not result.metadata.get("is_error"):
            yield entry


def _describe(parts: Parts, call: Entry, why: str) -> tuple[Kind, str]:
    """What it was, "" if there is nothing to take back."""
    tool = parts.tools.find(call.to)
    kind: Kind = "tool" if tool is None else tool.kind
    if tool is not None and kind == "shell":
        command = _argument(call, "command")
        if not why and only_reads(command):
            return kind, ""
        return kind, f"{_short(command)}{f' ({why})' if why else ''}"
    if kind == "write":
        return kind, _short(_argument(call, "file_path") or call.to)
    if call.to == "task":
        bash = parts.tools.find("bash")
        is_watched = bash is not None and parts.services.changes.needs_record(bash, parts.place.root)
        return kind, "" if is_watched else _short(_argument(call, "description") or _argument(call, "agent"))
    return kind, call.to if kind == "tool" else ""


def _argument(call: Entry, name: str) -> str:
    try:
        value = msgspec.json.decode(call.content)
    except msgspec.DecodeError:
        return ""
    return str(value.get(name) or "") if isinstance(value, dict) else ""


def _below(name: str, root: Path) -> str:
    real = os.path.realpath(root)
    return os.path.relpath(name, real) if is_inside(name, real) else name


def _short(text: str) -> str:
    shown = visible(fold_blanks(text))
    return f"`{shown}`" if len(shown) <= SHOWN else f"`{shown[: SHOWN - 1]}…`"
