"""The hooks, and excluded tools, of a settings.json of Gemini CLI: JSON with comments, nested groups, time limits in milliseconds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import decode_json
from cru.core.base.files.regular import read_regular
from cru.core.hooks.dialects.gemini.permissions import read_excluded
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.mapping import Events, FolderOf, ForeignSettings, ParsedFile
from cru.core.hooks.parsing.bounded_regex import check_regex_cost
from cru.core.hooks.parsing.common import project_folder
from cru.core.hooks.parsing.nested import ConfigShape, NestedHandler, has_no_subject, read_handlers
from cru.core.hooks.parsing.positions import without_comments
from cru.core.hooks.parsing.reading import MOST_SECONDS, Reading, describe_mistyped, typed_value

TIMEOUT = 60_000
CONFIG = ("enabled", "disabled", "notifications")
"""Keys of `hooksConfig`; older files have them in `hooks`."""
GROUP = ("matcher", "sequential", "hooks")
HANDLER = ("type", "command", "name", "description", "timeout", "env")
CHAINED = ("BeforeToolSelection",)
"""Events whose hooks always run one after another: each adds to what the ones before it allow."""
FOLDERS: dict[str, Literal["root"] | FolderOf] = {
    "GEMINI_PROJECT_DIR": project_folder(".gemini"), "GEMINI_CWD": "root", "CLAUDE_PROJECT_DIR": project_folder(".gemini"),
}  # fmt: skip
"""Gemini's own variables."""
_NAMES = "|".join(FOLDERS)
_USED = re.compile(rf"\$(?:\{{({_NAMES})\}}|({_NAMES})(?!\w))")


class GeminiSwitches(Struct, frozen=True):
    """What `hooksConfig` says: whether any hook runs, and names (or commands) of those that do not."""

    enabled: bool = True
    disabled: frozenset[str] = frozenset()


def read_entries(source: HookSource, events: Events, below: frozenset[str]) -> ParsedFile:
    """All handlers of a file. below: the names that lower layers switch off; they are off here, too. A project cannot switch off what the
    user has."""
    reading = Reading(source, comments=True)
    switches = _switches(reading)
    handlers = list(read_handlers(reading, ConfigShape(list(events), CONFIG, GROUP, HANDLER)))
    chained = {handler.event for handler in handlers if _is_sequential(reading, handler)} | set(CHAINED)
    off = switches.disabled | below
    entries = [_entry(reading, events, handler, handler.event in chained) for handler in handlers]
    entries = [_switched(entry, switches.enabled, off) for entry in entries]
    entries = [replace(entry, off_by_user=_called(entry) in below) for entry in entries]
    rules, lines = read_excluded(reading)
    settings = ForeignSettings(rules=rules, lines=lines)
    disables = frozenset() if source.layer == "project" else switches.disabled
    return ParsedFile(entries, reading.problems, disables, settings)


def _is_sequential(reading: Reading, handler: NestedHandler) -> bool:
    return bool(reading.typed(handler.group, "sequential", bool, False, *handler.at[:-2]))


def _switches(reading: Reading) -> GeminiSwitches:
    hooks = reading.value.get("hooks")
    older = {key: hooks[key] for key in CONFIG if key in hooks} if isinstance(hooks, dict) else {}
    settings = {**older, **reading.typed(reading.value, "hooksConfig", dict, {})}
    at = "hooksConfig" if "hooksConfig" in reading.value else "hooks"
    listed = reading.typed(settings, "disabled", list, [], at)
    disabled = frozenset(name for name in listed if isinstance(name, str))
    if len(disabled) < len({*map(repr, listed)}):
        reading.wrong("`disabled` must be a list of names", line=reading.line(at, "disabled"))
    return GeminiSwitches(reading.typed(settings, "enabled", bool, True, at), disabled)


