"""`python -m tests.kit.limits`: files and functions that are too long, names that tell nothing or mean two things, and words that do not
belong into the project.

Tests look at no clock: what they measure on it depends on the machine and on what else runs there.

A file may have 400 lines, a function 40 (decorators and docstring not counted). `# long: reason` on the line of the `def`
excuses one function, `# vague: reason` the names of one line.
tests/data and tests/programs hold other programs' code, so their length is theirs.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

FILE_LINES = 400
FUNCTION_LINES = 40
LATE_IMPORTS = 5.7
"""Imports inside functions of the package, per 1,000 lines: as many as there are. May fall."""
CODE = ("src", "tests")
FOREIGN = ("tests/data/", "tests/programs/")
TEXT = ("src", "tests", "docs", "bench", ".ci")
PAGES = ("README.md", "Makefile", "pyproject.toml", "constraints.txt")
# Folders of the place where the project is written; put together here so that this file does not name them itself.
WORDS = tuple("/".join(parts) for parts in (("", "work", ""), ("", "farm", ""), ("", "root", ""), ("shared", "")))
VAGUE = frozenset({"one", "found", "said", "given", "odd", "made", "told", "wanted", "mine", "theirs"})
"""Names of variables and parameters that say nothing of what they hold."""
# Made by tools, not by people.
SKIPPED = ("__pycache__", ".egg-info", ".mypy_cache", ".ruff_cache", ".pytest_cache")

CLOCKS = frozenset({"monotonic", "perf_counter", "process_time", "thread_time", "getrusage"})
CLOCKS |= {f"{name}_ns" for name in CLOCKS} | {"processor_time", "loop.time"}
"""Functions whose results are no stamps but serve to measure; `processor_time` is that of tests/kit/forked.py."""
MAY_LOOK_AT_CLOCKS = {
    "tests/kit/": "the helpers that tests use instead: growth.py, waiting.py and what waits for a program",
    "tests/fuzz/__main__.py": "is not a test: it notes texts that took long, for a person",
    "tests/kit_tests/test_server.py": "compares the times that the server noted with each other",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Report(Struct):
    """What was found: counts of files and the longest one, and one line for each offence."""

    files: int = 0
    longest: str = ""
    lines: int = 0
    offences: list[str] = []


def length(function: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def excused(line: str) -> bool:
    """Whether a `def` line carries `# long:` and a reason."""
    return bool(line.partition("# long:")[2].strip())


def long_functions(source: str) -> Iterator[tuple[int, str, int]]:
    """(line, name, length) of each function that is too long."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function) and length(node) > FUNCTION_LINES and not excused(lines[node.lineno - 1]):
            yield node.lineno, node.name, length(node)


def files(root: Path, folders: tuple[str, ...], pattern: str = "*") -> Iterator[Path]:
    for folder in folders:
        for path in sorted((root / folder).rglob(pattern)):
            if path.is_file() and not any(part.endswith(SKIPPED) for part in path.relative_to(root).parts):
                yield path


def check_lengths(root: Path, report: Report) -> None:
    for path in files(root, CODE, "*.py"):
        name = path.relative_to(root).as_posix()
        if name.startswith(FOREIGN):
            continue
        source = path.read_text(encoding="utf-8")
        count = len(source.splitlines())
        report.files += 1
        if count > report.lines:
            report.lines, report.longest = count, name
        if count > FILE_LINES:
            report.offences.append(f"{name}: {count} lines, {FILE_LINES} allowed")
        try:
            found = list(long_functions(source))
        except SyntaxError as error:
            report.offences.append(f"{name}:{error.lineno}: not Python: {error.msg}")
            continue
        for line, function, lines in found:
            report.offences.append(f"{name}:{line}: {function} has {lines} lines, {FUNCTION_LINES} allowed")


