"""`-s KEY=VALUE`: a setting for one run, stronger than every file (docs/command-line.md, "Settings of a run")."""

from __future__ import annotations

from typing import Any

from cru.app.start import API_TABLES, SETTINGS
from cru.config.errors import ConfigError
from cru.config.layers import COMMAND_LINE, Layer
from cru.config.merge import merge_layers
from cru.config.positions import split_key
from cru.faces.cli.flags import UsageProblem


def put(given: dict[str, Any], text: str) -> None:
    """Set what `text` says in the settings of the run. The value is TOML if that fits, else a text. Raises UsageProblem."""
    key, mark, value = text.partition("=")
    path = split_key(key)
    if not mark or not path:
        raise UsageProblem(f"-s needs KEY=VALUE, not `{text}`", "for example: cru -s api.temperature=0.2 …")
    _put(given, path, _fitting(path, value))


def _fitting(path: tuple[str, ...], value: str) -> Any:
    candidates = [*_toml(value), value]
    problems: list[ConfigError] = []
    for one in candidates:
        alone: dict[str, Any] = {}
        _put(alone, path, one)
        try:
            merge_layers(SETTINGS, [Layer(COMMAND_LINE, alone)], tables=API_TABLES)
        except ConfigError as error:
            problems.append(error)
        else:
            return one
    first = problems[0].problems[0]
    raise UsageProblem(f"-s: {first.message}", first.hint or "cru -n list names all settings") from problems[0]


def _toml(value: str) -> list[Any]:
    """The value that this is in TOML, if it is one."""
    import tomllib

    try:
        found = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):  # a number of thousands of digits, too
        return []
    return [found["value"]] if len(found) == 1 else []


def _put(table: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        inner = table.get(name)
        if not isinstance(inner, dict):
            inner = table[name] = {}
        table = inner
    table[path[-1]] = value
