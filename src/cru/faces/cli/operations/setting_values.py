"""`-n FIELD`: settings as they hold for a context, by dotted name; keys are never shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cru.core.base.config.closest import did_you_mean
from cru.core.base.config.positions import join_key, split_key
from cru.core.base.config.secret import is_secret
from cru.faces.cli.flags import UsageProblem

if TYPE_CHECKING:
    from cru.core.base.config.layers import Settings


def setting_value(settings: Settings, name: str, others: tuple[str, ...]) -> str:
    """The value as a text, a table as `key = value` lines. `others` are names that -n knows too. Raises UsageProblem."""
    path = split_key(name)
    if not path:
        raise UsageProblem("-n needs the name of a setting", "-n list names what there is")
    value: Any = _as_dict(settings)
    for at, part in enumerate(path):
        if not isinstance(value, dict) or part not in value:
            if at and isinstance(value, dict) and _is_free(path[:at]):
                return f"({name} is not set)"
            known = [join_key((*path[:at], key)) for key in value] if isinstance(value, dict) else []
            near = did_you_mean(name, [*known, *(() if at else others)])
            raise UsageProblem(f"cannot inspect {name}", near or "-n list names what there is")
        value = value[part]
    if is_secret(path[-1]):
        return "set" if value else f"({name} is not set)"
    return "\n".join(_lines(value, ())) or f"({name} is not set)"


def setting_names(settings: Settings) -> list[str]:
    """Every setting; of free tables what is in them."""
    return [join_key(path) for path, _ in _leaves(_as_dict(settings), ())]


def _as_dict(settings: Settings) -> dict[str, object]:
    from cru.core.compose.start import every_struct

    return settings.with_defaults(every_struct()).as_dict()


def _is_free(path: tuple[str, ...]) -> bool:
    """Whether a table has keys of which none need be there."""
    from cru.core.compose.start import API_TABLES

    return path[0] in {name.partition(".")[0] for name in API_TABLES}


def _lines(value: object, path: tuple[str, ...]) -> Iterator[str]:
    for inner, leaf in _leaves(value, path):
        if inner and leaf is None:
            continue  # a part of a table that is not set
        is_hidden = bool(inner) and isinstance(leaf, str) and is_secret(inner[-1])
        text = "set" if is_hidden and leaf else _text(leaf, bare=not inner)
        yield f"{join_key(inner)} = {text}" if inner else text


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif not (isinstance(value, dict) and not path):
        yield path, value


def _text(value: object, bare: bool) -> str:
    """A text as it is if it stands alone; the rest as TOML writes it."""
    if bare and (value is None or isinstance(value, str)):
        return value or ""
    from msgspec import json

    return json.encode(value, enc_hook=str).decode()