def late_imports(tree: ast.Module) -> int:
    """How many imports stand inside of functions."""
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    inside = {
        node for function in functions for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(inside)


def check_late_imports(root: Path, report: Report) -> None:
    """Of the package: a module is imported at the top of a file unless the start, or the first call, must not load it."""
    lines, late = 0, 0
    for path in files(root, ("src",), "*.py"):
        source = path.read_text(encoding="utf-8")
        try:
            late += late_imports(ast.parse(source))
        except SyntaxError:
            continue  # check_lengths has told it
        lines += source.count("\n")
    if late * 1000 > LATE_IMPORTS * lines and lines > 1000:
        report.offences.append(f"src: {late} imports inside of functions, {LATE_IMPORTS * lines / 1000:.0f} allowed")


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of each variable that is assigned and each parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def check_names(root: Path, report: Report) -> None:
    """Of the package alone: no vague variables, and no class name twice."""
    classes: dict[str, str] = {}
    for path in files(root, ("src",), "*.py"):
        name = path.relative_to(root).as_posix()
        source = path.read_text(encoding="utf-8")
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue  # check_lengths has told it
        lines = source.splitlines()
        for line, bound in bound_names(tree):
            if bound in VAGUE and "# vague: " not in lines[line - 1]:
                report.offences.append(f"{name}:{line}: `{bound}` says nothing of what it holds")
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                first = classes.setdefault(node.name.lstrip("_"), f"{name}:{node.lineno}")
                if first != f"{name}:{node.lineno}":
                    report.offences.append(f"{name}:{node.lineno}: there is another class {node.name} at {first}")


def check_words(root: Path, report: Report) -> None:
    for path in (*files(root, TEXT), *(root / page for page in PAGES if (root / page).exists())):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            for word in WORDS:
                if word in line:
                    report.offences.append(f"{path.relative_to(root).as_posix()}:{number}: names {word!r}")


def is_clock(node: ast.AST, clocks: frozenset[str] | set[str]) -> bool:
    """Whether it is a call of a clock: `time.monotonic()`, `monotonic()`, `loop.time()`, or a function that returns such a time."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in clocks
    if not isinstance(node.func, ast.Attribute):
        return False
    owner, name = ast.unparse(node.func.value), node.func.attr
    is_loop = name == "time" and (owner.endswith("loop") or "get_running_loop" in owner)
    return is_loop or (owner in ("time", "resource", "forked") and name in clocks)


def compared_times(function: ast.AST, clocks: set[str]) -> Iterator[tuple[int, str]]:
    """(line, source) of each comparison of what comes from a clock, in a function or module."""
    nodes = list(ast.walk(function))
    names: set[str] = set()

    def is_time(node: ast.AST) -> bool:
        return any(
            is_clock(part, clocks) or (isinstance(part, ast.Name) and part.id in names) for part in ast.walk(node)
        )

    while True:
        before = len(names)
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    names.update(bound.id for bound, value in pairs(target, node.value) if is_time(value))
        if len(names) == before:
            break
    for node in nodes:
        if isinstance(node, ast.Compare) and is_time(node):
            yield node.lineno, ast.unparse(node)


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Each name of an assignment and what it becomes."""
    if isinstance(target, (ast.Tuple, ast.List)):
        is_alike = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        values = value.elts if is_alike and isinstance(value, (ast.Tuple, ast.List)) else [value] * len(target.elts)
        for part, its_value in zip(target.elts, values, strict=True):
            yield from pairs(part, its_value)
    elif isinstance(target, ast.Name):
        yield target, value


def clock_functions(tree: ast.Module) -> set[str]:
    """The clocks, and the functions of this module that return a time."""
    clocks = set(CLOCKS)
    for node in ast.walk(tree):
        returns_float = isinstance(node, Function) and node.returns and "float" in ast.unparse(node.returns)
        if isinstance(node, Function) and returns_float and any(is_clock(part, clocks) for part in ast.walk(node)):
            clocks.add(node.name)
    return clocks


def check_clocks(root: Path, report: Report) -> None:
    """Of the tests: no comparison looks at a clock, outside of MAY_LOOK_AT_CLOCKS."""
    for path in files(root, ("tests",), "*.py"):
        name = path.relative_to(root).as_posix()
        if name.startswith(("tests/data/", *MAY_LOOK_AT_CLOCKS)):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except SyntaxError:
            continue  # reported by check_lengths, or not a test
        clocks = clock_functions(tree)
        scopes = [node for node in tree.body if isinstance(node, Function | ast.ClassDef)]
        others = ast.Module([node for node in tree.body if node not in scopes], [])
        for line, source in sorted({found for scope in (*scopes, others) for found in compared_times(scope, clocks)}):
            report.offences.append(
                f"{name}:{line}: looks at a clock: `{source}`; see tests/kit/growth.py and waiting.py"
            )


def check(root: Path) -> Report:
    """Look at a checkout."""
    report = Report()
    check_lengths(root, report)
    check_late_imports(root, report)
    check_names(root, report)
    check_words(root, report)
    check_clocks(root, report)
    return report


def main(root: Path) -> int:
    report = check(root)
    for offence in report.offences:
        print(offence)
    print(f"{report.files} files, longest {report.longest} ({report.lines})")
    return 1 if report.offences else 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
