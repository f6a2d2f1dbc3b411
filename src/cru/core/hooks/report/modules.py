"""Modules that a plugin cannot do without and that are not there, told without importing any."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import cru
from cru.core.api.names import ABSENT, CONSTANTS, NAMES
from cru.core.base.config.closest import did_you_mean

OWN = frozenset(name.partition(".")[0] for name in (*NAMES, *CONSTANTS, *ABSENT))
LUA_KNOWN = OWN | frozenset(
    [
        "cru",
        "crucible",
        "json",
        "cjson",
        "string",
        "table",
        "math",
        "os",
        "io",
        "coroutine",
        "utf8",
        "package",
        "debug",
        "_G",
        "test_mocks",
        "fennel",
    ]
)
LUA_REQUIRE = re.compile(r"""^(?:local\s+[\w, ]+=\s*)?require\s*\(?\s*["']([\w./-]+)["']""", re.MULTILINE)
OFFERED = re.compile(r"""package\.(?:loaded|preload)\s*(?:\.|\[\s*["'])([\w./-]+)""")
MissingModule = tuple[int, str]
"""(the line, what is wrong)."""


def find_missing_imports(tree: ast.Module, file: Path) -> Iterator[MissingModule]:
    """What the statements of a module import in any case: not within functions, conditions or `try`."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _missing_import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from _missing_import(node.lineno, node.module or "")
            if node.module == "cru":
                yield from _missing_names(node)
        elif isinstance(node, ast.ImportFrom) and node.level == 1 and node.module and file.name == "__init__.py":
            path = file.parent / node.module.partition(".")[0]
            if not (path.is_dir() or list(file.parent.glob(f"{path.name}.*"))):
                yield node.lineno, f"there is no module {path.name} in {file.parent}"


def _missing_names(node: ast.ImportFrom) -> Iterator[MissingModule]:
    """`from cru import NAME` fails for a name that is neither in the namespace nor a part of the program."""
    for alias in node.names:
        if (
            alias.name != "*"
            and alias.name not in OWN
            and find_spec(f"cru.{alias.name}") is None
            and not hasattr(cru, alias.name)
        ):
            near = did_you_mean(alias.name, OWN)
            yield node.lineno, f"there is no cru.{alias.name}" + (f"; {near}" if near else "")


def _missing_import(line: int, name: str) -> Iterator[MissingModule]:
    top = name.partition(".")[0]
    try:
        is_there = top.startswith("cru_plugin_") or find_spec(top) is not None
    except (ImportError, ValueError):  # a module that says nothing of where it comes from
        is_there = True
    if not is_there:
        yield line, f"No module named '{top}'"


def find_missing_requires(source: str, folders: Sequence[str], offered: frozenset[str]) -> Iterator[MissingModule]:
    """What a file of Lua requires in any case, at the beginning of a line. folders: where modules lie; offered: those that plugins have for
    each other."""
    for match in LUA_REQUIRE.finditer(source):
        name = match[1]
        path = name.replace(".", "/")
        shapes = (f"{path}.lua", f"{path}/init.lua", f"{path}.fnl", f"{path}/init.fnl")
        is_there = any(Path(folder, shape).is_file() for folder in folders for shape in shapes)
        if name not in LUA_KNOWN | offered and name.partition(".")[0] not in LUA_KNOWN and not is_there:
            near = did_you_mean(name, offered)
            yield source.count("\n", 0, match.start()) + 1, f"there is no module {name}" + (f"; {near}" if near else "")


def offered_modules(source: str) -> Iterator[str]:
    """Modules that a file of Lua puts where other plugins find them."""
    yield from OFFERED.findall(source)
