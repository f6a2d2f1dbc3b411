"""What a start may load; how much of it: test_budgets.py. Deterministic, so that a slow machine fails nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.kit import HomeDir, Reply, cru, pty, server
from tests.kit.scripts import shebang

pytestmark = pytest.mark.real_start

REPORT = """
import os, sys
real = os._exit
def leave(code):
    ran = [name for name, module in sys.modules.items() if type(module).__name__ != "DeferredModule"]
    os.write(2, ("MODULES " + " ".join(ran) + "\\n").encode())
    real(code)
os._exit = leave
sys.argv = ["cru", *sys.argv[1:]]
from cru.faces.cli.main import main
main()
leave(0)
"""
HEAVY = {"rich", "prompt_toolkit", "tomlkit", "typing_extensions", "lupa", "pyreqwest", "sqlite3", "dataclasses", "http.client",
         "urllib.request", "email", "tempfile", "shutil", "random", "argparse", "click", "pydantic", "json"}  # fmt: skip
NOT_BEFORE_A_CALL = {
    "ssl", "_ssl", "asyncio.sslproto", "inspect", "ast", "dis", "tokenize", "linecache", "ipaddress", "textwrap", "locale",
    "encodings.idna", "msgspec.inspect", "msgspec.toml", "msgspec.yaml", "termios", "concurrent.futures.thread",
    "cru.core.turn.calls.batch", "cru.core.turn.calls.tool_call",
    "cru.core.tools.output", "cru.core.base.process", "cru.core.turn.compaction", "cru.core.base.files.glob",
}  # fmt: skip
"""What a run over HTTP without a call of a tool does without."""

WITHOUT_HOOKS = {
    "cru.core.hooks",
    *(f"cru.core.hooks.{name}" for name in ("dialects", "discovery", "watcher")),
}
"""What says where the files of each dialect lie, and nothing else of it."""


def loaded(home: HomeDir, *words: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", REPORT, *words],
        env={**home.env, "TMPDIR": str(home.path)},  # where no run that keeps nothing has been, whose remains a start looks at
        cwd=home.project, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return set(run.stderr.rpartition("MODULES ")[2].split())


def bare(home: HomeDir) -> set[str]:
    """What the interpreter of these tests loads by itself."""
    code = "import sys; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", code], env=home.env, capture_output=True, text=True).stdout.split()
    )


def test_the_version_loads_next_to_nothing(home: HomeDir) -> None:
    own = loaded(home, "--version") - bare(home)
    assert own <= {"cru", "cru.faces", "cru.faces.cli", "cru.faces.cli.main", "__future__"}


def test_the_help_loads_neither_typing_nor_anything_of_the_work(home: HomeDir) -> None:
    own = loaded(home, "--help") - bare(home)
    assert not own & {"asyncio", "msgspec", "typing", "re", "enum", "pathlib", "collections", *HEAVY}
    assert {m for m in own if m.startswith("cru.")} <= {
        "cru.faces", "cru.faces.cli", "cru.faces.cli.main", "cru.faces.cli.flags", "cru.faces.cli.console", "cru.core",
        "cru.core.command_table",
    }  # fmt: skip


def test_a_usage_error_loads_no_library(home: HomeDir) -> None:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cru.faces.cli.main", "--jsn"],
        env=home.env, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 2 and "msgspec" not in run.stderr and "asyncio" not in run.stderr


def test_a_listing_loads_no_engine(home: HomeDir) -> None:
    own = loaded(home, "-L") - bare(home)
    assert not own & {"asyncio", "cru.core.compose", "cru.core.turn.session", *HEAVY}


def test_a_one_shot_run_loads_nothing_heavy(home: HomeDir) -> None:
    home.sandbox = ""
    with server([Reply("ok"), Reply("ok")]) as model:
        home.configure(url=model.url)
        assert cru("hi", home=home).code == 0  # what confines here has been tried
        modules = loaded(home, "hi")
    assert not (modules - bare(home)) & HEAVY
    own = {m for m in modules if m.split(".")[0] == "cru"}
    assert not modules & NOT_BEFORE_A_CALL
    assert not {m for m in own if m.startswith("cru.core.models.anthropic")} and "cru.core.models.embedded" not in own


@pytest.mark.slow
def test_the_chat_loads_the_line_editor_and_nothing_for_rendering_before_an_answer(home: HomeDir) -> None:
    script = home.path / "chat"
    report = REPORT.replace("os.write(2", "os.write(os.open('modules.txt', os.O_CREAT | os.O_WRONLY)")
    script.write_text(f"{shebang()}{report}")
    script.chmod(0o755)
    with pty(home=home, script=script, env={"TMPDIR": str(home.path)}) as terminal:
        terminal.expect("> ")
        assert terminal.eof() == 0
    modules = set((home.project / "modules.txt").read_text().split()) - bare(home)
    assert "prompt_toolkit" in modules
    assert not modules & {"rich", "tomlkit", "lupa", "pyreqwest", "sqlite3"}
