"""The regular expressions of cru itself meet texts of strangers: each takes a time that grows with the length, not with its square."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from time import process_time
from typing import Any

import pytest

import cru

SIZE = 6_000
SECONDS = 0.15
PIECES = [
    "a", "0", " ", "\n", "\t", "a ", "-", "_", "/", "\\", '"', "'", "(", "[", "{", "<", "$", "=", "a=", "a.", "a:", "*", "a-", "--",
    "é", "#", "@", "!", "[[", "](", "`", "\n\n", "a\n", " a", "://", "http://", "x,", "/a", "$a", "${", 'a"', '"\\', "sk-", "key=",
    "&", "||", ";", "a;",
]  # fmt: skip
ANCHORED = {"NAMED_ARGUMENT", "ANSWER_LIKE"}
"""Those that are only tried at the beginning of a text."""


def expressions() -> dict[str, re.Pattern[Any]]:
    """Module and name → each expression that stands in a module of the package."""
    root = Path(cru.__file__).parent
    found: dict[tuple[Any, int], tuple[str, re.Pattern[Any]]] = {}
    for path in sorted(root.rglob("*.py")):
        if "bundled" in path.parts or path.stem.startswith("__"):
            continue
        name = ".".join(("cru", *path.relative_to(root).with_suffix("").parts))
        try:
            module = importlib.import_module(name)
        except ImportError:  # needs an extra that is not installed
            continue
        for key, value in vars(module).items():
            if isinstance(value, re.Pattern):
                found.setdefault((value.pattern, value.flags), (f"{name}.{key}", value))
    return dict(found.values())


def seconds_of(name: str, pattern: re.Pattern[Any], text: str) -> float:
    raw: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    begin = process_time()
    if name.rpartition(".")[2] in ANCHORED:
        pattern.match(raw)
    else:
        for _ in pattern.finditer(raw):
            if process_time() - begin > SECONDS:
                break
    return process_time() - begin


@pytest.mark.long
def test_no_expression_of_cru_takes_a_time_that_grows_with_the_square_of_a_text() -> None:
    patterns = expressions()
    assert len(patterns) > 150
    slow = [
        (name, piece)
        for name, pattern in patterns.items()
        for piece in PIECES
        if seconds_of(name, pattern, piece * (SIZE // len(piece)) + "!\0") > SECONDS
    ]
    assert slow == []


def test_fields_of_an_annotation_and_texts_of_fennel_are_read_in_time() -> None:
    from cru.extensions.lua.annotations import parse_annotations
    from cru.extensions.lua.fennel import end_of_form

    begin = process_time()
    parse_annotations("-- @tool " + "a" * 100_000 + "\nfunction f() end\n")
    end_of_form("(" + '"\\' * 100_000, 0)
    assert process_time() - begin < 1.5
    assert end_of_form('(a "(" ; (\n (b)) (c)', 0) == len('(a "(" ; (\n (b))')
    assert end_of_form('(a "b) (c)', 0) == len('(a "b) (c)')
