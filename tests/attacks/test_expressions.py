"""The regular expressions of cru itself meet texts of strangers: each takes a time that grows with the length, not with its square."""

from __future__ import annotations

import ast
import importlib
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.kit.growth import MOST, assert_linear, growth

import cru

SIZE = 6_000
PIECES = [
    "a", "0", " ", "\n", "\t", "a ", "-", "_", "/", "\\", '"', "'", "(", "[", "{", "<", "$", "=", "a=", "a.", "a:", "*", "a-", "--",
    "é", "#", "@", "!", "[[", "](", "`", "\n\n", "a\n", " a", "://", "http://", "x,", "/a", "$a", "${", 'a"', '"\\', "sk-", "key=",
    "&", "||", ";", "a;",
]  # fmt: skip
BOUNDED = {
    "cru.core.hooks.parsing.bounded_regex._TOKEN": 1_000,
    "cru.features.vault.semantic.passages._WIKILINK": 1_400,
    "cru.features.vault.semantic.passages._LINK": 1_400,
    "cru.features.vault.semantic.passages._BREAK": 700,
}
"""Expressions that may take a time that grows with the square: the characters of the longest text that each is given."""
TRIED_ONCE = {"match", "fullmatch"}
"""Methods that try the beginning of a text, or a place where the last match ended."""


class Expression(NamedTuple):
    """An expression that stands in a module, and how the package uses it."""

    name: str
    pattern: re.Pattern[Any]
    methods: set[str]

    @property
    def is_searched(self) -> bool:
        return not self.methods or not self.methods <= TRIED_ONCE


def expressions() -> list[Expression]:
    """Each expression that stands in a module of the package; what is used in no known way counts as searched for."""
    root = Path(cru.__file__).parent
    methods = methods_of_names(root)
    found: dict[tuple[Any, int], Expression] = {}
    for path in sources(root):
        try:
            module = importlib.import_module(module_name(root, path))
        except ImportError:  # needs an extra that is not installed
            continue
        for key, value in vars(module).items():
            if isinstance(value, re.Pattern):
                name = f"{module.__name__}.{key}"
                known = found.setdefault((value.pattern, value.flags), Expression(name, value, set()))
                known.methods.update(methods.get(name, ()))
    return [*found.values()]


def sources(root: Path) -> list[Path]:
    return [
        path for path in sorted(root.rglob("*.py")) if "bundled" not in path.parts and not path.stem.startswith("__")
    ]


def module_name(root: Path, path: Path) -> str:
    return ".".join(("cru", *path.relative_to(root).with_suffix("").parts))


def methods_of_names(root: Path) -> dict[str, set[str]]:
    """`module.NAME` → the methods that are called on it, `?` for any other use."""
    methods: dict[str, set[str]] = {}
    for path in sources(root):
        tree = ast.parse(path.read_text())
        own = module_name(root, path)
        names = {node.id: f"{own}.{node.id}" for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        called = [node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                methods.setdefault(names[node.value.id], set()).add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in called:
                methods.setdefault(names[node.id], set()).add("?")
    return methods


def try_texts(expression: Expression, texts: list[str]) -> None:
    pattern = expression.pattern
    for text in texts:
        raw: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
        pattern.match(raw)
        pattern.fullmatch(raw)
        if expression.is_searched:
            deque(pattern.finditer(raw), maxlen=0)


@pytest.mark.slow
def test_how_an_expression_is_used_is_seen() -> None:
    by_name = {each.name: each.is_searched for each in expressions()}
    assert (
        not by_name["cru.core.guard.shell.syntax._ASSIGNMENT"] and not by_name["cru.core.base.config.secret._REFERENCE"]
    )
    assert by_name["cru.core.hooks.report.idle_plugins.IMPORTED"]


@pytest.mark.long
def test_no_expression_of_cru_takes_a_time_that_grows_with_the_square_of_a_text() -> None:
    every = expressions()
    assert len(every) > 150
    slow = []
    for expression in every:

        def work(size: int, expression: Expression = expression) -> Callable[[], object]:
            texts = [piece * (size // len(piece)) + "!\0" for piece in PIECES]
            return lambda: try_texts(expression, texts)

        if expression.name not in BOUNDED and (ratio := growth(work, SIZE)) > MOST:
            slow.append((expression.name, round(ratio, 1)))
    assert slow == []


@pytest.mark.slow
def test_fields_of_an_annotation_and_texts_of_fennel_are_read_in_time() -> None:
    from cru.core.plugins.lua.annotations import parse_annotations
    from cru.core.plugins.lua.fennel import end_of_form

    def read_annotations(size: int) -> Callable[[], object]:
        text = "-- @tool " + "a" * size + "\nfunction f() end\n"
        return lambda: parse_annotations(text)

    def read_form(size: int) -> Callable[[], object]:
        text = "(" + '"\\' * size
        return lambda: end_of_form(text, 0)

    assert_linear(read_annotations, 100_000)
    assert_linear(read_form, 100_000)
    assert end_of_form('(a "(" ; (\n (b)) (c)', 0) == len('(a "(" ; (\n (b))')
    assert end_of_form('(a "b) (c)', 0) == len('(a "b) (c)')


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["[", "{", "${"])
def test_brackets_that_are_not_closed_are_read_in_time(piece: str) -> None:
    from cru.core.hooks.dialects.claude.permissions import _SPECIAL

    def work(size: int) -> Callable[[], object]:
        text = piece * size
        return lambda: _SPECIAL.sub("*", text)

    assert_linear(work, 20_000)
    assert _SPECIAL.sub("*", f"src/{piece}a") == f"src/{piece[:-1]}*"
    assert _SPECIAL.sub("*", "a[bc]d{e,f}g?h") == "a*d*g*h"
