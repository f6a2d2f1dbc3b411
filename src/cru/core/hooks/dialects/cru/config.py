"""cru's own hooks: `hooks.json`, and `[[hooks.entries]]` of config.toml (alone: `[[hooks]]`). Entries are flat, each with one
handler; Claude Code's nested groups are read as several."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from cru.core.base.config.closest import did_you_mean
from cru.core.events.catalog import BY_NAME
from cru.core.guard import BadRule
from cru.core.guard.rules.rules import parse_rule
from cru.core.hooks.dialects import foreign_names, load_dialects
from cru.core.hooks.dialects.claude.tools import TOOLS
from cru.core.hooks.model.entry import HookEntry, HookSource, Kind, ProblemKind, is_lua_file
from cru.core.hooks.model.mapping import EventMapping, Events, ParsedFile
from cru.core.hooks.parsing.bounded_regex import check_regex
from cru.core.hooks.parsing.nested import report_unknown_keys
from cru.core.hooks.parsing.positions import Path as Keys
from cru.core.hooks.parsing.reading import (
    Reading,
    canonical_definition,
    describe_mistyped,
    is_misspelt,
    parse_seconds,
    typed_value,
)
from cru.core.hooks.parsing.toml import open_reading

TIMEOUT = 60
# Every key of an entry and its type. The handlers come first; an entry has one of them (`args` may stand beside `command`).
HANDLERS = ("command", "args", "lua", "python", "file")
TYPES: dict[str, type] = {
    "command": str, "args": list, "lua": str, "python": str, "file": str, "event": str, "matcher": str, "if": str, "name": str,
    "env": dict, "cwd": str, "shell": str, "async": bool, "once": bool, "sequential": bool,
    "include_sub_agents": bool, "on_error": str, "priority": int, "enabled": bool,
}  # fmt: skip
SETTINGS = ("dialects", "disabled", "env_pass", "link_transcripts", "entries")
SHELLS = ("bash", "powershell")
ON_ERROR: dict[str, Literal["", "allow", "deny", "ask"]] = {"": "", "allow": "allow", "deny": "deny", "ask": "ask"}
WRITE = 'write {"event": "tool:before_call", "command": "…"}'


class EntryPosition(Struct, frozen=True):
    """Where an entry stands; `event` is the key that it stands under, "" in a list."""

    value: Any
    at: Keys
    event: str = ""


class HandlerSpec(Struct, frozen=True):
    """What an entry is to do, or why it cannot."""

    kind: Kind = "command"
    command: str = ""
    args: tuple[str, ...] | None = None
    problem: str = ""


def read_entries(source: HookSource, events: Events, canonical: Callable[[str], str]) -> ParsedFile:
    """All entries of a file. canonical: gives the name of an event as the table has it."""
    reading = open_reading(source, comments=True)
    misplaced = reading.report_misplaced_events(events)
    positions = [
        flat for position in _positions(reading, misplaced) for flat in _flat(reading, events, canonical, position)
    ]
    entries = [_entry(reading, events, canonical, position) for position in positions]
    return ParsedFile([entry for entry in entries if entry is not None], reading.problems)


def _positions(reading: Reading, misplaced: Sequence[str]) -> Iterator[EntryPosition]:
    value, is_toml = reading.value, reading.source.path.suffix == ".toml"
    if not is_toml:
        report_unknown_keys(
            reading, {key: None for key in value if not is_misspelt(key)}, ("hooks", "$schema", *misplaced), ()
        )
    hooks = value.get("hooks")
    if isinstance(hooks, list):
        yield from (EntryPosition(entry, ("hooks", number)) for number, entry in enumerate(hooks))
    elif isinstance(hooks, dict) and is_toml:
        listed = reading.typed(hooks, "entries", list, [], "hooks", kind=ProblemKind.PART)
        yield from (EntryPosition(entry, ("hooks", "entries", number)) for number, entry in enumerate(listed))
    elif isinstance(hooks, dict):
        for event in hooks:
            listed = reading.typed(hooks, event, list, [], "hooks", kind=ProblemKind.PART)
            yield from (EntryPosition(entry, ("hooks", event, number), event) for number, entry in enumerate(listed))
    elif hooks is not None:
        reading.wrong(
            "`hooks` must be a list of entries, or an object of events",
            WRITE,
            line=reading.line("hooks"),
            kind=ProblemKind.PART,
        )


def _flat(
    reading: Reading, events: Events, canonical: Callable[[str], str], place: EntryPosition
) -> Iterator[EntryPosition]:
    """The entry; of Claude Code's nested form {matcher, hooks: [handler, ...]} each handler."""
    group = place.value
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        yield place
        return

    mappings = events.get(canonical(str(group.get("event") or place.event)), ())
    has_subject = any(mapping.subject is not None for mapping in mappings)
    for number, handler in enumerate(group["hooks"]):
        at = (*place.at, "hooks", number)
        kind = handler.get("type", "command") if isinstance(handler, dict) else None
        if kind == "command":
            yield EntryPosition(flatten_handler(group, handler, has_subject=has_subject), at, place.event)
        else:
            wrong = "a handler must be an object" if kind is None else f"cru's own hooks know no type `{kind}`"
            reading.wrong(
                wrong, 'write {"type": "command", "command": "…"}', line=reading.line(*at), kind=ProblemKind.PART
            )


