"""Reading a configuration in TOML, as reading.py reads JSON: the same object, with the same lines."""

from __future__ import annotations

from typing import Any

from cru.core.base.config.positions import positions
from cru.core.base.files import parse_toml
from cru.core.base.files.nesting import BadToml
from cru.core.hooks.model.entry import HookSource, ProblemKind
from cru.core.hooks.parsing.positions import Path
from cru.core.hooks.parsing.reading import Reading


class TomlReading(Reading):
    """A TOML file while it is read; see Reading."""

    def _decoded(self, text: str, comments: bool) -> dict[str, object]:
        try:
            value = parse_toml(text)
        except BadToml as error:
            self.wrong(error.problem, line=error.line, kind=ProblemKind.WHOLE_FILE)
            return {}
        self._lines = _lines(text, value)
        return value


def open_reading(source: HookSource, *, comments: bool = False) -> Reading:
    """The file as what its name says it is."""
    return TomlReading(source) if source.path.suffix == ".toml" else Reading(source, comments=comments)


def _lines(text: str, value: dict[str, object]) -> dict[Path, int]:
    """The line of every key and every table; a table of a list is counted by its `[[header]]`."""
    rows = text.split("\n")
    lines: dict[Path, int] = {}
    count: dict[Path, int] = {}
    for names, line in positions(text):
        path: Path = ()
        node: Any = value
        for depth, name in enumerate(names, 1):
            path, node = (*path, name), node.get(name) if isinstance(node, dict) else None
            if not _is_tables(node):
                continue
            if depth == len(names) and rows[line - 1].lstrip().startswith("[["):
                count[path] = count.get(path, -1) + 1
                lines.setdefault(path, line)
            index = min(count.get(path, 0), len(node) - 1)
            path, node = (*path, index), node[index]
        lines.setdefault(path, line)
    return lines


def _is_tables(node: object) -> bool:
    return isinstance(node, list) and bool(node) and all(isinstance(table, dict) for table in node)
