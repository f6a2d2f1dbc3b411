"""Whether a layer's values fit the declared types, told key by key so that everything wrong is reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import inf, isfinite
from typing import Literal, TypeAlias, TypeVar, get_args, get_origin

from msgspec import Struct, ValidationError, convert
from msgspec.structs import FieldInfo, fields

T = TypeVar("T")
Path: TypeAlias = tuple[str, ...]

# msgspec's words for types -> what a user calls them.
WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
    "datetime": "a date",
    "date": "a date",
    "time": "a time",
}


@cache
def _fields(struct: type[Struct]) -> tuple[FieldInfo, ...]:
    """Their annotations are text, and evaluated each time that msgspec is asked."""
    return fields(struct)


MOST_HINTS = 20
"""Unknown settings for which a known name is looked for: each costs a comparison with all of them."""


class SettingsChecker:
    """The check of one layer. `unknown` collects (path, message, hint), `wrong` too, and `idle` settings that have no effect."""

    def __init__(
        self, owners: Mapping[str, type[Struct]], tables: Mapping[str, Mapping[str, object]], *, words: bool = False
    ) -> None:
        self.unknown: list[tuple[Path, str, str]] = []
        self.wrong: list[tuple[Path, str, str]] = []
        self.without_effect: list[tuple[Path, str, str]] = []
        self._owners = owners
        self._tables = {tuple(key.split(".")): _nest(value) for key, value in tables.items()}
        self._ranges = {
            tuple(key.split(".")): limits
            for struct in dict.fromkeys(owners.values())
            for key, limits in getattr(struct, "RANGES", {}).items()
        }
        self._words = words

    def check_layer(self, data: Mapping[str, object]) -> dict[str, object]:
        """What fits, converted; the rest is in `unknown` and `wrong`."""
        out: dict[str, object] = {}
        for key, value in data.items():
            struct = self._owners.get(key)
            if struct is None:
                self._report_unknown_room(key)
            else:
                self._check_field(struct, key, value, (), out)
        return out

    def _report_unknown_room(self, key: str) -> None:
        """A key of no room: another program's, or misspelt."""

        if key in CHIBI_WITHOUT_EFFECT:
            self.without_effect.append(((key,), f"`{key}` of chibi has no effect here", CHIBI_WITHOUT_EFFECT[key]))
        elif key in CHIBI_RULES:
            self.unknown.append(((key,), f"`{key}` of chibi is not known here", CHIBI_RULES[key]))
        else:
            self._report_unknown((key,), self._owners)

    def _report_unknown(self, path: Path, known: Mapping[str, object]) -> None:
        from cru.core.base.config.closest import closest
        from cru.core.base.config.positions import join_key, show_key

        if (key := ".".join(path)) in CHIBI_TOOLS:
            self.unknown.append((path, f"`{key}` of chibi is not known here", CHIBI_RULES["tools"]))
            return
        name = closest(path[-1], known) if len(self.unknown) < MOST_HINTS else None
        hint = f"did you mean `{join_key((*path[:-1], name))}`?" if name else ""
        self.unknown.append((path, f"unknown setting `{show_key(path)}`", hint))

    def _check_field(self, struct: type[Struct], key: str, value: object, above: Path, out: dict[str, object]) -> None:
        """One field of a struct. It is also set in a struct of its own, so that `__post_init__` may judge it."""
        path = (*above, key)
        kind = next(field.type for field in _fields(struct) if field.encode_name == key)
        before = len(self.wrong) + len(self.unknown)
        fitted = self._convert(value, kind, path)
        if len(self.wrong) + len(self.unknown) > before:
            return
        if all(not field.required for field in _fields(struct)):
            try:
                convert({key: fitted}, struct)
            except ValidationError as error:
                self._report_misfit(path, error)
                return
        out[key] = fitted

    def _convert(self, value: object, kind: object, path: Path) -> object:
        table = _match(self._tables, path)
        inner = _struct_or_dict(kind)
        if isinstance(value, dict) and table is not None:
            return self._check_table(value, table, path)
        if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, Struct):
            return self._check_struct(value, inner, path)
        if isinstance(value, dict) and get_origin(inner) is dict:
            return {key: self._convert(item, get_args(inner)[1], (*path, key)) for key, item in value.items()}
        try:
            return self._check_range(convert(value, kind, strict=not self._words), path)
        except ValidationError as error:
            if self._words and inner is not None and len(path) == 1:
                self.unknown.append(
                    (path, f"`{path[0]}` is a table, which one word cannot set", "set it in config.toml")
                )
            elif get_origin(kind) is Literal and isinstance(value, str):
                self._report_choices(path, value, get_args(kind))
            else:
                self._report_misfit(path, error)
            return None

    def _check_struct(self, value: dict[str, object], struct: type[Struct], path: Path) -> dict[str, object]:
        out: dict[str, object] = {}
        known = dict.fromkeys(struct.__struct_encode_fields__)
        for key, item in value.items():
            if key in known:
                self._check_field(struct, key, item, path, out)
            else:
                self._report_unknown((*path, key), known)
        return out

    def _check_table(self, value: dict[str, object], table: Mapping[str, object], path: Path) -> dict[str, object]:
        out: dict[str, object] = {}
        for key, item in value.items():
            kind = table.get(key, table.get("*"))
            if kind is None:
                self._report_unknown((*path, key), table)
            elif isinstance(kind, Mapping):
                inner = (*path, key)
                out[key] = (
                    self._check_table(item, kind, inner) if isinstance(item, dict) else self._convert(item, dict, inner)
                )
            else:
                out[key] = self._convert(item, kind, (*path, key))
        return out

    def _check_range(self, value: object, path: Path) -> object:
        """The value; a number outside of what the room says that it may be is wrong."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            return value
        low, high = _match(self._ranges, path) or (-inf, inf)
        if isfinite(value) and low <= value <= high:
            return value
        from cru.core.base.config.positions import join_key

        self.wrong.append((path, f"`{join_key(path)}`: expected {describe_range(low, high)}, got {value}", ""))
        return None

    def _report_choices(self, path: Path, value: str, choices: tuple[object, ...]) -> None:
        from cru.core.base.config.closest import did_you_mean
        from cru.core.base.config.positions import join_key

        words = [str(choice) for choice in choices]
        listed = ", ".join(f"`{word}`" for word in words)
        message = f"`{join_key(path)}`: expected one of {listed}, got `{value}`"
        self.wrong.append((path, message, did_you_mean(value, words)))

    def _report_misfit(self, path: Path, error: ValidationError) -> None:
        from cru.core.base.config.positions import join_key

        message, _, place = str(error).partition(" - at `$")
        dots = place.rstrip("`")
        inside = dots[dots.index("[") :] if "[" in dots else ""
        message, _, hint = message.partition("\n  ")  # as a CruError of a struct's own check prints itself
        self.wrong.append((path, f"`{join_key(path)}{inside}`: {in_plain_words(message)}", hint))


def _nest(table: Mapping[str, object]) -> dict[str, object]:
    """The table with dotted keys as tables in it."""
    out: dict[str, object] = {}
    dotted: dict[str, dict[str, object]] = {}
    for key, kind in table.items():
        outer, dot, inner = key.partition(".")
        if dot:
            out[outer] = dotted.setdefault(outer, {})
            dotted[outer][inner] = kind
        else:
            out[key] = _nest(kind) if isinstance(kind, Mapping) else kind
    return out


def _struct_or_dict(kind: object) -> object:
    """The struct or dict type in this type (or union), None if it holds neither."""
    for member in (kind, *get_args(kind)) if get_origin(kind) is not dict else (kind,):
        if get_origin(member) is dict or member is dict or (isinstance(member, type) and issubclass(member, Struct)):
            return member
    return None


def _match(tables: Mapping[Path, T], path: Path) -> T | None:
    """What a table of paths, in which * is any name, says about this one."""
    for pattern, value in tables.items():
        if len(pattern) == len(path) and all(a in ("*", b) for a, b in zip(pattern, path, strict=True)):
            return value
    return None


def describe_range(low: float, high: float) -> str:
    """A range of numbers in words."""
    if low == -inf and high == inf:
        return "a finite number"
    return f"a number from {low:g} to {high:g}" if high != inf else f"a number of {low:g} or more"


def in_plain_words(message: str) -> str:
    """msgspec's "Expected `int`, got `str`" in the words of a user; other messages as they are."""
    start, middle, end = "Expected `", "`, got `", "`"
    if not message.startswith(start) or middle not in message:
        words = message[:1].lower() + message[1:].replace(" >= ", " of at least ").replace(" <= ", " of at most ")
        for name, english in WORDS.items():
            words = words.replace(f"`{name}`", english)
        return words
    expected, _, got = message.removeprefix(start).removesuffix(end).partition(middle)
    kinds = [WORDS.get(name, name) for name in expected.split(" | ") if name != "null"]
    return f"expected {' or '.join(kinds)}, got {WORDS.get(got, got)}"


CHIBI_WITHOUT_EFFECT: dict[str, str] = {
    "fallback_tool": "an answer without a call ends the turn; plugins may go on with it",
    "fuel_empty_response_cost": "",
    "subagent_cost_tier": "",
    "file_tools_allowed_paths": 'outside of the project is asked about, or `[permissions] allow = ["read:~/notes/**"]`',
    "storage": "rotation needs no settings",
    "vfs": "",
    "site": "",
}
"""A warning names them; they have no effect."""

CHIBI_RULES: dict[str, str] = {
    "tools": 'write it as rules: `[permissions] deny = ["bash"]`',
    "url_policy": 'write it as rules: `[permissions] deny = ["fetch:http://10.*"]`',
}
"""They forbid something, so nothing runs before they are rewritten."""

CHIBI_TOOLS = frozenset(f"tools.{key}" for key in ("include", "exclude", "exclude_categories", "tiers", "http", "env"))
"""What chibi has in a table that means something else here."""
