"""The canonical arguments of the built-in tools, and how a model's mistake in them is worded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from cru.tools.protocol import ArgumentError

Some = Annotated[str, Meta(min_length=1)]
Positive = Annotated[int, Meta(ge=1)]


class Read(Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Some
    offset: Positive = 1
    limit: Positive = 2000


class Write(Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Some
    content: str


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Some
    old_string: str
    new_string: str
    replace_all: bool = False


class Ls(Struct, frozen=True, forbid_unknown_fields=True):
    path: Some = "."


class Glob(Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Some
    path: Some = "."


class Grep(Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Some
    path: Some = "."
    include: Some | None = None
    ignore_case: bool = False
    context: Annotated[int, Meta(ge=0, le=20)] = 0


class Bash(Struct, frozen=True, forbid_unknown_fields=True):
    command: Some
    timeout: Annotated[float, Meta(gt=0, le=3600)] | None = None


class Fetch(Struct, frozen=True, forbid_unknown_fields=True):
    url: Some


class Content(Struct, frozen=True, forbid_unknown_fields=True):
    content: str


class ReadContext(Struct, frozen=True, forbid_unknown_fields=True):
    context_name: Some
    include_messages: bool | Literal["true", "false"] = True  # chibi's schema has a string
    num_messages: Annotated[int, Meta(ge=0)] = 5


class SendMessage(Struct, frozen=True, forbid_unknown_fields=True):
    to: Some
    content: Some
    from_: Some | None = field(name="from", default=None)


class CallUser(Struct, frozen=True, forbid_unknown_fields=True):
    message: str = ""


class Recurse(Struct, frozen=True, forbid_unknown_fields=True):
    note: str = ""


S = TypeVar("S", bound=Struct)

_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def check_arguments(kind: type[Struct], arguments: str | Mapping[str, object]) -> dict[str, object]:
    """The arguments as given, validated against `kind`; null for an argument that may be left out counts as left out.

    Accepts the model's JSON text ("" counts as {}) or an object already parsed. Raises ArgumentError.
    """
    decoded = _decode(arguments) if isinstance(arguments, str) else dict(arguments)
    optional = kind.__struct_encode_fields__[len(kind.__struct_fields__) - len(kind.__struct_defaults__) :]
    present = {key: value for key, value in decoded.items() if value is not None or key not in optional}
    parse_arguments(kind, present)
    return present


def parse_arguments(kind: type[S], arguments: Mapping[str, object]) -> S:
    """The arguments as a struct with its defaults filled in. Raises ArgumentError."""
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise ArgumentError(_explain(str(error), kind)) from error


def _decode(text: str) -> dict[str, object]:
    try:
        value = msgspec.json.decode(text) if text.strip() else {}
    except ValueError as error:
        raise ArgumentError(f"the arguments are not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ArgumentError(f"the arguments must be a JSON object, got {_NAMES[_kind_of(value)]}")
    return value


def _kind_of(value: object) -> str:
    return "array" if isinstance(value, list) else "null" if value is None else type(value).__name__


def _explain(problem: str, kind: type[Struct]) -> str:
    """Words msgspec's message for a model: which argument, what was expected, what it got."""
    what, _, where = problem.partition(" - at `$.")
    if what.startswith("Object contains unknown field"):
        return _unknown(what.split("`")[1], kind)
    if what.startswith("Object missing required field"):
        return f"`{what.split('`')[1]}`: required, but missing"
    if what.startswith("Expected `str` of length >= 1"):
        return f"`{where.rstrip('`')}`: must not be empty"
    words = what.replace("Expected", "expected", 1)
    for name, english in _NAMES.items():
        words = words.replace(f"`{name}`", english).replace(f"`{name} | null`", english)
    return f"`{where.rstrip('`')}`: {words}"


def _unknown(name: str, kind: type[Struct]) -> str:
    from cru.config.closest import closest

    known = kind.__struct_encode_fields__
    near = closest(name, known)
    meant = f"did you mean `{near}`?" if near else "known: " + ", ".join(f"`{k}`" for k in known)
    return f"`{name}`: unknown argument; {meant}"
