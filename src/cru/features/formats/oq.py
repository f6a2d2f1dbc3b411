"""`cru.oq`: data in any format, and the jq language over it."""

from __future__ import annotations

from typing import Any

from cru.core.api import jq, plain_data
from cru.core.api.arguments import options
from cru.core.api.arguments import text as a_text
from cru.core.api.host import BadArgument
from cru.features.formats.convert import detect_format, read_format, write_format

NULL = None


def parse(text: str) -> object:
    """oq.parse(text) -> value, in the format that `detect` names. Raises BadArgument.

    Example: cru.oq.parse('{"a": 1}').a --> 1
    """
    return read_format("cru.oq.parse", a_text("cru.oq.parse", "text", text), detect_format(text))


def parse_as(text: str, format: str) -> Any:
    """oq.parse_as(text, "json"|"yaml"|"yml"|"toml"|"toon") -> value. Raises BadArgument.

    Example: cru.oq.parse_as("a = 1", "toml").a --> 1
    """
    return read_format("cru.oq.parse_as", a_text("cru.oq.parse_as", "text", text), format)


def json(value: object) -> str:
    """oq.json(value) -> JSON on one line. Raises BadArgument.

    Example: cru.oq.json({a=1}) --> '{"a":1}'
    """
    return write_format("cru.oq.json", value, "json")


def json_pretty(value: object) -> str:
    """oq.json_pretty(value) -> JSON over several lines. Raises BadArgument.

    Example: cru.oq.json_pretty({1}) --> "[\\n  1\\n]"
    """
    return write_format("cru.oq.json_pretty", value, "json_pretty")


def yaml(value: object) -> str:
    """oq.yaml(value) -> YAML. Raises BadArgument.

    Example: pcall(cru.oq.yaml, function() end) --> false
    """
    return write_format("cru.oq.yaml", value, "yaml")


def toml(value: object) -> str:
    """oq.toml(table) -> TOML; null becomes the text "null". Raises BadArgument for what is no table with keys.

    Example: cru.oq.toml({a=1}) --> "a = 1\\n"
    """
    return write_format("cru.oq.toml", value, "toml")


def toon(value: object) -> str:
    """oq.toon(value) -> TOON, which takes few tokens. Raises BadArgument.

    Example: cru.oq.toon({tags={"a", "b"}}) --> "tags[2]: a,b"
    """
    return write_format("cru.oq.toon", value, "toon")


def convert(value: object, format: str) -> str:
    """oq.convert(value or text, format) -> the text in that format; a text is parsed first. Raises BadArgument.

    Example: cru.oq.convert('{"a": 1}', "toml") --> "a = 1\\n"
    """
    return write_format("cru.oq.convert", parse(value) if isinstance(value, str) else value, format)


def detect(text: str) -> str:
    """oq.detect(text) -> "json", "yaml", "toml" or "toon"; "json" if nothing fits.

    Example: cru.oq.detect("a = 1") --> "toml"
    """
    return detect_format(a_text("cru.oq.detect", "text", text))


def query(value: object, filter: str) -> object:
    """oq.query(value, jq filter) -> the one result, or an array of none or several. A filter sees no environment.
    Raises BadArgument.

    Example: cru.oq.query({a={b=1}}, ".a.b") --> 1
    """
    where = "cru.oq.query"
    results = jq.query(where, plain_data.encode(where, value), a_text(where, "filter", filter))
    return results[0] if len(results) == 1 else results


def format(value: object, opts: dict[str, object] | None = None) -> str:
    """oq.format(value, {tool}?) -> a text for the model: TOON, a plain text as it is, or JSON where TOON cannot be. `tool` names the
    tool whose result it is; every tool's result is shown the same way.

    Example: cru.oq.format({a=1}) --> "a: 1"
    """
    options("cru.oq.format", opts, ("tool",))
    if isinstance(value, str):
        return value
    try:
        return write_format("cru.oq.format", value, "toon")
    except BadArgument:
        return write_format("cru.oq.format", value, "json_pretty")
