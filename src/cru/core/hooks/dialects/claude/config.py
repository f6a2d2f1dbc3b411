"""The `hooks` of a settings.json of Claude Code: event → groups {matcher, hooks} → handlers, made flat in the order of the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

from msgspec.structs import replace

from cru.core.base.config.closest import did_you_mean
from cru.core.hooks.dialects.claude import matching
from cru.core.hooks.dialects.claude.permissions import read_folders, read_permissions
from cru.core.hooks.model.entry import HookEntry, HookSource, Kind, ProblemKind
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import ForeignSettings, ParsedFile
from cru.core.hooks.parsing import nested
from cru.core.hooks.parsing.nested import NestedHandler
from cru.core.hooks.parsing.reading import Reading, describe_mistyped, parse_seconds, typed_value

GROUP = ("matcher", "hooks")
COMMON = ("type", "if", "timeout", "statusMessage", "once", "onFailure")
# What a handler of each type may have beside these; the first is what it cannot be without.
TYPES: dict[str, tuple[str, ...]] = {
    "command": ("command", "args", "async", "asyncRewake", "shell"),
    "http": ("url", "headers", "allowedEnvVars"),
    "mcp_tool": ("tool", "server", "input"),
    "prompt": ("prompt", "model", "continueOnBlock"),
    "agent": ("prompt", "model"),
}
KEYS = (*COMMON, *dict.fromkeys(key for keys in TYPES.values() for key in keys))
DECIDES: dict[str, type] = {"if": str, "async": bool, "asyncRewake": bool}
"""Of the wrong type, they keep a handler from running: nobody can tell what was meant."""
SHELLS = ("bash", "powershell")
ON_FAILURE: dict[object, Literal["", "deny"]] = {None: "", "continue": "", "block": "deny"}
"""`onFailure` → `on_error`."""
TIMEOUT = 600.0
OF_TYPE = {"prompt": 30.0, "agent": 60.0}
OF_EVENT = {
    "UserPromptSubmit": 30.0,
    "MessageDisplay": 10.0,
    "SessionEnd": 1.5,
    "PreModelSwitch": 30.0,
    "PostModelSwitch": 30.0,
}
"""Seconds, where a handler does not say."""
ENDING, ENDING_VARIABLE = 60.0, "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"
"""More than that nothing gets at the end of a session."""
OF_THIS_FILE = "`disableAllHooks` of a project's file switches off the hooks of this file only"
SWITCHES = "`cru hooks disable ID` and `--hooks=none` switch off others"
ONCE = "`once` counts in skills only, as in Claude Code: the hook runs each time"


def read_entries(source: HookSource, events: Collection[str], facts: SessionFacts, is_off: bool) -> ParsedFile:
    """All handlers of a file. `disableAllHooks` holds for the file itself and for those above it; a project cannot switch off the user's
    hooks. events: the names that there are; is_off: whether a file below switches off all hooks."""
    reading = Reading(source)
    disabled = reading.typed(reading.value, "disableAllHooks", bool, False)
    by_user = is_off or (disabled and source.layer != "project")
    if disabled and source.layer == "project":
        reading.wrong(OF_THIS_FILE, SWITCHES, line=reading.line("disableAllHooks"), kind=ProblemKind.IGNORED)
    shape = nested.ConfigShape(events, (), GROUP, KEYS)
    handlers = nested.read_handlers(reading, shape)
    entries = [entry for handler in handlers if (entry := _entry(reading, handler, facts.env)) is not None]
    if disabled or by_user:
        entries = [replace(entry, enabled=False, off_by_user=by_user) for entry in entries]
    env, (rules, lines) = _read_env(reading), read_permissions(reading, facts)
    settings = ForeignSettings(env, rules, read_folders(reading, facts), lines)
    return ParsedFile(entries, reading.problems, frozenset(("all",)) if by_user else frozenset(), settings)


def _read_env(reading: Reading) -> dict[str, str]:
    """`env`: variables as texts; numbers and truth values as they are written."""
    table = reading.typed(reading.value, "env", dict, {})
    env = {}
    for name, value in table.items():
        if isinstance(value, str):
            env[name] = value
        elif isinstance(value, int | float):
            env[name] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            reading.wrong(f"env: `{name}` must be a text", line=reading.line("env", name))
    return env


def _entry(reading: Reading, handler: NestedHandler, env: Mapping[str, str]) -> HookEntry | None:
    """One handler; None if it is of no type. What keeps it from ever running is its `problem`."""
    table, event = handler.handler, handler.event
    kind = table.get("type", "command")
    if not isinstance(kind, str) or kind not in TYPES:
        hint = did_you_mean(kind, TYPES) if isinstance(kind, str) else ""
        reading.wrong(
            f"{event}: the `type` of a handler is one of {', '.join(TYPES)}",
            hint,
            line=handler.line,
            kind=ProblemKind.PART,
        )
        return None
    main, matcher = table.get(TYPES[kind][0]), handler.group.get("matcher")
    matcher = "" if matcher is None else matcher
    condition, rewake = typed_value(table, "if", str, ""), typed_value(table, "asyncRewake", bool, False)
    if reading.typed(table, "once", bool, False, *handler.at):
        reading.wrong(f"{event}: {ONCE}", line=reading.line(*handler.at, "once"), key="once")
    return HookEntry(
        id=reading.id(event, handler.definition), dialect="claude", event=event, source=reading.source, line=handler.line,
        kind=next(name for name in get_args(Kind) if name == kind), command=main if isinstance(main, str) else "",
        args=_arguments(table.get("args")), shell=table["shell"] if table.get("shell") in SHELLS else "",
        matcher=matcher if isinstance(matcher, str) else "", condition=condition,
        timeout=_timeout(reading, handler, kind, env), asynchronous=typed_value(table, "async", bool, False) or rewake,
        rewake=rewake, definition=handler.definition, on_error=_on_failure(reading, handler),
        problem=_broken(kind, table) or describe_mistyped(table, DECIDES)
        or _bad_matcher(event, matcher) or matching.check_condition(event, condition),
    )  # fmt: skip


def _on_failure(reading: Reading, handler: NestedHandler) -> Literal["", "deny"]:
    """What becomes of a gate if the hook fails. A word that nobody knows was meant to guard: it counts as `block`."""
    value = handler.handler.get("onFailure")
    if value is None or (isinstance(value, str) and value in ON_FAILURE):
        return ON_FAILURE[value]
    reading.wrong(
        f"{handler.event}: `onFailure` is continue or block; it counts as block",
        did_you_mean(value, ("continue", "block")) if isinstance(value, str) else "",
        line=reading.line(*handler.at, "onFailure"),
        kind=ProblemKind.PART,
    )
    return "deny"


def _arguments(words: object) -> tuple[str, ...] | None:
    return tuple(map(str, words)) if isinstance(words, list) else None


def _broken(kind: str, table: dict[str, Any]) -> str:
    """Why a handler can never run; "" if it can."""
    if "type" not in table:
        return '`type` is missing, as in "type": "command"'
    key = TYPES[kind][0]
    if not isinstance(table.get(key), str) or not table[key].strip():
        return f"`{key}` is missing"
    args, shell = table.get("args"), table.get("shell")
    if args is not None and not (isinstance(args, list) and all(isinstance(word, str) for word in args)):
        return "`args` must be a list of texts"
    if shell is not None and shell not in SHELLS:
        return f"`shell` is one of {', '.join(SHELLS)}"
    return ""


def _bad_matcher(event: str, matcher: object) -> str:
    return matching.check_matcher(event, matcher) if isinstance(matcher, str) else "`matcher` must be a text"


def _timeout(reading: Reading, handler: NestedHandler, kind: str, env: Mapping[str, str]) -> float:
    """Seconds: what the handler says, else what its event or its type usually gets."""
    event, timeout = handler.event, handler.handler.get("timeout")
    usual = OF_EVENT.get(event) or OF_TYPE.get(kind) or TIMEOUT
    if event == "SessionEnd" and env.get(ENDING_VARIABLE, "").isdecimal():
        usual = float(env[ENDING_VARIABLE]) / 1000 or usual
    seconds = parse_seconds(timeout)
    if timeout is not None and seconds is None:
        reading.wrong(
            f"{event}: `timeout` must be a number of seconds", line=reading.line(*handler.at, "timeout"), key="timeout"
        )
    seconds = float(usual if seconds is None else seconds)
    return min(seconds, ENDING) if event == "SessionEnd" else seconds
