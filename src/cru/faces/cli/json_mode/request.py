"""`--json-config`: the whole command as one JSON object on standard input (docs/json.md). It becomes the flags and words that a person
would have typed, and goes their road; the last line on standard error says how it ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from cru.config.closest import did_you_mean
from cru.faces.cli.flags import FLAGS, Flag, Parsed, UsageProblem, find

MOST = 32 << 20
"""Bytes of an object."""

Given = tuple[Flag, tuple[str, ...]]


class JsonRequest(Struct, frozen=True):
    """The object."""

    command: str | dict[str, Any]
    context: str | dict[str, Any] = "current"
    username: str | dict[str, str] = ""
    flags: dict[str, Any] = {}
    home: str = ""
    project_root: str = ""
    config: dict[str, Any] = {}
    overrides: dict[str, str | int | float | bool] = {}


class JsonCommand(Struct, frozen=True):
    """A command: its fields in the order of the flag's values (`x?` may be left out, `x*` is a list that may), and the flag; `other` is
    the one that takes the first field, if that may be left out and is there."""

    fields: tuple[str, ...] = ()
    flag: str = ""
    other: str = ""


DESTROY = JsonCommand(("name",), "--delete-context")
ARCHIVE = JsonCommand(("name?",), "--archive-current-context", "--archive-context")
SEND = JsonCommand(("prompt",))
COMMANDS: dict[str, JsonCommand] = {
    "send_prompt": SEND,
    "resume": JsonCommand((), "--resume"),
    "list_contexts": JsonCommand((), "--list-contexts"),
    "list_current_context": JsonCommand((), "--list-current-context"),
    "destroy_context": DESTROY,
    "delete_context": DESTROY,
    "archive_history": ARCHIVE,
    "archive_context": ARCHIVE,
    "compact_context": JsonCommand(("name?",), "--compact-current-context", "--compact-context"),
    "rename_context": JsonCommand(("old?", "new"), "--rename-current-context", "--rename-context"),
    "show_log": JsonCommand(("context?", "count"), "--show-current-log", "--show-log"),
    "inspect": JsonCommand(("context?", "thing"), "--inspect-current", "--inspect"),
    "set_system_prompt": JsonCommand(("context?", "prompt"), "--set-current-system-prompt", "--set-system-prompt"),
    "set_model": JsonCommand(("context?", "model"), "--set-current-model", "--set-model"),
    "run_plugin": JsonCommand(("name", "args*"), "--plugin"),
    "call_tool": JsonCommand(("name", "args*"), "--call-tool"),
    "clear_cache": JsonCommand(("name?",), "--clear-cache", "--clear-cache-for"),
    "cleanup_cache": JsonCommand((), "--cleanup-cache"),
    "check_inbox": JsonCommand(("context",), "--check-inbox"),
    "check_all_inboxes": JsonCommand((), "--check-inboxes"),
    "no_op": JsonCommand((), "--no-llm"),
    "show_help": JsonCommand((), "--help"),
    "show_version": JsonCommand((), "--version"),
}
LATER = ("model_metadata", "flock_create", "flock_delete", "flock_join", "flock_leave", "flock_list")

# Beside it on the command line; everything else stands in the object.
BESIDE = ("json-config", "json", "verbose")
# What `flags` may hold: every option that has no key of its own, and chibi's words for some.
OWN = ("json", "json-config", "help", "version", "home", "project-root")
CHIBI = {
    "force_call_user": "no-llm",
    "force_call_agent": "force-llm",
    "destroy_after_seconds_inactive": "destroy-after-inactive",
}
OPTIONS = {f.name: f for f in FLAGS if (f.kind == "option" and f.name not in OWN) or f.name.startswith("destroy-")}


def read_request(parsed: Parsed) -> Parsed:
    """What the object on standard input asks for, as a command line. Raises UsageProblem."""
    wrong = next((flag for flag, _ in parsed.given if flag.name not in BESIDE), None)
    if wrong is not None or parsed.words:
        what = wrong.long if wrong is not None else "a prompt"
        raise UsageProblem(
            f"{what} does not go with --json-config", 'it stands in the object: {"command": …, "flags": {…}}'
        )
    wanted = _wanted(_read())
    given = [
        *(one for one in parsed.given if one[0].name == "verbose"),
        _flag("--json"),
        _flag("--json-config"),
        *_where(wanted),
        *_how(wanted),
    ]
    command, fields = _command(wanted.command)
    if command is SEND:
        # As a word of the command line comes: in the encoding of this system.
        made = Parsed(tuple(given), (os.fsdecode(_text("prompt", fields.get("prompt")).encode()),), literal=True)
    else:
        made = Parsed((*given, _operation(command, fields)), (), literal=True)
    _refuse_nul(made)
    made.config = wanted.config
    return made


def _refuse_nul(made: Parsed) -> None:
    """No command line can hold it, and no path. Raises UsageProblem."""
    flag = next((flag for flag, values in made.given if any("\0" in value for value in values)), None)
    if flag is not None:
        raise UsageProblem(f"the value for {flag.long} has a NUL character in it", "leave it out")


def _read() -> Any:
    """Raises UsageProblem unless standard input holds one JSON value."""
    try:
        data = b"" if os.isatty(0) else sys.stdin.buffer.read(MOST + 1)
    except OSError:
        data = b""  # it is closed
    if not data.strip():
        example = """echo '{"command": {"send_prompt": {"prompt": "hi"}}}' | cru --json-config"""
        raise UsageProblem("there is nothing on standard input", example)
    if len(data) > MOST:
        raise UsageProblem(f"the JSON object has more than {MOST >> 20} MiB", "give large texts as files: --attach")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageProblem(f"standard input is not one JSON object: {error}") from error


def _wanted(value: Any) -> JsonRequest:
    if not isinstance(value, dict):
        raise UsageProblem("standard input is JSON, but no object", 'it begins with {"command": …')
    _known("the object", value, JsonRequest.__struct_fields__)
    try:
        return msgspec.convert(value, JsonRequest)
    except msgspec.ValidationError as error:
        raise UsageProblem(f"standard input: {error}", "cru's docs/json.md has the shape") from error


def _where(wanted: JsonRequest) -> Iterator[Given]:
    """Home, project, context, user."""
    if wanted.home:
        yield _flag("--home", wanted.home)
    if wanted.project_root:
        yield _flag("--project-root", wanted.project_root)
    if isinstance(wanted.context, dict):
        yield _selected(wanted.context)
    elif wanted.context != "current":
        yield _flag("--transient-context", wanted.context)
    if isinstance(wanted.username, dict):
        kind, name = _single("username", wanted.username, ("persistent", "transient"))
        yield _flag("--set-username" if kind == "persistent" else "--transient-username", _text("username", name))
    elif wanted.username:
        yield _flag("--transient-username", wanted.username)


def _selected(context: dict[str, Any]) -> Given:
    """{"switch": {"name", "persistent"}} or {"transient": {"name"}}."""
    kind, about = _single("context", context, ("switch", "transient"))
    if not isinstance(about, dict):
        raise UsageProblem(f"`context.{kind}` should be an object", f'{{"{kind}": {{"name": "…"}}}}')
    _known(f"context.{kind}", about, ("name", "persistent") if kind == "switch" else ("name",))
    persistent = about.get("persistent", True)
    if not isinstance(persistent, bool):
        raise UsageProblem(f"`context.{kind}.persistent` should be true or false")
    stays = kind == "switch" and persistent
    return _flag(
        "--switch-context" if stays else "--transient-context", _text(f"context.{kind}.name", about.get("name"))
    )


def _how(wanted: JsonRequest) -> Iterator[Given]:
    """Options and settings."""
    _known("flags", wanted.flags, (*(name.replace("-", "_") for name in OPTIONS), *CHIBI))
    for key, value in wanted.flags.items():
        flag = OPTIONS[CHIBI.get(key, key.replace("_", "-"))]
        if not flag.args:
            if not isinstance(value, bool):
                raise UsageProblem(f"`flags.{key}` should be true or false")
            if value:
                yield flag, ()
            continue
        for one in value if isinstance(value, list) else [value]:
            yield flag, (_text(f"flags.{key}", one),)
    for key, setting in wanted.overrides.items():
        text = setting if isinstance(setting, str) else msgspec.json.encode(setting).decode()
        yield _flag("--set", f"{key}={text}")


def _command(value: str | dict[str, Any]) -> tuple[JsonCommand, dict[str, Any]]:
    """The command and its fields."""
    name, fields = (value, {}) if isinstance(value, str) else _single("command", value)
    if name in LATER:
        raise UsageProblem(f"the command `{name}` is not available yet")
    if name not in COMMANDS:
        raise UsageProblem(
            f"there is no command `{name}`", did_you_mean(name, COMMANDS) or f"one of: {', '.join(COMMANDS)}"
        )
    if not isinstance(fields, dict):
        raise UsageProblem(f"`command.{name}` should be an object")
    command = COMMANDS[name]
    _known(f"command.{name}", fields, [field.rstrip("?*") for field in command.fields])
    return command, {key: value for key, value in fields.items() if value is not None}


def _operation(command: JsonCommand, fields: dict[str, Any]) -> Given:
    """The flag of a command, with its values."""
    first = command.fields[0].rstrip("?") if command.other else ""
    values: list[str] = []
    for field in command.fields:
        name = field.rstrip("?*")
        if field.endswith("*"):
            values += _arguments(name, fields.get(name, []))
        elif name in fields or not field.endswith("?"):
            values.append(_text(name, fields.get(name)))
    if isinstance(fields.get("args"), dict):
        return _flag("--call-tool", *values)  # --plugin takes words as they are
    return _flag(command.other if first in fields else command.flag, *values)


def _arguments(name: str, value: Any) -> list[str]:
    """A list of texts; an object is a tool's arguments."""
    if isinstance(value, dict):
        return [msgspec.json.encode(value).decode()]
    if not isinstance(value, list):
        raise UsageProblem(f"`{name}` should be a list of texts, or an object")
    return [_text(name, one) for one in value]


def _flag(long: str, *values: str) -> Given:
    return find(long)[0], values


def _single(what: str, value: dict[str, Any], known: tuple[str, ...] = ()) -> tuple[str, Any]:
    """The one key of an object, and what it holds."""
    if len(value) != 1:
        raise UsageProblem(f"`{what}` should be an object with one key, not {len(value)}")
    if known:
        _known(what, value, known)
    return next(iter(value.items()))


def _known(what: str, value: dict[str, Any], known: Any) -> None:
    unknown = next((key for key in value if key not in known), None)
    if unknown is not None:
        raise UsageProblem(
            f"{what} has no `{unknown}`", did_you_mean(unknown, known) or f"it may have: {', '.join(known)}"
        )


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise UsageProblem(f"`{name}` is missing" if value is None else f"`{name}` should be a text")