def _entry(reading: Reading, events: Events, canonical: Callable[[str], str], place: EntryPosition) -> HookEntry | None:
    line = reading.line(*place.at)
    if not isinstance(place.value, dict):
        reading.wrong("an entry must be an object", WRITE, line=line, kind=ProblemKind.PART)
        return None
    values = {key: typed_value(place.value, key, kind, None) for key, kind in TYPES.items()}
    called = str(values["event"] or place.event)
    event = canonical(called)
    if "hooks" in place.value:
        hint = 'write {"matcher": "…", "command": "…"}, or a list of handlers as in Claude Code\'s settings'
        reading.wrong("`hooks` of an entry must be a list of handlers", hint, line=line, kind=ProblemKind.PART)
        return None
    if event not in events:
        hint = (_of_others(called) or did_you_mean(called, events)) if called else WRITE
        wrong = f"there is no event `{called}`" if called else "an entry needs an `event`"
        reading.wrong(wrong, hint, line=line, kind=ProblemKind.PART)
        return None
    report_unknown_keys(reading, place.value, (*TYPES, "timeout"), place.at)
    spec, definition = (
        _handler_spec(values, reading.source.path.parent),
        canonical_definition({"event": event, **place.value}),
    )
    timeout = _seconds(reading, place)
    return HookEntry(
        id=reading.id(event, definition), dialect="cru", event=event, source=reading.source, line=line, kind=spec.kind,
        name=values["name"] or "", command=spec.command, args=spec.args, shell=values["shell"] or "", matcher=values["matcher"] or "",
        condition=values["if"] or "", timeout=timeout, env=_env(values["env"]),
        enabled=values["enabled"] is not False, asynchronous=bool(values["async"]), once=bool(values["once"]),
        sequential=bool(values["sequential"]), include_sub_agents=values["include_sub_agents"],
        on_error=ON_ERROR.get(values["on_error"] or "", ""), priority=100 if values["priority"] is None else values["priority"],
        definition=definition, problem=describe_mistyped(place.value, TYPES) or spec.problem or _wrong(values, spec, events[event]),
        cwd=os.path.expanduser(values["cwd"] or ""),
    )  # fmt: skip


def _of_others(called: str) -> str:
    """Our name for an event that only other systems have, if we have it."""
    plain = called.replace("_", "").lower()
    for dialect in load_dialects(foreign_names()).values():
        for name, mappings in dialect.events.items():
            ours = list(dict.fromkeys(f"`{mapping.event}`" for mapping in mappings if mapping.event))
            if name.lower() == plain and ours:
                return f"{name} of {dialect.name} is {' or '.join(ours)} here"
    return ""


def _seconds(reading: Reading, place: EntryPosition) -> float:
    """`timeout`: seconds, with a fraction or without."""
    seconds = parse_seconds(place.value.get("timeout", TIMEOUT))
    if seconds is None:
        reading.wrong("`timeout` must be a number of seconds", line=reading.line(*place.at, "timeout"), key="timeout")
        return TIMEOUT
    return seconds


