"""Where settings come from, and all of them as one: config.toml < environment < project `.cru/config.toml` < the context's local.toml <
command line.

What can be wrong with settings: problems that are reported together, and the error that carries them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import Struct, ValidationError, convert, to_builtins

from cru.core.base.files import parse_toml
from cru.core.base.files.regular import read_regular
from cru.core.base.values.errors import CruError

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

MOST_SHOWN = 20
"""Problems of one kind that are listed; the others are counted."""

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
    "CRU_EMBEDDINGS",
    "CRU_HOOK",
    "CRU_SANDBOX",
    "CRU_HOOK_DATA",
    "CRU_TOOL_NAME",
    "CRU_TOOL_ARGS",
)


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
        from cru.core.base.config.positions import line_of

        line = line_of(self.text, path)
        return f"{self.file}:{line}" if line else self.file


def read_layer(name: str, path: Path) -> Layer | None:
    """The layer in this TOML file, None if there is no such file. Raises ConfigError with file, line and column if it is not
    TOML, not UTF-8, or cannot be read. An untrusted project's layer must go through `restrict_untrusted`."""
    try:
        data = read_regular(path, MOST)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not path.is_symlink():
            return None
        problem = SettingsProblem(
            f"is a link to {path.readlink()}, which is not there", str(path), "mend the link, or remove it"
        )
        raise ConfigError([problem]) from error
    except OSError as error:
        raise ConfigError([SettingsProblem(f"cannot be read: {error.strerror or error}", str(path))]) from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([SettingsProblem("not UTF-8", f"{path}:{line}", "save the file as UTF-8")]) from error
    try:
        return Layer(name, parse_toml(text), str(path), text)
    except ValueError as error:
        from cru.core.base.files.nesting import BadToml

        assert isinstance(error, BadToml)
        raise ConfigError([SettingsProblem(error.problem, error.place_in(path))]) from error


def environment_layer(
    env: Mapping[str, str], others: Iterable[str] = OTHERS, tables: Mapping[str, Mapping[str, object]] | None = None
) -> Layer:
    """The layer of the CRU_* variables: CRU_MODEL sets `model`. An empty variable counts as unset; `merge_layers` reports the ones
    that no scalar setting has. `tables`: what variables say that are no scalar settings."""
    data = {key[len(PREFIX) :].lower(): value for key, value in env.items() if key.startswith(PREFIX) and value}
    for name in others:
        data.pop(name[len(PREFIX) :].lower(), None)
    return Layer(ENVIRONMENT, {**data, **(tables or {})})


S = TypeVar("S", bound=Struct)
Tables = Mapping[str, Mapping[str, object]]

# Settings that must be the same for everybody who uses the home folder, and why.
NOT_LOCAL = {
    "sandbox": "a project must not loosen what confines it",
    "tools": "only you say which keys commands get",
    "lock_heartbeat_seconds": "every process must judge a lock's age by the same measure",
    "contexts": "it is needed before a project's or a context's settings are read",
}

# Lists that add up over the layers instead of replacing each other: no layer may drop another one's refusals.
JOINED = frozenset({("permissions", "allow"), ("permissions", "ask"), ("permissions", "deny"), ("hooks", "disabled")})

# Values of these layers are words typed by somebody: "80" is a number where a number is wanted.
_WORDS = (ENVIRONMENT, COMMAND_LINE)

# Shown as "set" or "", never as they are.
SECRET = frozenset({"api_key"})
# Tables of servers, whose variables and headers are not shown.
SERVERS = frozenset({"mcp"})


class Settings:
    """What all layers together say. `problems` holds warnings: what was ignored and why."""

    __slots__ = ("_layers", "_values", "problems")

    def __init__(
        self, values: dict[type[Struct], Struct], layers: Sequence[Layer], problems: Sequence[SettingsProblem]
    ) -> None:
        self._values = values
        self._layers = tuple(layers)
        self.problems = tuple(problems)

    def of(self, kind: type[S]) -> S:
        """One room's settings; its struct must be among those that were merged."""
        return cast(S, self._values[kind])  # each room's struct is filled under its own type

    def has(self, kind: type[Struct]) -> bool:
        """Whether a room's struct was merged."""
        return kind in self._values

    def is_set(self, *path: str) -> bool:
        """Whether a layer says something there."""
        return any(_has_key(layer.data, path) for layer in self._layers)

    def with_defaults(self, structs: Sequence[type[Struct]]) -> Settings:
        """The same, with what those of these rooms say that were not merged."""
        return Settings(
            {struct: self._values.get(struct) or struct() for struct in structs}, self._layers, self.problems
        )

    def with_value(self, value: Struct) -> Settings:
        """The same, with another value of one room's settings."""
        return Settings({**self._values, type(value): value}, self._layers, self.problems)

    def origin(self, key: str) -> str:
        """Where the value of a dotted key comes from: `config.toml:3`, `environment CRU_MODEL`, `default`."""
        from cru.core.base.config.positions import split_key

        path = split_key(key)
        for layer in reversed(self._layers):
            if _has_key(layer.data, path):
                return layer.place(path)
        return "default"

    def layers(self, key: str) -> tuple[str, ...]:
        """The names of the layers that set a dotted key, the strongest first."""
        from cru.core.base.config.positions import split_key

        path = split_key(key)
        return tuple(layer.name for layer in reversed(self._layers) if _has_key(layer.data, path))

    def as_dict(self) -> dict[str, object]:
        """Each setting by its key, in plain types; secrets only as "set" or "", addresses without theirs."""
        from cru.core.base.config.secret import ADDRESSES, mask_servers, mask_url

        out: dict[str, object] = {}
        for value in self._values.values():
            out.update(to_builtins(value))
        out |= {key: "set" for key in SECRET & out.keys() if out[key]}
        out |= {key: mask_servers(out[key]) for key in SERVERS & out.keys()}
        return out | {key: mask_url(str(out[key])) for key in ADDRESSES & out.keys()}

    def value(self, key: str) -> object:
        """The value of a dotted key in plain types, secrets as in `as_dict`. Raises ConfigError for an unknown key."""
        from cru.core.base.config.closest import did_you_mean
        from cru.core.base.config.positions import split_key

        value: object = self.as_dict()
        for name in split_key(key):
            if not isinstance(value, dict) or name not in value:
                known = value if isinstance(value, dict) else ()
                raise ConfigError([SettingsProblem(f"unknown setting `{key}`", hint=did_you_mean(name, known))])
            value = value[name]
        return value


