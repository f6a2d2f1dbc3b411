"""`cru completion`: what the Tab key of a shell offers."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from tests.kit import HomeDir, cru
from tests.kit.run import program

from cru.faces.cli.completion import ROWS
from cru.faces.cli.flags import FLAGS

BASH = """
eval "$(cru completion bash)"
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_cru
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(home: HomeDir, *words: str) -> list[str]:
    quoted = " ".join(f"'{word}'" for word in words)
    env = {**home.env, "PATH": f"{program().parent}:{home.env['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", BASH.format(words=quoted)], env=env, cwd=home.project, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow
def test_bash_offers_flags_commands_verbs_values_contexts_and_files(home: HomeDir) -> None:
    (home.project / "notes.txt").write_text("")
    cru("-x", "-c", "work", home=home)
    assert offered(home, "cru", "--mo") == ["--model-metadata", "--model-metadata-full", "--model", "--mode"]
    assert offered(home, "cru", "vau") == ["vault"]
    assert offered(home, "cru", "vault", "se") == ["search"]
    assert offered(home, "cru", "--mode", "") == ["ask", "auto", "plan", "trust"]
    assert offered(home, "cru", "-C", "w") == ["work"]
    assert offered(home, "cru", "--attach", "no") == ["notes.txt"]
    assert offered(home, "cru", "oq", "no") == ["notes.txt"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_flag_and_command_is_in_the_script_which_the_shell_can_read(home: HomeDir, shell: str) -> None:
    done = cru("completion", shell, home=home)
    assert (done.code, done.err) == (0, "")
    for flag in FLAGS:
        assert (f"-l {flag.name}" if shell == "fish" else flag.long) in done.out
    for name in ROWS:
        assert name in done.out
    if shutil.which(shell):
        check = ["fish", "--no-execute"] if shell == "fish" else [shell, "-n"]
        read = subprocess.run(check, input=done.out, capture_output=True, text=True)
        assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize("words", [(), ("tcsh",), ("bash", "zsh")])
def test_another_shell_is_an_error_that_names_those_there_are(home: HomeDir, words: tuple[str, ...]) -> None:
    done = cru("completion", *words, home=home)
    assert done.code == 2 and "one of bash, zsh, fish" in done.err and "Traceback" not in done.err
