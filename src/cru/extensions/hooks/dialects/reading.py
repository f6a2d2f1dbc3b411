"""Reading a configuration: JSON with lines, values of the right type, ids that stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from cru.extensions.hooks.entry import Problem, Source
from cru.extensions.hooks.located import Path, line_of_error, lines, without_comments

WORDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


class Reading:
    """One file while it is read. `value` is its JSON ({} if it has none), `problems` what was wrong so far."""

    def __init__(self, source: Source, *, comments: bool = False) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self._taken: dict[str, int] = {}
        self._lines: dict[Path, int] = {}
        self.value: dict[str, Any] = self._decoded(source.text.removeprefix("\ufeff"), comments)

    def _decoded(self, text: str, comments: bool) -> dict[str, Any]:
        plain = without_comments(text) if comments else text
        if not plain.strip():
            return {}
        try:
            value = msgspec.json.decode(plain)
        except (msgspec.DecodeError, RecursionError) as error:
            self.wrong(f"not JSON: {error}", line=line_of_error(plain, error), fatal=True)
            return {}
        if not isinstance(value, dict):
            self.wrong("not a JSON object", line=1, fatal=True)
            return {}
        self._lines = lines(plain)
        return value

    def line(self, *path: str | int) -> int:
        """Where a value stands, else the nearest thing around it."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 0)

    def wrong(self, text: str, hint: str = "", *, line: int = 0, fatal: bool = False) -> None:
        self.problems.append(Problem(self.source.path, line, text, hint, fatal))

    def typed(self, table: Mapping[str, Any], key: str, kind: type, otherwise: Any, *path: str | int) -> Any:
        """The value of a key if it has the type; else a problem, and `otherwise`. A whole float counts as a whole number."""
        value = table.get(key)
        if value is None:
            return otherwise
        if kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not kind:
            self.wrong(f"`{key}` must be {WORDS[kind]}", line=self.line(*path, key))
            return otherwise
        return value

    def id(self, event: str, definition: str) -> str:
        """The same for the same entry of the same file, whatever stands around it."""
        said = f"{self.source.path}\0{event}\0{definition}"
        count = self._taken[said] = self._taken.get(said, 0) + 1
        digest = sha256(f"{said}\0{count}".encode()).hexdigest()[:6]
        return f"{self.source.dialect}-{digest}"


def definition(value: Any) -> str:
    """An entry as it was written, in a form that does not depend on spaces and order."""
    return msgspec.json.encode(value, order="sorted", enc_hook=repr).decode()


def bad_regex(pattern: str) -> str:
    """Why a regular expression cannot be used; "" if it can."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return ""
