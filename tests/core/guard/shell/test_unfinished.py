"""What a shell that reads lines has not run yet; held against bash itself."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kit.growth import assert_linear
from tests.kit.waiting import PATIENCE

from cru.core.guard.shell.unfinished import unfinished_part

CASES = [
    ('for x in ;"\n', 'for x in ;"\n'),
    ("", ""),
    ("ls\n", ""),
    ("ls; pwd &\n", ""),
    ("r\\\n", "r\\\n"),
    ("ls\nr\\\n", "r\\\n"),
    ("ls; r\\\n", "ls; r\\\n"),
    ("ls\n\\\n", "\\\n"),
    ("ls \\\\\n", ""),
    ("ls \\\\\\\n", "ls \\\\\\\n"),
    ("# so \\\n", ""),
    ("ls # so \\\n", ""),
    ("echo '\\\n", "echo '\\\n"),
    ("echo 'a\n", "echo 'a\n"),
    ('git commit -m "\n', 'git commit -m "\n'),
    ('ls\ngit commit -m "a\nb\n', 'git commit -m "a\nb\n'),
    ("echo $'a\n", "echo $'a\n"),
    ("echo $(ls\n", "echo $(ls\n"),
    ("echo `ls\n", "echo `ls\n"),
    ("echo ${a:-\n", "echo ${a:-\n"),
    ("echo $((1 +\n", "echo $((1 +\n"),
    ("a=(1\n", "a=(1\n"),
    ("(ls\n", "(ls\n"),
    ("{ ls\n", "{ ls\n"),
    ("if true; then\n", "if true; then\n"),
    ("if true; then ls\nfi\n", ""),
    ("pwd\nwhile read x; do\necho $x\n", "while read x; do\necho $x\n"),
    ("for x in a\n", "for x in a\n"),
    ("case a in\na) ls\n", "case a in\na) ls\n"),
    ("f() {\n", "f() {\n"),
    ("curl x |\n", "curl x |\n"),
    ("cd x &&\n", "cd x &&\n"),
    ("cat <<E\nrm x\n", "cat <<E\nrm x\n"),
    ("cat <<E\nE\n", ""),
    ("ls\ncat <<'E' | sh\nr\\\n", "cat <<'E' | sh\nr\\\n"),
    # what shells reject is over with its line
    ("print(1)\n", ""),
    ("fi\n", ""),
    ("ls )\n", ""),
    ('print("a")\n', ""),
    ('print("a\n', 'print("a\n'),
    ("for i in range(3):\n", ""),
    ("print(1)\nls \\\n", "ls \\\n"),
    ("a[1](2)\n", "a[1](2)\n"),
    ("a[1] (2)\nls\n", "a[1] (2)\nls\n"),
    ("a[1] b(2)\n", ""),
    ("fifi[[ ]]f() \n", "fifi[[ ]]f() \n"),
    (" xa=([[ ))\n", " xa=([[ ))\n"),
    ("(a=()rm x \n", "(a=()rm x \n"),
    ("(a=([[ rm))\n\n", "(a=([[ rm))\n\n"),
    ("a=([b[1]=x)\n", "a=([b[1]=x)\n"),
    ("a=([1]=x [2]=y)\n", ""),
    ("for x in E\n{ \n", "for x in E\n{ \n"),
    ("if  while for x in \na=(\n", "if  while for x in \na=(\n"),
    # shells differ: nobody knows
    ("echo $[1\n", "echo $[1\n"),
    ("echo \"${a:-'\n", "echo \"${a:-'\n"),
]


@pytest.mark.parametrize(("text", "part"), CASES)
def test_what_is_unfinished(text: str, part: str) -> None:
    assert unfinished_part(text) == part


def test_a_long_text_takes_no_long_time() -> None:
    text = "echo 'a\n" + "b c\n" * 16_000
    assert unfinished_part(text) == text
    assert unfinished_part("print(1)\n" * 300) == ""


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["a", "a[", "a[]", "a[] ", ")", "( )"])
def test_an_error_in_a_long_line_is_found_in_time(piece: str) -> None:
    def work(size: int) -> Callable[[], object]:
        line = piece * (size // len(piece))
        return lambda: unfinished_part(f"{line}x (1)\n")

    assert_linear(work, 60_000)


PIECES = [
    "rm", " -f", " x", "'", '"', "\\", "\n", "\\\n", " ", ";", "|", "&&", "||", "&", "(", ")", "{ ", "}", "$(", "`", "<<E\n", "E\n",
    "if ", "then ", "fi", "do ", "done", "while ", "#", "$'", "${a", "case a in ", "esac", ";;", "a=(", "$((", "))", "f() ",
    "for x in ", "[[ ", "]]", ">", "!",
]  # fmt: skip


def waits_after(text: str, folder: Path) -> bool:
    """Whether bash, which reads lines from a pipe and goes on behind an error, does not run a command in a line of its own behind the text:
    it became a part of what the text began."""
    shell = shutil.which("bash") or "/bin/bash"
    done = subprocess.run(
        [shell, "--norc", "--noprofile", "-i", "+H"], cwd=folder, env={"PATH": "/none"}, timeout=PATIENCE, check=False,
        input=f"{text}builtin echo RUN\n".encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return b"RUN" not in done.stdout


def assert_unfinished_where_bash_waits(seed: int, number: int, folder: Path) -> None:
    """The other way round it need not be: what shells read in different ways counts as unfinished."""
    rng = random.Random(seed)
    waiting = 0
    for _ in range(number):
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 6))) + "\n"
        if waits_after(text, folder):
            waiting += 1
            assert unfinished_part(text), (seed, text)
    assert waiting > number / 12


def test_where_bash_waits_for_more_the_text_is_unfinished(tmp_path: Path) -> None:
    assert_unfinished_where_bash_waits(1, 120, tmp_path)


@pytest.mark.long
def test_where_bash_waits_for_more_any_text_is_unfinished(tmp_path: Path) -> None:
    assert_unfinished_where_bash_waits(random.SystemRandom().getrandbits(32), 10_000, tmp_path)
