"""The hooks of Codex: `hooks.json`, `[hooks]` in config.toml, and the older `notify` there."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from msgspec.structs import replace

from cru.core.base.files.regular import read_regular
from cru.core.hooks import MAX_CONFIG_BYTES
from cru.core.hooks.model.entry import HookEntry, HookSource, Kind, ProblemKind
from cru.core.hooks.model.mapping import Events, ParsedFile
from cru.core.hooks.parsing.bounded_regex import check_regex
from cru.core.hooks.parsing.nested import ConfigShape, NestedHandler, has_no_subject, read_handlers
from cru.core.hooks.parsing.reading import (
    MOST_SECONDS,
    Reading,
    canonical_definition,
    describe_mistyped,
)
from cru.core.hooks.parsing.toml import open_reading

TIMEOUT = 600.0
LEAST = 1.0
ENDING = (1.0, 3.0)
"""Seconds of a hook of SessionEnd: what it has if it does not say, and the most."""
TYPES: dict[str, Kind] = {"command": "command", "prompt": "prompt", "agent": "agent", "mcp_tool": "mcp_tool"}
STATE = "state"
GROUP = ("matcher", "hooks")
HANDLER = (
    "type", "command", "commandWindows", "command_windows", "timeout", "timeoutSec", "timeout_sec", "async", "statusMessage",
    "status_message", "prompt", "model", "server", "tool", "input",
)  # fmt: skip
SECONDS = ("timeout", "timeoutSec", "timeout_sec")
NOTIFY = "notify"
SWITCH = "hooks"
"""What a file that switches hooks off tells those above it."""
NOTIFICATION = "CODEX_NOTIFICATION"
"""The variable that brings the JSON of `notify` to the command line that cru makes of it."""


def read_entries(source: HookSource, events: Events, is_off: bool) -> ParsedFile:
    """All handlers of a file, and its `notify`. `[features] hooks = false` in config.toml of its folder switches them off; that of a file
    of the user's also what stands in files above it (`is_off`)."""
    reading = open_reading(source)
    shape = ConfigShape([name for name in events if name != NOTIFY], (STATE,), GROUP, HANDLER)
    switched_off = _is_switched_off(reading)
    entries = [_entry(reading, events, handler, switched_off or is_off) for handler in read_handlers(reading, shape)]
    entries = [replace(entry, off_by_user=is_off) for entry in entries]
    argv = reading.value.get(NOTIFY) if source.path.suffix == ".toml" else None
    if argv is not None and argv != []:
        entries += _notify(reading, argv)
    reaches_up = switched_off and source.layer != "project"
    return ParsedFile(entries, reading.problems, frozenset({SWITCH}) if reaches_up else frozenset())


def _is_switched_off(reading: Reading) -> bool:
    path = reading.source.path.with_name("config.toml")
    if path == reading.source.path:
        return _says_off(reading.value)
    try:
        text = read_regular(path, MAX_CONFIG_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return False  # there is none, or its own reading tells what is wrong with it
    return _says_off(open_reading(replace(reading.source, path=path, text=text)).value)


def _says_off(value: Mapping[str, object]) -> bool:
    features = value.get("features")
    return isinstance(features, dict) and (features.get("hooks") is False or features.get("codex_hooks") is False)


def _entry(reading: Reading, events: Events, handler: NestedHandler, off: bool) -> HookEntry:
    kind = handler.handler.get("type", "command")
    command = handler.handler.get("command")
    matcher, wrong = _matcher(reading, handler, events)
    if not isinstance(kind, str) or kind not in TYPES:
        wrong = f"`type` must be one of {', '.join(TYPES)}"
    elif kind == "command" and not (isinstance(command, str) and command.strip()):
        wrong = "`command` is missing"
    return HookEntry(
        id=reading.id(handler.event, handler.definition), dialect="codex", event=handler.event, source=reading.source, line=handler.line,
        kind=TYPES.get(str(kind), "command"), command=command if isinstance(command, str) else "", matcher=matcher,
        timeout=_timeout(reading, handler), enabled=not off,
        definition=handler.definition, asynchronous=handler.handler.get("async") is True,
        problem=wrong or describe_mistyped(handler.handler, {"async": bool}),
    )  # fmt: skip


def _matcher(reading: Reading, handler: NestedHandler, events: Events) -> tuple[str, str]:
    """The matcher, "" where matchers have no effect, and what is wrong with it."""
    matcher = handler.group.get("matcher")
    if matcher is None or has_no_subject(reading, handler, matcher, events[handler.event]):
        return "", ""
    if not isinstance(matcher, str):
        return "", "`matcher` must be a text"
    wrong = "" if is_plain(matcher) or matcher == "*" else check_regex(matcher)
    return matcher, f"invalid matcher {matcher}: {wrong}" if wrong else ""


def is_plain(matcher: str) -> bool:
    """Whether it is a name or several with `|` between, and no regular expression."""
    return all(c.isascii() and (c.isalnum() or c in "_|") for c in matcher)


def _timeout(reading: Reading, handler: NestedHandler) -> float:
    key = next((key for key in SECONDS if key in handler.handler), SECONDS[0])
    seconds = reading.typed(handler.handler, key, int, None, *handler.at)
    if handler.event == "SessionEnd":
        return min(max(seconds or ENDING[0], LEAST), ENDING[1])
    return float(min(max(TIMEOUT if seconds is None else seconds, LEAST), MOST_SECONDS))


def _notify(reading: Reading, argv: object) -> list[HookEntry]:
    """`notify`: started with the JSON as its last argument and never waited for, so it is handed to the shell as a job of its own."""
    line = reading.line(NOTIFY)
    if (
        not isinstance(argv, list)
        or not all(isinstance(word, str) and "\0" not in word for word in argv)
        or not argv[0]
    ):
        reading.wrong(
            "`notify` must be a list of texts: the program and its arguments", line=line, kind=ProblemKind.PART
        )
        return []
    program, definition = shlex.quote(argv[0]), canonical_definition({NOTIFY: argv})
    command = (
        f"command -v {program} >/dev/null || {{ printf '%s: not found\\n' {program} >&2; exit 127; }}\n"
        f'{shlex.join(argv)} "${NOTIFICATION}" </dev/null >/dev/null 2>&1 &'
    )
    return [
        HookEntry(
            id=reading.id(NOTIFY, definition), dialect="codex", event=NOTIFY, source=reading.source, line=line, command=command,
            name=f"notify {argv[0]}", timeout=10.0, definition=definition,
        )
    ]  # fmt: skip
