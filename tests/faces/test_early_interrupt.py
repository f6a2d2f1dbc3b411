"""Ctrl-C while cru is still being loaded, wherever in it: one word and the exit status that it always has."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.kit import HomeDir

pytestmark = pytest.mark.real_start

INTERRUPTING = """
import os, signal, sys

due = [{module!r}]

def gate(event, arguments):
    if event == "import" and arguments[0] in due:
        due.clear()
        os.kill(os.getpid(), signal.SIGINT)

if {is_deaf}:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.addaudithook(gate)
sys.argv[0] = "cru"
from cru.faces.cli.main import main
main()
"""
MOMENTS = {
    "before anything": "cru.faces.cli.entry",
    "in a library that does not look whether an import of its own worked": "datetime",
    "in the event loop": "asyncio.base_events",
    "in the session's parts": "cru.core.compose",
}


def run(home: HomeDir, module: str, is_deaf: bool = False) -> tuple[int, str]:
    """Exit status and standard error of a prompt."""
    script = home.path / "replies.txt"
    script.write_text("text: fine\n")
    home.configure(f'model = "scripted:{script}"\n')
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTING.format(module=module, is_deaf=is_deaf), "hi"],
        env=home.env, cwd=home.project, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_ends_the_process_at_once(home: HomeDir, moment: str) -> None:
    assert run(home, MOMENTS[moment]) == (130, "cru: interrupted\n")


def test_who_does_not_hear_it_goes_on(home: HomeDir) -> None:
    code, told = run(home, "cru.core.compose", is_deaf=True)
    assert code == 0 and "interrupted" not in told
