"""The rules of the road table as command hooks: a `no` and a rewrite for each event that a dialect has, in that dialect's words.

Every hook is a shell command, since a process for each cell costs milliseconds and an interpreter would cost many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json import dumps
from pathlib import Path
from shlex import quote
from typing import Any

from msgspec import Struct
from tests.kit import HomeDir

from cru.core.hooks.dialects import foreign_names

HOOKS = f"[hooks]\ndialects = {dumps(foreign_names())}\n"
"""The end of a config.toml that lets the user's files of other systems run."""
PROGRAM = "program"
"""Plugins that are programs: their hooks, as chibi calls them."""
PLACES: dict[str, str] = {
    "crush": ".config/crush/crush.json", "claude": ".claude/settings.json", "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json", "cru": ".cru/hooks.json", PROGRAM: ".cru/plugins/rules",
}  # fmt: skip
BASH = {"crush": "^bash$", "claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "cru": "^bash$"}
FLAT = ("crush", "cru")


class Hook(Struct, frozen=True):
    """event: as the dialect calls it · command: what it does, made of the text that it is to say."""

    event: str
    command: Callable[[Any], str]
    of_tools: bool = False


def _exit(status: int) -> Callable[[Any], str]:
    return lambda text: f"echo {quote(text)} >&2; exit {status}"


def _prints(make: Callable[[Any], dict[str, Any]]) -> Callable[[Any], str]:
    return lambda text: f"echo {quote(dumps(make(text)))}"


def _specific(event: str, **keys: str) -> Callable[[Any], str]:
    """Claude's nested output; a key whose value is `*` gets what is to be said."""

    def made(value: Any) -> dict[str, Any]:
        fields = {key: value if given == "*" else given for key, given in keys.items()}
        return {"hookSpecificOutput": {"hookEventName": event, **fields}}

    return _prints(made)


def _refused(event: str) -> Callable[[Any], str]:
    return _prints(
        lambda why: {"hookSpecificOutput": {"hookEventName": event, "decision": {"behavior": "deny", "message": why}}}
    )


def _one_message(text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"llm_request": {"messages": [{"role": "user", "content": text}]}}}


_ENDS = _prints(lambda why: {"continue": False, "stopReason": why})

# Dialect → our gate → a hook that says no with a reason.
DENIALS: dict[str, dict[str, Hook]] = {
    "crush": {
        "message:received": Hook("UserPromptSubmit", _exit(2)),
        "tool:before_call": Hook("PreToolUse", _exit(2), True),
    },
    "claude": {
        "message:received": Hook("UserPromptSubmit", _exit(2)),
        "tool:before_call": Hook("PreToolUse", _exit(2), True),
        "permission:requested": Hook("PermissionRequest", _refused("PermissionRequest"), True),
        "context:overflow": Hook("PreCompact", _exit(2)),
        "turn:complete": Hook("Stop", _ENDS),
    },
    "codex": {
        "message:received": Hook("UserPromptSubmit", _exit(2)),
        "tool:before_call": Hook("PreToolUse", _exit(2), True),
        "permission:requested": Hook("PermissionRequest", _refused("PermissionRequest"), True),
        "turn:complete": Hook("Stop", _ENDS),
    },
    "gemini": {
        "message:received": Hook("BeforeAgent", _exit(2)),
        "message:before_send": Hook("BeforeModel", _exit(2)),
        "tool:before_call": Hook("BeforeTool", _exit(2), True),
        "turn:complete": Hook("AfterAgent", _ENDS),
    },
    "cru": {
        **{
            gate: Hook(gate, _exit(2))
            for gate in ("message:received", "message:before_send", "output:cached", "context:overflow", "inbox:sending")
        },
        "tool:before_call": Hook("tool:before_call", _exit(2), True),
        "permission:requested": Hook("permission:requested", _exit(2), True),
        "turn:complete": Hook("turn:complete", _exit(49)),
    },
    PROGRAM: {
        "tool:before_call": Hook("pre_tool", _prints(lambda why: {"block": True, "message": why}), True),
        "output:cached": Hook("pre_cache_output", _prints(lambda why: {"block": True})),
    },
}  # fmt: skip

