"""What a shell that reads lines has not run yet; held against bash itself."""

from __future__ import annotations

import os
import random
import select
import shutil
import subprocess
from pathlib import Path

import pytest

from cru.shell.unfinished import unfinished_part

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


PIECES = [
    "rm", " -f", " x", "'", '"', "\\", "\n", "\\\n", " ", ";", "|", "&&", "||", "&", "(", ")", "{ ", "}", "$(", "`", "<<E\n", "E\n",
    "if ", "then ", "fi", "do ", "done", "while ", "#", "$'", "${a", "case a in ", "esac", ";;", "a=(", "$((", "))", "f() ",
    "for x in ", "[[ ", "]]", ">", "!",
]  # fmt: skip


class Bash:
    """One that reads lines from a pipe, and goes on behind an error."""

    def __init__(self, folder: Path) -> None:
        shell = shutil.which("bash") or "/bin/bash"
        self._process = subprocess.Popen(
            [shell, "--norc", "--noprofile", "-i", "+H"], bufsize=0, cwd=folder, env={"PATH": "/none"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def waits_after(self, text: str) -> bool:
        """Whether a command in a line of its own behind the text is not run: it became a part of what the text began."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{text}builtin echo RUN\n".encode())
        output = self._process.stdout.fileno()
        ready = select.select([output], [], [], 0.15)[0]
        return not (ready and b"RUN" in os.read(output, 65536)) and self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def test_where_bash_waits_for_more_the_text_is_unfinished(tmp_path: Path) -> None:
    """The other way round it need not be: what shells read in different ways counts as unfinished."""
    rng = random.Random()
    seed = rng.getrandbits(32)
    rng.seed(seed)
    waiting = 0
    for _ in range(120):
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 6))) + "\n"
        bash = Bash(tmp_path)
        try:
            if bash.waits_after(text):
                waiting += 1
                assert unfinished_part(text), (seed, text)
        finally:
            bash.close()
    assert waiting > 10
