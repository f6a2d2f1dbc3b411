"""Texts that hold data: which format a text is in, reading and writing JSON, YAML, TOML and TOON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from cru.core.api import plain_data
from cru.core.api.arguments import tostring
from cru.core.api.host import BadArgument
from cru.core.api.jq import run_bounded
from cru.core.base.files import TABLE_COST, parse_toml
from cru.core.base.files.nesting import BadToml
from cru.core.base.files.yaml_text import parse_yaml, write_yaml

MOST_NODES = 1_000_000
SMALL = 8000
"""Characters (a value counts as ten) that are read or written at once; more in a process of its own, whose time and memory are limited."""
_SECTION = re.compile(r"\[{1,2}[^\[\],:=]+\]{1,2}\s*(#.*)?")
_ASSIGNMENT = re.compile(r"""(["'][^"']+["']|[A-Za-z0-9_.-]+)\s*=(?!=)\s*\S.*""")
TOON_HEAD = re.compile(r"[^\s:\[]*\[\d+:?[\t|]?\](\{.*\})?:(\s.*)?")
_YAML = re.compile(r"-(\s.*)?|[^\s].*:\s*[|>][+-]?\d?|\s+[^\s:][^:]*:(\s.*)?")
_PAIR = re.compile(r"[^\s:][^:]*:(\s.*)?")


def detect_format(text: str) -> str:
    """json, toml, yaml or toon, by the looks of it; json if nothing fits."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        return "json"
    first = lines[0].strip()
    if any(TOON_HEAD.fullmatch(line.strip()) for line in lines):
        return "toon"
    if first.startswith(("{", "[")):
        return "toml" if _SECTION.fullmatch(first) and not is_json(text) else "json"
    if any(_SECTION.fullmatch(line.strip()) or _ASSIGNMENT.fullmatch(line.strip()) for line in lines):
        return "toml"
    if first.startswith("---") or any(_YAML.fullmatch(line.rstrip()) for line in lines):
        return "yaml"
    return "toon" if any(_PAIR.fullmatch(line) for line in lines) else "json"


def read_format(where: str, text: str, name: str) -> object:
    """The value of a text in this format. Raises BadArgument."""
    _find_format(_READERS, name)
    is_small = len(text) <= SMALL or name == "json"
    return _run_bounded(where, lambda: read_unbounded(where, text, name), is_small)


def read_unbounded(where: str, text: str, name: str) -> object:
    """The same, however long it takes."""
    reader = _find_format(_READERS, name)
    try:
        return to_plain(reader(text))
    except (ValueError, RecursionError) as error:
        raise BadArgument(f"{where}: not {name}: {error}") from error


def write_format(where: str, value: object, name: str) -> str:
    """The value as a text in this format. Raises BadArgument."""
    _find_format(_WRITERS, name)
    plain_data.check(where, value)
    is_small = name.startswith("json") or _estimate_size(value) <= SMALL
    written: str = _run_bounded(where, lambda: write_unbounded(where, value, name), is_small)
    return written


def write_unbounded(where: str, value: object, name: str) -> str:
    """The same of plain data, however long it takes."""
    writer = _find_format(_WRITERS, name)
    try:
        written: str = writer(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadArgument(f"{where}: cannot be written as {name}: {error}") from error
    return written


def _run_bounded(where: str, work: Callable[[], Any], small: bool) -> Any:
    return work() if small else run_bounded(where, work)


def _estimate_size(value: object) -> int:
    """About how many characters it has; more than SMALL are not counted."""
    size, left = 0, [value]
    while left and size <= SMALL:
        item = left.pop()
        size += 10 + (len(item) if isinstance(item, str) else 0)
        left.extend(item.values() if isinstance(item, dict) else item if isinstance(item, (list, tuple)) else ())
    return size


def _find_format(table: dict[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
    function = table.get(name) if isinstance(name, str) else None
    if function is None:
        raise BadArgument(f"Unknown format: {name}", f"formats are {', '.join(table)}")
    return function


def is_json(text: str | bytes) -> bool:
    """Whether it is one JSON document."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def to_plain(value: object) -> object:
    """Data out of what a parser gave. Raises ValueError if it is too much, or nested too deep."""
    return _to_plain(value, [0])


def _to_plain(value: object, count: list[int], depth: int = 0) -> object:
    """Data out of what a parser gave: dates become text, keys become text. A short YAML text may stand for a huge value."""
    count[0] += 1
    if count[0] > MOST_NODES or depth > plain_data.DEPTH:
        raise ValueError(f"more than {MOST_NODES} values, or more than {plain_data.DEPTH} levels")
    if isinstance(value, dict):
        return {_key_text(key): _to_plain(inner, count, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_to_plain(item, count, depth + 1) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _key_text(key: object) -> str:
    return key if isinstance(key, str) else "null" if key is None else tostring(_to_plain(key, [0]))


def _read_json(text: str) -> object:
    return msgspec.json.decode(text)


def _read_toml(text: str) -> object:
    try:
        return parse_toml(text, most_values=TABLE_COST * MOST_NODES)
    except BadToml as error:
        place = f" (at line {error.line}, column {error.column})" if error.column else ""
        raise ValueError(f"{error.problem.removeprefix('not TOML: ')}{place}") from error


def _read_toon(text: str) -> object:
    from toon_format import loads

    return loads(text)


def _read_yaml(text: str) -> object:
    return parse_yaml(text)


def _write_json(value: object) -> str:
    return plain_data.encode("cru.oq.json", value).decode()


def pretty(value: object) -> str:
    """JSON over several lines, two blanks a level."""
    return msgspec.json.format(plain_data.encode("cru.oq.json_pretty", value), indent=2).decode()


def _write_toml(value: object) -> str:
    """TOML has no null: it becomes the text "null"."""
    if value is None:
        return "null"
    if not isinstance(value, dict):
        raise TypeError("a TOML document is a table with keys")
    import tomlkit

    return tomlkit.dumps(_nulls_as_text(value))


def _nulls_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _nulls_as_text(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nulls_as_text(item) for item in value]
    return "null" if value is None else value


def _write_toon(value: object) -> str:
    from toon_format import dumps

    return dumps(value)


def _write_yaml(value: object) -> str:
    return write_yaml(value)


_READERS: dict[str, Callable[[str], object]] = {
    "json": _read_json,
    "yaml": _read_yaml,
    "yml": _read_yaml,
    "toml": _read_toml,
    "toon": _read_toon,
}
_WRITERS: dict[str, Callable[[object], str]] = {
    "json": _write_json,
    "json_pretty": pretty,
    "yaml": _write_yaml,
    "yml": _write_yaml,
    "toml": _write_toml,
    "toon": _write_toon,
}