def _entry(reading: Reading, events: Events, handler: NestedHandler, chained: bool) -> HookEntry:
    table = handler.handler
    command, name = table.get("command"), typed_value(table, "name", str, "")
    kind, wrong = table.get("type", "command"), ""
    if kind != "command":
        wrong = f"`type` is {kind!r}; Gemini's settings know only command"
    elif not isinstance(command, str) or not command.strip():
        wrong = "`command` is missing"
    wrong = (
        wrong
        or describe_mistyped(table, {"name": str, "env": dict})
        or _bad_env(table)
        or describe_mistyped(handler.group, {"matcher": str})
    )
    command, matcher = command if isinstance(command, str) else "", _matcher(reading, events, handler)
    if matcher and (slow := check_regex_cost(matcher)):
        wrong = wrong or f"invalid matcher {matcher}: {slow}"
    return HookEntry(
        id=reading.id(handler.event, handler.definition), dialect="gemini", event=handler.event, source=reading.source, line=handler.line,
        name=name, command=quote_folders(command), matcher=matcher, timeout=_seconds(reading, handler),
        env=_env(table), sequential=chained, definition=handler.definition, problem=wrong,
        equality_key=f"{name}:{command}",
    )  # fmt: skip


def _switched(entry: HookEntry, enabled: bool, off: frozenset[str]) -> HookEntry:
    return entry if enabled and _called(entry) not in off else replace(entry, enabled=False)


def _called(entry: HookEntry) -> str:
    return entry.name or entry.equality_key.removeprefix(":")


def _bad_env(table: Mapping[str, object]) -> str:
    return next(
        (f"`env`: {name} must be a text" for name in typed_value(table, "env", dict, {}) if name not in _env(table)), ""
    )


def _matcher(reading: Reading, events: Events, handler: NestedHandler) -> str:
    matcher = str(typed_value(handler.group, "matcher", str, "")).strip()
    return "" if has_no_subject(reading, handler, matcher, events[handler.event]) else matcher


def _seconds(reading: Reading, handler: NestedHandler) -> float:
    milliseconds = reading.typed(handler.handler, "timeout", int, TIMEOUT, *handler.at)
    if 0 < milliseconds < 1000:
        reading.wrong(
            f"`timeout` is {milliseconds} ms; Gemini counts milliseconds",
            line=reading.line(*handler.at, "timeout"),
            key="timeout",
        )
    return min(milliseconds if milliseconds > 0 else TIMEOUT, MOST_SECONDS) / 1000


def _env(table: Mapping[str, object]) -> dict[str, str]:
    return {name: value for name, value in typed_value(table, "env", dict, {}).items() if isinstance(value, str)}


def quote_folders(command: str) -> str:
    """The command with Gemini's own variables in quotes where none are: Gemini puts their values in as one word, whatever a path
    looks like; a shell would take one with blanks apart."""
    out: list[str] = []
    at, quote = 0, ""
    while at < len(command):
        char = command[at]
        match = _USED.match(command, at) if not quote else None
        length = 1
        if match:
            char, length = f'"{match[0]}"', len(match[0])
        elif char == "\\" and quote != "'":
            char, length = command[at : at + 2], 2
        elif char in "\"'" and quote in ("", char):
            quote = "" if quote else char
        out.append(char)
        at += length
    return "".join(out)


LIMIT_BYTES = 1 << 20


def read_context_names(files: Iterable[Path]) -> tuple[str, ...]:
    """Return `context.fileName` of these settings: what Gemini CLI calls its instruction files. What is no plain name of a file is left
    out, and so is a file that cannot be read: reading its hooks reports that."""
    names: list[str] = []
    for file in files:
        try:
            text = without_comments(read_regular(file, LIMIT_BYTES).decode("utf-8", "replace"))
            settings = decode_json(text, dict[str, Any])
        except (OSError, msgspec.DecodeError):
            continue
        context = settings.get("context")
        value = context.get("fileName") if isinstance(context, dict) else None
        listed = value if isinstance(value, list) else [value]
        names += [name for name in listed if isinstance(name, str) and name and "/" not in name and "\0" not in name]
    return tuple(dict.fromkeys(names))
