"""`python -m tests.kit.mutants`: find small changes of the code that guards which no test notices.

A mutant is one change of one place: a comparison turned, `and` made `or`, a condition negated, a constant changed, a statement left out.
Each is written into a copy of the checkout, where the short run (`make test`) goes on until a test fails. When all have been tried, all
tests (`make test-all`) run against those that the short run did not kill. The output says for each mutant which run killed it.

usage: python -m tests.kit.mutants [--count 60] [--seed 1] [--folder DIR] [--list]
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[2]
MODULES = (
    "core/turn/calls/tool_call.py", "core/turn/calls/batch.py", "core/turn/settling.py", "core/turn/loop_guard.py",
    "core/guard/rules/gate.py", "core/guard/rules/rules.py", "core/guard/trust/accepted_files.py", "core/events/answers.py",
    "core/events/chain.py", "core/conversations/lock.py", "core/conversations/log.py",
)  # fmt: skip
"""What is changed, below src/cru; the tests of its room are run first, since they are most likely to notice."""
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
PYTEST = (".venv/bin/python", "-m", "pytest", "-n", "4", "--dist", "worksteal", "-x")
SHORT, ALL = ("--short",), ("-m", "not soak")
LONGEST = 3600
"""Seconds after which a run counts as failed, because the mutant made it hang."""


class Mutant(Struct, frozen=True):
    """module: below src/cru; line: of the change; before, after: source text"""

    module: str
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: `{self.before}` -> `{self.after}`"


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Return every mutant of a module."""
    tree = ast.parse(source)
    for node in _changeable(tree):
        for changed in _changes(node):
            before = ast.get_source_segment(source, node)
            assert before is not None and isinstance(node, ast.expr | ast.stmt)
            after = "pass" if changed is None else f"({ast.unparse(changed)})"
            yield Mutant(
                module, node.lineno, " ".join(before.split())[:100], after[:100], _replace(source, node, after)
            )


def _changeable(node: ast.AST) -> Iterator[ast.AST]:
    """Return all nodes but those in texts, whose places Python 3.11 does not know, and in the options of a class."""
    yield node
    left_out = node.keywords if isinstance(node, ast.ClassDef) else []
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr) and child not in left_out:
            yield from _changeable(child)


def _changes(node: ast.AST) -> Iterator[ast.expr | None]:
    """Return what a node may be replaced by; None stands for a statement that is left out."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in TURNED and len(node.ops) == 1:
        yield ast.Compare(node.left, [TURNED[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif _can_be_left_out(node):
        yield None


def _can_be_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Attribute)
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Raise | ast.AugAssign)


def _replace(source: str, node: ast.expr | ast.stmt, after: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None and node.end_col_offset is not None
    first, last = node.lineno - 1, node.end_lineno - 1
    joined = lines[first][: node.col_offset] + after.encode() + lines[last][node.end_col_offset :]
    return b"".join([*lines[:first], joined, *lines[last + 1 :]]).decode()


def choose(count: int, seed: int) -> list[Mutant]:
    """Return so many mutants, the same number of each module as far as that goes."""
    rng = random.Random(seed)
    pools = [list(mutants(module, (ROOT / "src/cru" / module).read_text())) for module in MODULES]
    for pool in pools:
        rng.shuffle(pool)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(pools):
        chosen += [pool.pop() for pool in pools if pool]
    return chosen[:count]


def is_killed(folder: Path, mutant: Mutant, options: tuple[str, ...]) -> bool:
    """Play the tests to a mutant: those of its room first, and all of them if none of these fails."""
    file = folder / "src/cru" / mutant.module
    original = file.read_text()
    file.write_text(mutant.text)
    room = next(str(place) for place in Path("tests", mutant.module).parents if (folder / place).is_dir())
    try:
        return any(_fails(folder, options, where) for where in ((room, "tests/core/turn", "tests/roads"), ("tests",)))
    finally:
        file.write_text(original)


def _fails(folder: Path, options: tuple[str, ...], where: tuple[str, ...]) -> bool:
    words = [*PYTEST, *options, *dict.fromkeys(where)]
    try:
        run = subprocess.run(
            words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return True
    if run.returncode not in (0, 1, 2):
        raise SystemExit(f"pytest exited with {run.returncode}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kit.mutants")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the copy of the checkout is made, and kept")
    parser.add_argument("--list", action="store_true", help="only say which they are")
    options = parser.parse_args()
    chosen = choose(options.count, options.seed)
    if options.list:
        print(*chosen, sep="\n")
        return
    folder = options.folder or Path(tempfile.mkdtemp(prefix="cru-mutants-")) / "cru"
    if not folder.exists():
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".venv", "*.egg-info", "__pycache__"))
        subprocess.run(["make", "setup"], cwd=folder, check=True)
    survivors = _play(folder, chosen, "the short run", SHORT)
    left = _play(folder, survivors, "all tests", ALL)
    killed = len(chosen) - len(left)
    print(f"all tests kill {killed} of {len(chosen)}, the short run {len(chosen) - len(survivors)} of these")


def _play(folder: Path, chosen: list[Mutant], run: str, options: tuple[str, ...]) -> list[Mutant]:
    """Play a run to each mutant, say what became of it, and return those that survive."""
    survivors = []
    for number, mutant in enumerate(chosen, 1):
        is_dead = is_killed(folder, mutant, options)
        print(f"{number} of {len(chosen)}, {'killed by' if is_dead else 'SURVIVES'} {run}: {mutant}", flush=True)
        if not is_dead:
            survivors.append(mutant)
    return survivors


if __name__ == "__main__":
    main()
