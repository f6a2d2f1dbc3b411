"""Calls whose effects nobody can take back: they are named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from cru.engine.parts import Parts
from cru.events.payloads import FailureKind
from cru.revisions.records import FileChange
from cru.tools.protocol import Kind
from cru.values.messages import TOOL_CALL, TOOL_RESULT, Entry
from cru.values.visible import fold_blanks, visible

NEVER_RAN = {
    kind.value for kind in FailureKind if kind not in (FailureKind.FAILED, FailureKind.TIMEOUT, FailureKind.INTERRUPTED)
}
SHOWN = 80
MOST = 5


def find_unkept(parts: Parts, entries: Sequence[Entry], changes: Iterable[FileChange]) -> Iterator[str]:
    """A line of commands, one of files and one of other tools, as far as there are any."""
    kept = {change.origin.call for change in changes}
    results = {entry.tool_call_id: entry for entry in entries if entry.entry_type == TOOL_RESULT}
    unkept: dict[Kind, list[str]] = {}
    for entry in entries:
        if (
            entry.entry_type != TOOL_CALL
            or entry.tool_call_id in kept
            or not _may_have_run(results.get(entry.tool_call_id))
        ):
            continue
        tool = parts.tools.find(entry.to)
        kind: Kind = "tool" if tool is None else tool.kind
        if kind == "shell" or (kind == "write" and not _failed(results.get(entry.tool_call_id))):
            unkept.setdefault(kind, []).append(_short(_subject(entry, "command" if kind == "shell" else "file_path")))
        elif kind == "tool":
            unkept.setdefault(kind, []).append(entry.to)
    for of_kind, text in TEXTS.items():
        if names := list(dict.fromkeys(unkept.get(of_kind, ()))):
            more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
            yield f"{text}: {', '.join(names[:MOST])}{more}"


TEXTS: dict[Kind, str] = {
    "shell": "commands ran that cannot be taken back",
    "write": "files were written of which no revision is kept",
    "tool": "tools ran whose effects are not known",
}


def _may_have_run(result: Entry | None) -> bool:
    return result is None or result.metadata.get("which") not in NEVER_RAN


def _failed(result: Entry | None) -> bool:
    return result is not None and bool(result.metadata.get("is_error"))


def _subject(entry: Entry, name: str) -> str:
    try:
        value = msgspec.json.decode(entry.content)
    except msgspec.DecodeError:
        return entry.to
    return str(value.get(name) or entry.to) if isinstance(value, dict) else entry.to


def _short(text: str) -> str:
    shown = visible(fold_blanks(text))
    return f"`{shown}`" if len(shown) <= SHOWN else f"`{shown[: SHOWN - 1]}…`"
