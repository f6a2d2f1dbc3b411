"""Tools and their arguments in the words of other systems: what matchers are tested against, what scripts read, what they give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

# Our tool → its names elsewhere; the first is the one that scripts see. A tool that is not here has one name everywhere.
TOOLS: dict[str, dict[str, tuple[str, ...]]] = {
    "bash": {"crush": ("bash",), "claude": ("Bash",), "codex": ("Bash", "shell"), "gemini": ("run_shell_command",)},
    "read": {"crush": ("view",), "claude": ("Read",), "codex": ("Read",), "gemini": ("read_file", "read_many_files")},
    "write": {"crush": ("write",), "claude": ("Write",), "codex": ("Write", "apply_patch"), "gemini": ("write_file",)},
    "edit": {
        "crush": ("edit", "multiedit"), "claude": ("Edit", "MultiEdit"), "codex": ("Edit", "apply_patch"), "gemini": ("replace",),
    },
    "glob": {"crush": ("glob",), "claude": ("Glob",), "codex": ("Glob",), "gemini": ("glob",)},
    "grep": {
        "crush": ("grep",), "claude": ("Grep",), "codex": ("Grep",), "gemini": ("grep_search", "search_file_content"),
    },
    "ls": {"crush": ("ls",), "claude": ("LS",), "codex": ("LS",), "gemini": ("list_directory",)},
    "fetch": {
        "crush": ("fetch", "web_fetch"), "claude": ("WebFetch",), "codex": ("web_search",), "gemini": ("web_fetch", "google_web_search"),
    },
    "update_todos": {
        "crush": ("todos",), "claude": ("TodoWrite",), "codex": ("update_plan",), "gemini": ("write_todos",),
    },
}  # fmt: skip


def _same(value: Any) -> Any:
    return value


class ArgumentMapping(Struct, frozen=True):
    """An argument's name in a dialect, and its value on the way out and back."""

    name: str
    out: Callable[[Any], Any] = _same
    back: Callable[[Any], Any] = _same


def _number(change: Callable[[float], float]) -> Callable[[Any], Any]:
    """The change for numbers; anything else goes through as it is, and the tool's own check speaks."""
    return lambda value: change(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


_MILLISECONDS = ArgumentMapping("timeout", _number(lambda s: int(s * 1000)), _number(lambda ms: ms / 1000))
_FROM_ZERO = ArgumentMapping("offset", _number(lambda n: max(0, n - 1)), _number(lambda n: n + 1))

# Dialect → our tool → our argument → theirs, where they differ.
KEYS: dict[str, dict[str, dict[str, ArgumentMapping]]] = {
    "claude": {
        "bash": {"timeout": _MILLISECONDS},
        "grep": {
            "include": ArgumentMapping("glob"),
            "ignore_case": ArgumentMapping("-i"),
            "context": ArgumentMapping("-C"),
        },
        "update_todos": {"content": ArgumentMapping("todos")},
    },
    "codex": {
        "bash": {"timeout": _MILLISECONDS},
        "grep": {
            "include": ArgumentMapping("glob"),
            "ignore_case": ArgumentMapping("-i"),
            "context": ArgumentMapping("-C"),
        },
    },
    "gemini": {
        "bash": {},
        "ls": {"path": ArgumentMapping("dir_path")},
        "glob": {"path": ArgumentMapping("dir_path")},
        "grep": {"path": ArgumentMapping("dir_path")},
    },
    "crush": {"read": {"offset": _FROM_ZERO}},
}

# Arguments that scripts of a dialect may add and that our tools have no use for.
DROPPED: dict[str, dict[str, tuple[str, ...]]] = {
    "claude": {
        "bash": ("description", "run_in_background"),
        "grep": ("output_mode", "multiline", "head_limit", "-n", "-A", "-B", "type"),
        "fetch": ("prompt",),
    },
    "codex": {"bash": ("description", "workdir", "run_in_background")},
    "gemini": {"bash": ("description", "dir_path", "directory"), "fetch": ("prompt",)},
    "crush": {"bash": ("description", "working_dir", "run_in_background", "auto_background_after")},
}
ABSOLUTE = ("claude", "codex", "gemini")
"""Dialects whose scripts read absolute paths."""
PATH_KEYS = ("file_path", "path")


def names(dialect: str, tool: str) -> tuple[str, ...]:
    """Every name that a matcher of the dialect may know the tool by, ours among them; the first is theirs."""
    return tuple(dict.fromkeys((*TOOLS.get(tool, {}).get(dialect, ()), tool)))


def foreign_name(dialect: str, tool: str) -> str:
    return names(dialect, tool)[0]


def own_name(dialect: str, name: str) -> str:
    """Our tool for a name of the dialect; the name itself if it is nobody's."""
    return next((tool for tool, known in TOOLS.items() if name in known.get(dialect, ())), name)


def to_foreign_arguments(dialect: str, tool: str, args: Mapping[str, Any], cwd: Path) -> dict[str, Any]:
    """Our arguments in the dialect's words; relative paths against `cwd` where its scripts expect absolute ones."""
    keys = KEYS.get(dialect, {}).get(tool, {})
    out: dict[str, Any] = {}
    for name, value in args.items():
        if dialect in ABSOLUTE and name in PATH_KEYS and isinstance(value, str) and value:
            value = str(cwd / Path(value).expanduser())
        key = keys.get(name)
        out[key.name if key else name] = key.out(value) if key else value
    return out


def to_own_arguments(dialect: str, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """What a script gave back, in our words; arguments that only the dialect's own tool has are left out."""
    keys = {key.name: (name, key) for name, key in KEYS.get(dialect, {}).get(tool, {}).items()}
    dropped = DROPPED.get(dialect, {}).get(tool, ())
    back: dict[str, Any] = {}
    for name, value in args.items():
        if name in keys:
            own, key = keys[name]
            back[own] = key.back(value)
        elif name not in dropped:
            back[name] = value
    return back