def _handler_spec(values: Mapping[str, Any], folder: Path) -> HandlerSpec:
    """The one handler of an entry. Files are meant from the folder of the configuration."""
    named, command = [key for key in HANDLERS if values[key] not in (None, "", [])], values["command"] or ""
    if len(named) > 1 and named != ["command", "args"]:
        both = ", ".join(f"`{key}`" for key in named)
        return HandlerSpec(
            problem=f"an entry needs exactly one of `command`, `lua`, `python`, `file`, and this has {both}",
            command=command,
        )
    if not named:
        return HandlerSpec(problem="an entry needs one of `command`, `args`, `lua`, `python`, `file`", command=command)
    if named[0] in ("command", "args"):
        args = values["args"]
        if args == []:
            return HandlerSpec(
                problem="`args` is empty: leave it out for a command of the shell", command=values["command"] or ""
            )
        if args is not None and not all(isinstance(word, str) for word in args):
            return HandlerSpec(problem="`args` must be a list of texts")
        return HandlerSpec(command=values["command"] or "", args=None if args is None else tuple(args))
    text = values[named[0]].strip()
    if named[0] == "file":
        path = _from(folder, text)
        return HandlerSpec("lua", path) if path.endswith(".lua") else HandlerSpec(command=shlex.quote(path))
    if named[0] == "lua":
        return HandlerSpec("lua", _from(folder, text) if is_lua_file(text) else text)
    file, colon, function = text.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        return HandlerSpec("python", text, problem='`python` must be "file.py:function"')
    return HandlerSpec("python", f"{_from(folder, file)}:{function}")


def _from(folder: Path, file: str) -> str:
    return os.path.normpath(folder / os.path.expanduser(file))


def _env(table: Any) -> dict[str, str]:
    return {name: value if isinstance(value, str) else str(value) for name, value in (table or {}).items()}


def _wrong(values: Mapping[str, Any], spec: HandlerSpec, mappings: Sequence[EventMapping]) -> str:
    """Why an entry never runs; "" if it does."""
    if values["on_error"] and values["on_error"] not in ON_ERROR:
        return f"`on_error` must be allow, deny or ask, not {values['on_error']}"
    bad_env = [name for name, value in (values["env"] or {}).items() if type(value) not in (str, int, float)]
    if bad_env:
        return f"`env`: {bad_env[0]} must be a text"
    if values["shell"] and values["shell"] not in SHELLS:
        return f"`shell` must be one of {', '.join(SHELLS)}"
    matcher = values["matcher"]
    if matcher and (bad := check_regex(matcher)):
        return f"invalid matcher {matcher}: {bad}"
    if matcher and all(mapping.subject is None for mapping in mappings):
        return "there is nothing at this event that `matcher` could look at"
    if spec.kind != "command" and values["async"]:
        return "`async` is for commands; a function in the session can start work of its own"
    return _bad_rule(values["if"], mappings) if values["if"] else ""


def _bad_rule(rule: str, mappings: Sequence[EventMapping]) -> str:
    live = [BY_NAME[mapping.event] for mapping in mappings if mapping.event]
    if not all("args" in row.payload.__struct_fields__ for row in live):
        return "`if` works on events of tools only, so this hook would never run"
    try:
        parse_rule(rule)
    except BadRule as error:
        return f"`if`: {error.message}" + (f" ({error.hint})" if error.hint else "")
    return ""


UNHEARD = ("type", "statusMessage")
"""Keys of a handler that change nothing here."""
_NAMES = re.compile(r"[A-Za-z0-9_\-,| ]*")


def flatten_handler(group: dict[str, Any], handler: dict[str, Any], *, has_subject: bool) -> dict[str, Any]:
    """Return the handler of a group as a flat entry. has_subject: whether its event has something for a matcher to look at; elsewhere
    Claude Code ignores matchers."""
    around = {key: value for key, value in group.items() if key != "hooks" and (key != "matcher" or has_subject)}
    entry = {**around, **{key: value for key, value in handler.items() if key not in UNHEARD}}
    if isinstance(entry.get("matcher"), str):
        entry["matcher"] = to_pattern(entry["matcher"])
    if entry.get("onFailure") == "block":
        del entry["onFailure"]
        entry["on_error"] = "deny"
    return entry


def to_pattern(matcher: str) -> str:
    """Return a matcher of Claude Code as the regular expression that fits the same tools by our names."""
    if matcher in ("", "*"):
        return ""
    if not _NAMES.fullmatch(matcher):
        return matcher
    words = [word.strip() for word in re.split("[|,]", matcher)]
    names = dict.fromkeys(name for word in words if word for name in (TOOLS.own_name(word), word))
    return f"^({'|'.join(map(re.escape, names))})$"
