"""One key changed in a TOML file, everything else (comments, order, blanks) left as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.core.base.config.layers import ConfigError, SettingsProblem
from cru.core.base.config.positions import split_key
from cru.core.base.files.atomic import replace_file

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from pathlib import Path

    from tomlkit import TOMLDocument


def set_value(path: Path, key: str, value: object) -> None:
    """Set a dotted key, making the file (mode 0600) and tables if they are missing; None removes the key. Raises ConfigError
    if the file is not TOML, a part of the key is not a table, or it cannot be written."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(_read_text(path))
        _set_key(document, split_key(key), value, path)
        text = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigError([SettingsProblem(f"not TOML: {error}", str(path), "mend the file first")]) from error
    try:
        replace_file(path, text.encode(), make_folders=True)
    except OSError as error:
        raise ConfigError([SettingsProblem(f"cannot be written: {error.strerror}", str(path))]) from error


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([SettingsProblem(f"cannot be read: {error}", str(path))]) from error


def _set_key(document: TOMLDocument, names: tuple[str, ...], value: object, path: Path) -> None:
    import tomlkit

    table: MutableMapping[str, object] = document
    for name in names[:-1]:
        if name not in table:
            if value is None:
                return
            table[name] = tomlkit.table(is_super_table=name != names[-2])
        inner = table[name]
        if not isinstance(inner, dict):
            raise ConfigError([SettingsProblem(f"`{name}` is not a table", str(path))])
        table = inner
    if value is None:
        table.pop(names[-1], None)
    else:
        table[names[-1]] = list(value) if isinstance(value, tuple) else value