def merge_layers(structs: Sequence[type[Struct]], layers: Sequence[Layer], *, tables: Tables | None = None) -> Settings:
    """Checked settings out of layers, weakest first; tables merge key by key, lists replace each other (but see JOINED).
    `tables` names the keys of free tables and their types, "*" any other key: {"api": {"temperature": float,
    "reasoning.effort": str}, "models.*.api": …}. Raises ConfigError with everything that is wrong."""
    values: dict[type[Struct], Struct] = {}
    warnings: list[SettingsProblem] = []
    filled = [layer for layer in layers if layer.data]
    merged = _check_and_merge(structs, filled, tables or {}, warnings) if filled else {}
    for struct in structs:
        own = {key: merged[key] for key in struct.__struct_encode_fields__ if key in merged}
        values[struct] = _convert(own, struct) if own else struct()
    return Settings(values, filled, warnings)


def _check_and_merge(
    structs: Sequence[type[Struct]], layers: list[Layer], tables: Tables, warnings: list[SettingsProblem]
) -> dict[str, object]:
    from cru.core.base.config.check import SettingsChecker

    owners = {key: struct for struct in structs for key in struct.__struct_encode_fields__}
    errors: list[SettingsProblem] = []
    merged: dict[str, object] = {}
    for layer in layers:
        check = SettingsChecker(owners, tables, words=layer.name in _WORDS)
        data = check.check_layer(_without_forbidden(layer, errors))
        warnings += [SettingsProblem(text, layer.place(path), hint) for path, text, hint in check.without_effect]
        if layer.name == ENVIRONMENT:
            warnings += [SettingsProblem(text, layer.place(path), hint) for path, text, hint in check.unknown]
        else:
            errors += [SettingsProblem(text, layer.place(path), hint) for path, text, hint in check.unknown]
        errors += [SettingsProblem(text, layer.place(path), hint) for path, text, hint in check.wrong]
        merged = _merge_tables(merged, data, ())
    if errors:
        raise ConfigError(errors)
    return merged


def _without_forbidden(layer: Layer, errors: list[SettingsProblem]) -> Mapping[str, object]:
    """The layer's data without the settings that it may not hold, each of which is an error."""
    if layer.name not in (PROJECT, CONTEXT):
        return layer.data
    for key, why in NOT_LOCAL.items():
        if key in layer.data:
            hint = f"set it in the home folder's config.toml: {why}"
            errors.append(SettingsProblem(f"`{key}` cannot be set for one {layer.name}", layer.place((key,)), hint))
    return {key: value for key, value in layer.data.items() if key not in NOT_LOCAL}


def _merge_tables(below: Mapping[str, object], above: Mapping[str, object], path: tuple[str, ...]) -> dict[str, object]:
    both = dict(below)
    for key, value in above.items():
        both[key] = _merge_values(below[key], value, (*path, key)) if key in below else value
    return both


def _merge_values(below: object, above: object, path: tuple[str, ...]) -> object:
    if isinstance(below, dict) and isinstance(above, dict):
        return _merge_tables(below, above, path)
    if path in JOINED and isinstance(below, list | tuple) and isinstance(above, list | tuple):
        return [*below, *above]
    return above


def _has_key(data: object, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(data, dict) or name not in data:
            return False
        data = data[name]
    return True


def _convert(own: dict[str, object], struct: type[Struct]) -> Struct:
    try:
        return convert(own, struct)
    except ValidationError as error:  # only a rule that joins several keys can still fail here
        raise ConfigError([SettingsProblem(f"{', '.join(f'`{key}`' for key in own)}: {error}")]) from error


class SettingsProblem(Struct, frozen=True):
    """One thing that is wrong.

    message: what it is, for people
    where: `file:line`, an environment variable or a layer's name; "": it has no place
    hint: the next step
    """

    message: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class ConfigError(CruError):
    """Settings cannot be used. `problems` holds each thing that is wrong, in the order of the layers and of their keys."""

    def __init__(self, problems: Sequence[SettingsProblem]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            only = self.problems[0]
            super().__init__(str(SettingsProblem(only.message, only.where)), only.hint)
        else:
            shown = [f"  {problem}" for problem in self.problems[:MOST_SHOWN]]
            if more := len(self.problems) - len(shown):
                shown.append(f"  and {more:,} more")
            listed = "\n".join(shown)
            super().__init__(f"{len(self.problems)} settings are wrong:\n{listed}")
