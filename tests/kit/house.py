"""`python -m tests.kit.house`: the figures of the house: files, lines, short functions, `Any`, names with two meanings, modules of a start.

Figures to look at and to compare, not limits: those are in limits.py and in pyproject.toml.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from msgspec import Struct
from tests.kit.limits import bound_names, files, length

SHORT_FILE, SHORT_FUNCTION = 60, 5
START = """
import os, sys
from cru.faces.cli.main import main
real = os._exit
def leave(code):
    os.write(2, f"MODULES {sum(m.split('.')[0] == 'cru' for m in sys.modules)}".encode())
    real(code)
os._exit = leave
sys.argv = ["cru", "hi"]
main()
leave(0)
"""


class House(Struct):
    """What was counted.

    short_files: files of fewer than 60 lines
    short_functions: functions of at most 5 lines
    anys: uses of the word `Any`
    classes: how often each class name is defined, without leading underscores
    variables: how often each name is bound
    """

    files: int = 0
    lines: int = 0
    short_files: int = 0
    functions: int = 0
    short_functions: int = 0
    anys: int = 0
    classes: Counter[str] = Counter()
    variables: Counter[str] = Counter()


def survey(root: Path) -> House:
    """Count in the package of a checkout."""
    house = House(classes=Counter(), variables=Counter())
    for path in files(root, ("src",), "*.py"):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        lines = len(source.splitlines())
        house.files += 1
        house.lines += lines
        house.short_files += lines < SHORT_FILE
        house.anys += len(re.findall(r"\bAny\b", source))
        house.variables.update(name for _, name in bound_names(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                house.classes[node.name.lstrip("_")] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                house.functions += 1
                house.short_functions += length(node) <= SHORT_FUNCTION
    return house


def start_modules() -> int:
    """How many modules of cru a one-shot run with the scripted model loads."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.txt"
        model.write_text("text: ok\n")
        env = {"HOME": folder, "CRU_MODEL": f"scripted:{model}", "PATH": "/usr/bin:/bin"}
        run = subprocess.run(
            [sys.executable, "-c", START], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True
        )
    return int(run.stderr.rpartition(b"MODULES ")[2])


def main(root: Path) -> None:
    house = survey(root)
    twice = {name: count for name, count in house.classes.most_common() if count > 1}
    print(f"files                      {house.files}, of these under {SHORT_FILE} lines {house.short_files}")
    print(f"lines                      {house.lines}")
    print(
        f"functions                  {house.functions}, of these at most {SHORT_FUNCTION} lines {house.short_functions}"
    )
    print(f"Any per 1,000 lines        {1000 * house.anys / house.lines:.1f}")
    print(
        f"classes                    {sum(house.classes.values())}, names with two meanings {len(twice)} {twice or ''}"
    )
    print(f"modules of a one-shot run  {start_modules()}")
    print(f"most used names            {', '.join(f'{name} {n}' for name, n in house.variables.most_common(40))}")


if __name__ == "__main__":
    main(Path.cwd())