# Dialect → our event → a hook that rewrites.
REWRITES: dict[str, dict[str, Hook]] = {
    "crush": {
        "message:received": Hook("UserPromptSubmit", _prints(lambda text: {"updated_prompt": text})),
        "tool:before_call": Hook("PreToolUse", _prints(lambda args: {"updated_input": args}), True),
    },
    "claude": {
        "tool:before_call": Hook("PreToolUse", _specific("PreToolUse", updatedInput="*"), True),
        "tool:completed": Hook("PostToolUse", _specific("PostToolUse", updatedToolOutput="*"), True),
    },
    "codex": {
        "tool:before_call": Hook(
            "PreToolUse", _specific("PreToolUse", permissionDecision="allow", updatedInput="*"), True
        ),
    },
    "gemini": {
        "message:before_send": Hook("BeforeModel", _prints(_one_message)),
        "tool:before_call": Hook("BeforeTool", _prints(lambda args: {"hookSpecificOutput": {"tool_input": args}}), True),
    },
    "cru": {
        event: Hook(event, _prints(lambda value: {"changes": value}), event.startswith("tool:"))
        for event in ("message:received", "message:before_send", "tool:before_call", "tool:completed", "output:cached")
    },
    PROGRAM: {
        "message:received": Hook("pre_message", _prints(lambda text: {"prompt": text})),
        "message:before_send": Hook(
            "pre_api_request", _prints(lambda text: {"request_body": {"messages": [{"role": "user", "content": text}]}})
        ),
        "tool:before_call": Hook("pre_tool", _prints(lambda args: {"arguments": args}), True),
        "tool:completed": Hook("pre_tool_output", _prints(lambda text: {"output": text})),
        "output:cached": Hook("pre_cache_output", _prints(lambda text: {"summary": text})),
    },
}  # fmt: skip
# Events whose hooks hear only what a person typed, however the dialect calls them.
TYPED = {
    "crush": "UserPromptSubmit",
    "claude": "UserPromptSubmit",
    "codex": "UserPromptSubmit",
    "gemini": "BeforeAgent",
}
FEW = {"codex", "gemini", "cru", PROGRAM}
FEW_ROADS = ("argv", "continuation", "queue", "--resume", "cru.tools.call")
"""Roads of FEW: a dialect only translates, so that all roads of all of them would try the same group of commands five times."""


def knows(dialect: str, event: str, table: Mapping[str, Mapping[str, Hook]]) -> bool:
    """Whether a dialect has such a hook; scripts and the toy dialect have them all."""
    return dialect not in table or event in table[dialect]


def untried(dialect: str, road: str) -> str:
    """Why a road is not tried with a dialect's hooks; "" if it is."""
    return f"tried on {', '.join(FEW_ROADS)}" if dialect in FEW and road not in FEW_ROADS else ""


def write(here: HomeDir, dialect: str, event: str, says: Mapping[str, Any]) -> None:
    """The dialect's user file with one hook. `says`: what a handler in Lua would return."""
    refuses = "reason" in says
    hook = (DENIALS if refuses else REWRITES)[dialect][event]
    [(field, value)] = [("", says["reason"])] if refuses else says.items()
    command = hook.command({field: value} if dialect == "cru" and not refuses else value)
    path: Path = here.path / PLACES[dialect]
    path.parent.mkdir(parents=True, exist_ok=True)
    if dialect == PROGRAM:
        _program(path, hook, command)
        return
    matcher = {"matcher": BASH[dialect]} if hook.of_tools else {}
    entry: dict[str, Any] = {"type": "command", "command": command}
    if dialect in FLAT:
        entry = {"command": command, **matcher}
    else:
        entry = {**matcher, "hooks": [entry]}
    path.write_text(dumps({"hooks": {hook.event: [entry]}}))


def _program(path: Path, hook: Hook, command: str) -> None:
    """A plugin with one hook; one of tools answers for bash only, since there are no matchers."""
    schema = dumps({"name": "rules", "description": "rules", "hooks": [hook.event]})
    wanted = '*\'"tool_name":"bash"\'*' if hook.of_tools else "*"
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --schema ]; then echo {quote(schema)}; exit; fi\ncase "$(cat)" in {wanted}) {command} ;; esac\n'
    )
    path.chmod(0o755)
