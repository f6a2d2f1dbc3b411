"""The commands of `--json-config`, in chibi's words, and the flag that does each."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.base.config.closest import did_you_mean
from cru.faces.cli.flag_names import ABSENT
from cru.faces.cli.flags import Flag, UsageProblem, find

FlagValues = tuple[Flag, tuple[str, ...]]


class JsonCommand(Struct, frozen=True):
    """A command.

    fields: its fields in the order of the flag's values (`x?` may be left out, `x*` is a list that may, `x!` is a boolean that may)
    flag: its long name; "" of `send_prompt`
    other: the flag that is used instead if `x!` is true, or if the first field is present although it may be left out
    """

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
    "set_model": JsonCommand(("context?", "model"), "--set-model", "--set-model-for-context"),
    "model_metadata": JsonCommand(("model", "full!"), "--model-metadata", "--model-metadata-full"),
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


def parse_command(value: str | dict[str, Any]) -> tuple[tuple[FlagValues, ...], tuple[str, ...]]:
    """The flag that a command is, or the words of its prompt. Raises UsageProblem."""
    command, fields = _command_fields(value)
    if command is SEND:
        # As a word of the command line comes: in the encoding of this system.
        return (), (os.fsdecode(require_text("prompt", fields.get("prompt")).encode()),)
    return (_flag_of(command, fields),), ()


def _command_fields(value: str | dict[str, Any]) -> tuple[JsonCommand, dict[str, Any]]:
    """The command and its fields."""
    name, fields = (value, {}) if isinstance(value, str) else single_item("command", value)
    if long_name(name) in ABSENT:
        why, hint = ABSENT[long_name(name)]
        raise UsageProblem(f"the command `{name}`: {why}", hint)
    if name not in COMMANDS:
        raise UsageProblem(
            f"there is no command `{name}`", did_you_mean(name, COMMANDS) or f"one of: {', '.join(COMMANDS)}"
        )
    if not isinstance(fields, dict):
        raise UsageProblem(f"`command.{name}` should be an object")
    command = COMMANDS[name]
    require_known(f"command.{name}", fields, [field.rstrip("?*!") for field in command.fields])
    return command, {key: value for key, value in fields.items() if value is not None}


def _flag_of(command: JsonCommand, fields: dict[str, Any]) -> FlagValues:
    """The flag of a command, with its values."""
    is_other = bool(command.other) and command.fields[0].rstrip("?") in fields and command.fields[0].endswith("?")
    values: list[str] = []
    for field in command.fields:
        name = field.rstrip("?*!")
        if field.endswith("!"):
            is_other = require_boolean(name, fields.get(name, False))
        elif field.endswith("*"):
            values += _arguments(name, fields.get(name, []))
        elif name in fields or not field.endswith("?"):
            values.append(require_text(name, fields.get(name)))
    if isinstance(fields.get("args"), dict):
        return flag_values("--call-tool", *values)  # --plugin takes words as they are
    return flag_values(command.other if is_other else command.flag, *values)


def _arguments(name: str, value: object) -> list[str]:
    """A list of texts; an object is a tool's arguments."""
    if isinstance(value, dict):
        return [msgspec.json.encode(value).decode()]
    if not isinstance(value, list):
        raise UsageProblem(f"`{name}` should be a list of texts, or an object")
    return [require_text(name, item) for item in value]


def long_name(command: str) -> str:
    """Return how a command would be spelled as a flag."""
    return f"--{command.replace('_', '-')}"


def flag_values(long: str, *values: str) -> FlagValues:
    return find(long)[0], values


def single_item(what: str, value: Mapping[str, Any], known: tuple[str, ...] = ()) -> tuple[str, Any]:
    """The one key of an object, and what it holds."""
    if len(value) != 1:
        raise UsageProblem(f"`{what}` should be an object with one key, not {len(value)}")
    if known:
        require_known(what, value, known)
    return next(iter(value.items()))


def require_known(what: str, value: Mapping[str, object], known: Collection[str]) -> None:
    unknown = next((key for key in value if key not in known), None)
    if unknown is not None:
        raise UsageProblem(
            f"{what} has no `{unknown}`", did_you_mean(unknown, known) or f"it may have: {', '.join(known)}"
        )


def require_boolean(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise UsageProblem(f"`{name}` should be true or false")


def require_text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise UsageProblem(f"`{name}` is missing" if value is None else f"`{name}` should be a text")
