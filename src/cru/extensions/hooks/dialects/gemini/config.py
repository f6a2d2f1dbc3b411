"""The hooks of a settings.json of Gemini CLI: JSON with comments, nested groups, time limits in milliseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cru.extensions.hooks.model.entry import HookEntry, HookSource
from cru.extensions.hooks.model.mapping import Events, ParsedFile, PathFact
from cru.extensions.hooks.parsing.nested import ConfigShape, NestedHandler, has_no_subject, read_handlers
from cru.extensions.hooks.parsing.reading import MOST_SECONDS, Reading, check_regex_cost, describe_mistyped, typed_value

TIMEOUT = 60_000
CONFIG = ("enabled", "disabled", "notifications")
"""Keys of `hooksConfig`; older files have them in `hooks`."""
GROUP = ("matcher", "sequential", "hooks")
HANDLER = ("type", "command", "name", "description", "timeout", "env")
CHAINED = ("BeforeToolSelection",)
"""Events whose hooks always run one after another: each adds to what the ones before it allow."""
FOLDERS: dict[str, PathFact] = {"GEMINI_PROJECT_DIR": "root", "GEMINI_CWD": "cwd", "CLAUDE_PROJECT_DIR": "root"}
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
    found = list(read_handlers(reading, ConfigShape(list(events), CONFIG, GROUP, HANDLER)))
    chained = {one.event for one in found if _is_sequential(reading, one)} | set(CHAINED)
    off = switches.disabled | below
    made = [_entry(reading, events, one, one.event in chained) for one in found]
    made = [_switched(entry, switches.enabled, off) for entry in made]
    entries = [replace(entry, off_by_user=_called(entry) in below) for entry in made]
    return ParsedFile(entries, reading.problems, frozenset() if source.layer == "project" else switches.disabled)


def _is_sequential(reading: Reading, one: NestedHandler) -> bool:
    return bool(reading.typed(one.group, "sequential", bool, False, *one.at[:-2]))


def _switches(reading: Reading) -> GeminiSwitches:
    hooks = reading.value.get("hooks")
    older = {key: hooks[key] for key in CONFIG if key in hooks} if isinstance(hooks, dict) else {}
    said = {**older, **reading.typed(reading.value, "hooksConfig", dict, {})}
    at = "hooksConfig" if "hooksConfig" in reading.value else "hooks"
    listed = reading.typed(said, "disabled", list, [], at)
    disabled = frozenset(one for one in listed if isinstance(one, str))
    if len(disabled) < len({*map(repr, listed)}):
        reading.wrong("`disabled` must be a list of names", line=reading.line(at, "disabled"))
    return GeminiSwitches(reading.typed(said, "enabled", bool, True, at), disabled)


def _entry(reading: Reading, events: Events, one: NestedHandler, chained: bool) -> HookEntry:
    said = one.handler
    command, name = said.get("command"), typed_value(said, "name", str, "")
    kind, wrong = said.get("type", "command"), ""
    if kind != "command":
        wrong = f"`type` is {kind!r}; Gemini's settings know only command"
    elif not isinstance(command, str) or not command.strip():
        wrong = "`command` is missing"
    wrong = (
        wrong
        or describe_mistyped(said, {"name": str, "env": dict})
        or _bad_env(said)
        or describe_mistyped(one.group, {"matcher": str})
    )
    command, matcher = command if isinstance(command, str) else "", _matcher(reading, events, one)
    if matcher and (slow := check_regex_cost(matcher)):
        wrong = wrong or f"invalid matcher {matcher}: {slow}"
    return HookEntry(
        id=reading.id(one.event, one.definition), dialect="gemini", event=one.event, source=reading.source, line=one.line,
        name=name, command=quote_folders(command), matcher=matcher, timeout=_seconds(reading, one),
        env=_env(said), sequential=chained, include_sub_agents=True, definition=one.definition, problem=wrong,
        alike=f"{name}:{command}",
    )  # fmt: skip


def _switched(entry: HookEntry, enabled: bool, off: frozenset[str]) -> HookEntry:
    return entry if enabled and _called(entry) not in off else replace(entry, enabled=False)


def _called(entry: HookEntry) -> str:
    return entry.name or entry.alike.removeprefix(":")


def _bad_env(said: Mapping[str, Any]) -> str:
    return next(
        (f"`env`: {name} must be a text" for name in typed_value(said, "env", dict, {}) if name not in _env(said)), ""
    )


def _matcher(reading: Reading, events: Events, one: NestedHandler) -> str:
    matcher = str(typed_value(one.group, "matcher", str, "")).strip()
    return "" if has_no_subject(reading, one, matcher, events[one.event]) else matcher


def _seconds(reading: Reading, one: NestedHandler) -> float:
    said = reading.typed(one.handler, "timeout", int, TIMEOUT, *one.at)
    if 0 < said < 1000:
        reading.wrong(
            f"`timeout` is {said} ms; Gemini counts milliseconds", line=reading.line(*one.at, "timeout"), key="timeout"
        )
    return min(said if said > 0 else TIMEOUT, MOST_SECONDS) / 1000


def _env(said: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in typed_value(said, "env", dict, {}).items() if isinstance(value, str)}


def quote_folders(command: str) -> str:
    """The command with Gemini's own variables in quotes where none are: Gemini puts their values in as one word, whatever a path
    looks like; a shell would take one with blanks apart."""
    out: list[str] = []
    at, quote = 0, ""
    while at < len(command):
        char = command[at]
        found = _USED.match(command, at) if not quote else None
        length = 1
        if found:
            char, length = f'"{found[0]}"', len(found[0])
        elif char == "\\" and quote != "'":
            char, length = command[at : at + 2], 2
        elif char in "\"'" and quote in ("", char):
            quote = "" if quote else char
        out.append(char)
        at += length
    return "".join(out)
