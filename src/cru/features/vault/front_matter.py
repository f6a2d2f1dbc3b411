"""The front matter of a note: YAML between lines of `---`, or TOML between lines of `+++`, at the very start."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import NamedTuple

from cru.core.base.files import parse_toml
from cru.core.base.files.nesting import BadToml
from cru.core.base.files.yaml_text import BadYaml, parse_yaml, write_yaml

_BEGIN = re.compile(rb"\A(?:\xef\xbb\xbf)?(---|\+\+\+)[ \t]*\r?\n")
_ENDS = {b"---": re.compile(rb"^(?:---|\.\.\.)[ \t]*\r?$", re.M), b"+++": re.compile(rb"^\+\+\+[ \t]*\r?$", re.M)}
_LONG_KEY = re.compile(r"""(?:[ \t]{0,9}\.[ \t]{0,9}[\w"'-]{1,40}){100}""")
"""Reading `a.b.c…` takes the square of its length."""
LIMIT_BYTES = 64 * 1024
"""A longer front matter is not read."""
_MOST_VALUES = 10_000


class NoteProperties(NamedTuple):
    """values: its keys, in types of JSON; body: where the text behind it begins; problem: why it cannot be read, "" if it can."""

    values: dict[str, object]
    body: int
    problem: str = ""


def read_front_matter(data: bytes) -> NoteProperties:
    """Of the bytes of a note. A note without one has none; one that nothing ends is text."""
    begin = _BEGIN.match(data)
    end = begin and _ENDS[begin[1]].search(data, begin.end())
    if not begin or not end:
        return NoteProperties({}, 3 if data.startswith(b"\xef\xbb\xbf") else 0)
    body = min(data.find(b"\n", end.start()) + 1 or len(data), len(data))
    values, problem = _parse(data[begin.end() : end.start()], begin[1] == b"+++")
    return NoteProperties(values, body, problem)


def _parse(source: bytes, is_toml: bool) -> tuple[dict[str, object], str]:
    if len(source) > LIMIT_BYTES:
        return {}, f"its front matter is larger than {LIMIT_BYTES // 1024} kB and was not read"
    try:
        text = source.decode()
        if is_toml and _LONG_KEY.search(text):
            return {}, "its front matter has a key that is too long"
        parsed = parse_toml(text.replace("\r\n", "\n")) if is_toml else parse_yaml(text)
        if parsed is None:
            return {}, ""
        if not isinstance(parsed, dict):
            return {}, "its front matter has no keys"
        return _plain_keys(parsed), ""
    except UnicodeDecodeError:
        return {}, "its front matter is not UTF-8"
    except BadYaml as error:
        # the first line of the file is `---`
        where = f"line {error.line + 1}: " if error.line else ""
        return {}, f"its front matter is not YAML: {where}{error.problem}"
    except BadToml as error:
        return {}, f"its front matter is {error.problem}"
    except _TooMuch:
        return {}, f"its front matter has more than {_MOST_VALUES:,} values"


class _TooMuch(Exception):
    """Aliases may repeat a few values any number of times."""


def _plain_keys(parsed: dict[object, object]) -> dict[str, object]:
    left = [_MOST_VALUES]
    return {_text(key): _plain(value, left, 0) for key, value in parsed.items()}


def _plain(value: object, left: list[int], depth: int) -> object:
    """The value in types of JSON. Raises _TooMuch."""
    left[0] -= 1
    if left[0] < 0 or depth > 50:
        raise _TooMuch
    if isinstance(value, dict):
        return {_text(key): _plain(item, left, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item, left, depth + 1) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > 63:
        return _text(value)
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _text(value: object) -> str:
    """Python writes no number of more than 4,300 digits, but in hexadecimal."""
    return hex(value) if isinstance(value, int) and value.bit_length() > 4096 else str(value)


def with_front_matter(properties: Mapping[str, object], body: str) -> str:
    """Return a note's text with these properties at its start, as YAML."""
    if not properties:
        return body
    return f"---\n{write_yaml(dict(properties))}---\n{body}"
