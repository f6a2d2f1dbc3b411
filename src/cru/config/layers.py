"""Where settings come from: config.toml < environment < project `.cru/config.toml` < the context's local.toml < command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.config.errors import ConfigError, SettingsProblem
from cru.files.regular import read_regular

if TYPE_CHECKING:
    from pathlib import Path

USER = "user"
ENVIRONMENT = "environment"
PROJECT = "project"
CONTEXT = "context"
COMMAND_LINE = "command line"

PREFIX = "CRU_"
MOST = 1 << 20
"""Bytes of a file of settings."""

# Variables with our prefix that are no settings: they say where things are, or are set by cru for its children.
OTHERS = (
    "CRU_HOME",
    "CRU_PROJECT_ROOT",
    "CRU_PLUGIN_PATH",
    "CRU_CONTEXT",
    "CRU_CONTEXT_DIR",
    "CRU_CHILD",
    "CRU_DEPTH",
    "CRU_SESSION_ID",
    "CRU_RUN_ID",
    "CRU_DEBUG",
    "CRU_HOOK",
    "CRU_HOOK_DATA",
    "CRU_TOOL_NAME",
    "CRU_TOOL_ARGS",
)

# What an untrusted project may set: table -> its keys. Both lists can only make things stricter.
UNTRUSTED = {"permissions": ("ask", "deny")}
# What it may hold all the same: a person judges each entry by itself (`cru hooks review`), and nothing is read from here.
JUDGED_ALONE = {"hooks": ("entries",)}


class Layer(Struct, frozen=True):
    """One source of settings.

    name: one of the five above
    data: its tables
    file: its path; "" where there is no file
    text: the file's content, for the lines of keys
    """

    name: str
    data: Mapping[str, object]
    file: str = ""
    text: str = ""

    def place(self, path: tuple[str, ...]) -> str:
        """Where a key of this layer is set: `config.toml:3`, `environment CRU_MODEL`, `command line`."""
        if self.name == ENVIRONMENT:
            return f"environment {PREFIX}{path[0].upper()}"
        if not self.file:
            return self.name
        from cru.config.positions import line_of

        line = line_of(self.text, path)
        return f"{self.file}:{line}" if line else self.file


def read_layer(name: str, path: Path) -> Layer | None:
    """The layer in this TOML file, None if there is no such file. Raises ConfigError with file, line and column if it is not
    TOML, not UTF-8, or cannot be read. An untrusted project's layer must go through `restrict_untrusted`."""
    try:
        data = read_regular(path, MOST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError([SettingsProblem(f"cannot be read: {error.strerror or error}", str(path))]) from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([SettingsProblem("not UTF-8", f"{path}:{line}", "save the file as UTF-8")]) from error
    return Layer(name, _parse(text, path), str(path), text)


def _parse(text: str, path: Path) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).rpartition(" (at ")
        words = place.rstrip(")").replace(",", "").split()
        if words[:1] == ["line"]:
            where = f"{path}:{words[1]}:{words[3]}"
        else:  # "end of document"
            where = f"{path}:{text.rstrip().count(chr(10)) + 1}"
        raise ConfigError([SettingsProblem(f"not TOML: {message}", where)]) from error
    except RecursionError as error:
        raise ConfigError([SettingsProblem("not TOML: nested too deeply", str(path))]) from error
    except ValueError as error:  # a number of thousands of digits
        raise ConfigError([SettingsProblem(f"not TOML: {str(error).partition(';')[0]}", str(path))]) from error


def environment_layer(env: Mapping[str, str], others: Iterable[str] = OTHERS) -> Layer:
    """The layer of the CRU_* variables: CRU_MODEL sets `model`. An empty variable counts as unset; `merge_layers` reports the ones
    that no scalar setting has."""
    data = {key[len(PREFIX) :].lower(): value for key, value in env.items() if key.startswith(PREFIX) and value}
    for name in others:
        data.pop(name[len(PREFIX) :].lower(), None)
    return Layer(ENVIRONMENT, data)


def restrict_untrusted(layer: Layer) -> tuple[Layer, tuple[SettingsProblem, ...]]:
    """What a project's layer may say before its file is trusted, and a problem for each part that is left out."""
    kept: dict[str, object] = {}
    ignored: list[tuple[str, ...]] = []
    for key, value in layer.data.items():
        allowed, alone = UNTRUSTED.get(key, ()), JUDGED_ALONE.get(key, ())
        if alone and isinstance(value, list):
            continue
        if not (allowed or alone) or not isinstance(value, dict):
            ignored.append((key,))
            continue
        if allowed:
            kept[key] = {inner: value[inner] for inner in value if inner in allowed}
        ignored += [(key, inner) for inner in value if inner not in (*allowed, *alone)]
    problems = tuple(
        SettingsProblem(
            f"`{'.'.join(path)}` is ignored: this project is not trusted", layer.place(path), _trust_hint(layer)
        )
        for path in ignored
    )
    return Layer(layer.name, kept, layer.file, layer.text), problems


def _trust_hint(layer: Layer) -> str:
    return f"read {layer.file}, then `cru trust`"
