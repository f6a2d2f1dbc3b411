"""`--json-config`: the whole command as one JSON object on standard input (docs/json.md). It becomes the flags and words that a person
would have typed, and goes their road; the last line on standard error says how it ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from cru.faces.cli.console import await_input
from cru.faces.cli.flags import FLAGS, Parsed, UsageProblem
from cru.faces.cli.json_mode.commands import (
    FlagValues,
    flag_values,
    parse_command,
    require_known,
    require_text,
    single_item,
)

MOST_BYTES = 32 << 20


class JsonRequest(Struct, frozen=True):
    """The object; what is not in it is as without the flag.

    command: its name, or {name: {field: value}}
    context: a name, {"switch": {"name", "persistent"}} or {"transient": {"name"}}
    username: a name, or {"persistent" | "transient": name}
    flags: options by name
    home, project_root: as those flags
    config: settings as in a local.toml
    overrides: settings by dotted name, as with --set
    """

    command: str | dict[str, Any]
    context: str | dict[str, Any] = "current"
    username: str | dict[str, str] = ""
    flags: dict[str, Any] = {}
    home: str = ""
    project_root: str = ""
    config: dict[str, Any] = {}
    overrides: dict[str, str | int | float | bool | list[str | int | float | bool]] = {}


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
    wrong = next((flag for flag, _ in parsed.flags if flag.name not in BESIDE), None)
    if wrong is not None or parsed.words:
        what = wrong.long if wrong is not None else "a prompt"
        raise UsageProblem(
            f"{what} does not go with --json-config", 'it stands in the object: {"command": …, "flags": {…}}'
        )
    request = _convert(_read())
    flags = [
        *((flag, values) for flag, values in parsed.flags if flag.name == "verbose"),
        flag_values("--json"),
        flag_values("--json-config"),
        *_place_flags(request),
        *_option_flags(request),
    ]
    command, words = parse_command(request.command)
    line = Parsed((*flags, *command), words, literal=True)
    _refuse_nul(line)
    line.config = request.config
    return line


def _refuse_nul(line: Parsed) -> None:
    """No command line can hold it, and no path. Raises UsageProblem."""
    flag = next((flag for flag, values in line.flags if any("\0" in value for value in values)), None)
    if flag is not None:
        raise UsageProblem(f"the value for {flag.long} has a NUL character in it", "leave it out")


def _read() -> object:
    """Raises UsageProblem unless standard input holds one JSON value."""
    example = """echo '{"command": {"send_prompt": {"prompt": "hi"}}}' | cru --json-config"""
    try:
        if is_open := not os.isatty(0):
            await_input("a JSON object", example)
        data = sys.stdin.buffer.read(MOST_BYTES + 1) if is_open else b""
    except OSError:
        data = b""  # it is closed
    if not data.strip():
        raise UsageProblem("there is nothing on standard input", example)
    if len(data) > MOST_BYTES:
        raise UsageProblem(
            f"the JSON object has more than {MOST_BYTES >> 20} MiB", "give large texts as files: --attach"
        )
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageProblem(f"standard input is not one JSON object: {error}") from error


def _convert(value: object) -> JsonRequest:
    if not isinstance(value, dict):
        raise UsageProblem("standard input is JSON, but no object", 'it begins with {"command": …')
    require_known("the object", value, JsonRequest.__struct_fields__)
    try:
        return msgspec.convert(value, JsonRequest)
    except msgspec.ValidationError as error:
        raise UsageProblem(f"standard input: {error}", "cru's docs/json.md has the shape") from error


def _place_flags(request: JsonRequest) -> Iterator[FlagValues]:
    """Home, project, context, user."""
    if request.home:
        yield flag_values("--home", request.home)
    if request.project_root:
        yield flag_values("--project-root", request.project_root)
    if isinstance(request.context, dict):
        yield _context_flag(request.context)
    elif request.context != "current":
        yield flag_values("--transient-context", request.context)
    if isinstance(request.username, dict):
        kind, name = single_item("username", request.username, ("persistent", "transient"))
        yield flag_values(
            "--set-username" if kind == "persistent" else "--transient-username", require_text("username", name)
        )
    elif request.username:
        yield flag_values("--transient-username", request.username)


def _context_flag(context: dict[str, Any]) -> FlagValues:
    """{"switch": {"name", "persistent"}} or {"transient": {"name"}}."""
    kind, fields = single_item("context", context, ("switch", "transient"))
    if not isinstance(fields, dict):
        raise UsageProblem(f"`context.{kind}` should be an object", f'{{"{kind}": {{"name": "…"}}}}')
    require_known(f"context.{kind}", fields, ("name", "persistent") if kind == "switch" else ("name",))
    persistent = fields.get("persistent", True)
    if not isinstance(persistent, bool):
        raise UsageProblem(f"`context.{kind}.persistent` should be true or false")
    is_kept = kind == "switch" and persistent
    return flag_values(
        "--switch-context" if is_kept else "--transient-context",
        require_text(f"context.{kind}.name", fields.get("name")),
    )


def _option_flags(request: JsonRequest) -> Iterator[FlagValues]:
    """Options and settings."""
    require_known("flags", request.flags, (*(name.replace("-", "_") for name in OPTIONS), *CHIBI))
    for key, value in request.flags.items():
        flag = OPTIONS[CHIBI.get(key, key.replace("_", "-"))]
        if not flag.args:
            if not isinstance(value, bool):
                raise UsageProblem(f"`flags.{key}` should be true or false")
            if value:
                yield flag, ()
            continue
        for item in value if isinstance(value, list) else [value]:
            yield flag, (require_text(f"flags.{key}", item),)
    for key, setting in request.overrides.items():
        text = setting if isinstance(setting, str) else msgspec.json.encode(setting).decode()
        yield flag_values("--set", f"{key}={text}")
