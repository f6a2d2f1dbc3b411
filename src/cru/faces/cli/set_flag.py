"""`-s KEY=VALUE`: a setting for one run, stronger than every file (docs/command-line.md, "Settings of a run")."""

from __future__ import annotations

from typing import Any

from cru.core.base.config.layers import COMMAND_LINE, ConfigError, Layer, merge_layers
from cru.core.base.config.positions import split_key
from cru.core.base.files import parse_toml
from cru.core.base.files.nesting import BadToml
from cru.core.compose.start import API_TABLES, settings_structs
from cru.faces.cli.flag_names import foreign_use
from cru.faces.cli.flags import UsageProblem


def add_setting(settings: dict[str, Any], text: str) -> None:
    """Put what `text` says into the settings of the run. The value is TOML if that fits, else a text. Raises UsageProblem."""
    key, mark, value = text.partition("=")
    path = split_key(key)
    if not mark or not path:
        hint = "".join(foreign_use(("--sandbox", text), {})[1:]) or "for example: cru -s api.temperature=0.2 …"
        raise UsageProblem(f"-s needs KEY=VALUE, not `{text}`", hint)
    _set(settings, path, _fitting_value(path, value))


def _fitting_value(path: tuple[str, ...], text: str) -> object:
    """The first reading of the text that the settings accept."""
    problems: list[ConfigError] = []
    for value in (*_toml_values(text), text):
        settings: dict[str, Any] = {}
        _set(settings, path, value)
        try:
            layer = Layer(COMMAND_LINE, settings)
            merge_layers(settings_structs([layer]), [layer], tables=API_TABLES)
        except ConfigError as error:
            problems.append(error)
        else:
            return value
    first = problems[0].problems[0]
    raise UsageProblem(f"-s: {first.message}", first.hint or "cru -n list names all settings") from problems[0]


def _toml_values(text: str) -> list[object]:
    """The value that this is in TOML, if it is one."""
    try:
        table = parse_toml(f"value = {text}")
    except BadToml:
        return []
    return [table["value"]] if len(table) == 1 else []


def _set(table: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        inner = table.get(name)
        if not isinstance(inner, dict):
            inner = table[name] = {}
        table = inner
    table[path[-1]] = value
