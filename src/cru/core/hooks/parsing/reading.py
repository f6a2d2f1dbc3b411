"""Reading a configuration: JSON with lines, values of the right type, ids that stay."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from hashlib import sha256
from math import inf
from typing import Any

import msgspec

from cru.core.base.config.closest import closest
from cru.core.hooks import HOOKS_FILE
from cru.core.hooks.model.entry import HookFileProblem, HookSource, ProblemKind
from cru.core.hooks.parsing.positions import Path, line_of_error, locate_values, without_comments

MOST_SECONDS = 1_000_000_000
EMPTY_HINT = "a file without hooks is {}, or is deleted"
GUARDED = ("hooks", "permissions", "tools", "excludeTools", "disable")
"""How keys of a file begin under which, in any dialect, something stands that refuses."""
DESCRIPTIVE_KEYS = ("$schema", "description", "version")
"""Of a file of nothing but hooks: what may stand beside them."""
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
WORDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


class Reading:
    """One file while it is read. `value` is its JSON ({} if it has none), `problems` what was wrong so far."""

    def __init__(self, source: HookSource, *, comments: bool = False) -> None:
        self.source = source
        self.problems: list[HookFileProblem] = []
        self._taken: dict[str, int] = {}
        self._lines: dict[Path, int] = {}
        self.value: dict[str, object] = self._decoded(source.text.removeprefix("\ufeff"), comments)
        for key in filter(is_misspelt, self.value):
            self.report_misprint(key, "hooks")

    def _decoded(self, text: str, comments: bool) -> dict[str, object]:
        plain = without_comments(text) if comments else text
        if not plain.strip():
            self.wrong("it is empty", EMPTY_HINT, kind=ProblemKind.WHOLE_FILE)
            return {}
        try:
            value = msgspec.json.decode(plain)
        except (ValueError, RecursionError) as error:  # msgspec's own are ValueErrors
            self.wrong(f"not JSON: {error}", line=line_of_error(plain, error), kind=ProblemKind.WHOLE_FILE)
            return {}
        if not isinstance(value, dict):
            self.wrong("not a JSON object", line=1, kind=ProblemKind.WHOLE_FILE)
            return {}
        positions = locate_values(plain)
        self._lines = positions.lines
        for path, line in positions.twice.items():
            if path and str(path[0]).startswith(GUARDED):
                self.wrong(f"`{path[-1]}` is given twice; only the last one counts", line=line, kind=ProblemKind.PART)
        return value

    def report_misprint(self, key: str, name: str) -> None:
        """A key of the file that is nearly one under which guards stand: they are passed by."""
        self.wrong(f"`{key}` is not known here", f"did you mean `{name}`?", line=self.line(key), kind=ProblemKind.PART)

    def report_misplaced_events(self, events: Container[str]) -> list[str]:
        """Hooks that stand beside `hooks` instead of in it: they are passed by. Gives their keys; the first stands for all of them."""
        names = [key for key in self.value if key in events]
        if self.source.path.name == HOOKS_FILE and "hooks" not in self.value:
            names = names or [key for key in self.value if key not in DESCRIPTIVE_KEYS and not is_misspelt(key)]
        for key in names[:1]:
            text = f"`{key}` does not stand in `hooks`, so it does not count"
            self.wrong(text, 'write {"hooks": { … }} around it', line=self.line(key), kind=ProblemKind.PART)
        return names

    def line(self, *path: str | int) -> int:
        """Where a value stands, else the nearest thing around it."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 0)

    def wrong(
        self, text: str, hint: str = "", *, line: int = 0, kind: ProblemKind = ProblemKind.ODDITY, key: str = ""
    ) -> None:
        self.problems.append(HookFileProblem(self.source.path, line, text, hint, kind, key))

    def typed(
        self,
        table: Mapping[str, object],
        key: str,
        expected: type,
        otherwise: object,
        *path: str | int,
        kind: ProblemKind = ProblemKind.ODDITY,
    ) -> Any:
        """The value of a key if it has the type; else a problem, and `otherwise`. A whole float counts as a whole number."""
        wrong = describe_mistyped(table, {key: expected})
        if wrong:
            self.wrong(wrong, line=self.line(*path, key), kind=kind, key=key)
        return typed_value(table, key, expected, otherwise)

    def id(self, event: str, definition: str) -> str:
        """The same for the same entry of the same file, whatever stands around it."""
        key = f"{self.source.path}\0{event}\0{definition}"
        count = self._taken[key] = self._taken.get(key, 0) + 1
        digest = sha256(f"{key}\0{count}".encode()).hexdigest()[:12]
        return f"{self.source.dialect}-{digest}"


def canonical_definition(value: object) -> str:
    """An entry as it was written, in a form that does not depend on spaces and order."""
    return msgspec.json.encode(value, order="sorted", enc_hook=repr).decode()


def typed_value(table: Mapping[str, object], key: str, kind: type, otherwise: object) -> Any:
    """The value of a key if it has the type, else `otherwise`. A whole float counts as a whole number."""
    value = table.get(key)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is kind else otherwise


def describe_mistyped(table: Mapping[str, object], kinds: Mapping[str, type]) -> str:
    """What is wrong with the first key whose value has not its type; "" if all have."""
    for key, kind in kinds.items():
        if table.get(key) is not None and typed_value(table, key, kind, None) is None:
            return f"`{key}` must be {WORDS[kind]}"
    return ""


def parse_seconds(value: object) -> float | None:
    """A time limit as it is written: seconds, or whatever the dialect counts in; None if it is no number above nothing. One beyond all
    use is cut."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
        return None
    return min(value, MOST_SECONDS)


def has_nul(definition: str) -> bool:
    """Whether a text in an entry, as `definition` gives it, holds the character that no system takes in a command or a name."""
    return _NUL.search(definition) is not None


GUARDING = ("onerror", "onfailure", "failclosed", "failmode", "required", "blocking")
"""What makes a hook hold although it fails, in the words of any system, without what stands between them."""


def is_guarding(key: str) -> bool:
    """Whether a key that nobody knows was meant to make a guard of the hook."""
    return closest("".join(filter(str.isalpha, key.lower())), GUARDING) is not None


def is_misspelt(key: str) -> bool:
    """Whether a key is nearly `hooks`: what stands under it would be passed by in silence."""
    return key != "hooks" and closest(key, ("hooks",)) is not None
