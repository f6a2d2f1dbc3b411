"""Configurations of the nested shape: event → groups {matcher, hooks} → handlers. Codex and Gemini have it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct

from cru.core.base.config.closest import did_you_mean
from cru.core.hooks.model.entry import ProblemKind
from cru.core.hooks.model.mapping import EventMapping
from cru.core.hooks.parsing.positions import Path
from cru.core.hooks.parsing.reading import Reading, canonical_definition, is_guarding

# What people write for a key that is too far from it to be a misprint.
SHORT = {
    "cmd": "command", "run": "command", "exec": "command", "script": "command", "shell_command": "command", "py": "python",
    "tool": "matcher", "tools": "matcher", "match": "matcher", "pattern": "matcher", "when": "if", "condition": "if", "dir": "cwd",
    "directory": "cwd", "environment": "env", "onerror": "on_error", "background": "async", "limit": "timeout", "hook": "event",
}  # fmt: skip


class NestedHandler(Struct, frozen=True):
    """One handler where it stands.

    group: the table around it
    handler: its own
    at, line: its place in the file
    definition: what it says, with what the group says about it, canonical
    """

    event: str
    group: dict[str, Any]
    handler: dict[str, Any]
    at: Path
    line: int
    definition: str


class ConfigShape(Struct, frozen=True):
    """What a dialect knows: its events, keys of `hooks` that are none, and the keys of a group and of a handler."""

    events: Collection[str]
    beside: Collection[str]
    group: Collection[str]
    handler: Collection[str]


def read_handlers(reading: Reading, shape: ConfigShape) -> Iterator[NestedHandler]:
    """Every handler in the order of the file. What is none, and names that nobody knows, are problems; so is a handler of no event."""
    reading.report_misplaced_events(shape.events)
    hooks = reading.typed(reading.value, "hooks", dict, {}, kind=ProblemKind.PART)
    for event in hooks:
        if event in shape.beside:
            continue
        if event not in shape.events:
            hint = did_you_mean(event, shape.events)
            kind = ProblemKind.PART if hint else ProblemKind.UNKNOWN_EVENT
            reading.wrong(f"there is no event `{event}`", hint, line=reading.line("hooks", event), kind=kind)
            continue
        for index, group in enumerate(reading.typed(hooks, event, list, [], "hooks", kind=ProblemKind.PART)):
            yield from _group(reading, shape, event, ("hooks", event, index), group)


def _group(reading: Reading, shape: ConfigShape, event: str, at: Path, group: object) -> Iterator[NestedHandler]:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        flat = isinstance(group, dict) and "command" in group
        hint = 'write {"matcher": "…", "hooks": [ … ]} around it' if flat else ""
        reading.wrong(f"{event}[{at[-1]}] needs a list `hooks`", hint, line=reading.line(*at), kind=ProblemKind.PART)
        return
    report_unknown_keys(reading, group, shape.group, at)
    around = {key: value for key, value in group.items() if key != "hooks"}
    for number, handler in enumerate(group["hooks"]):
        inner = (*at, "hooks", number)
        if not isinstance(handler, dict):
            reading.wrong(f"{event}: a handler must be an object", line=reading.line(*inner), kind=ProblemKind.PART)
            continue
        report_unknown_keys(reading, handler, shape.handler, inner)
        yield NestedHandler(
            event, group, handler, inner, reading.line(*inner), canonical_definition({**around, "handler": handler})
        )


def has_no_subject(reading: Reading, handler: NestedHandler, matcher: object, mappings: Sequence[EventMapping]) -> bool:
    """Whether there is nothing that a matcher could look at; told if there is a matcher all the same."""
    if any(mapping.subject is not None for mapping in mappings):
        return False
    if matcher not in ("", "*") and any(mapping.event for mapping in mappings):
        reading.wrong(
            f"a matcher has no effect on {handler.event}", line=reading.line(*handler.at[:-2], "matcher"), key="matcher"
        )
    return True


def report_unknown_keys(reading: Reading, table: dict[str, object], known: Collection[str], at: Path) -> None:
    """A problem for each key that nobody knows; of one that was meant to guard, a part of the hook is left out."""
    for key in table:
        if key not in known:
            meant = SHORT.get(key.lower(), "")
            hint = f"did you mean `{meant}`?" if meant in known else did_you_mean(key, known)
            kind = ProblemKind.PART if is_guarding(key) else ProblemKind.ODDITY
            reading.wrong(f"`{key}` is not known here", hint, line=reading.line(*at, key), kind=kind, key=key)
