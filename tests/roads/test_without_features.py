"""cru without one of its features: it starts, helps and answers. What belongs to the feature says so, and no guard of it opens."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit import Call, Done, HomeDir, Reply, Server, server

import cru
from cru.core.command_table import FEATURES, Feature

SOURCE = Path(cru.__file__).parent
NAMES = [feature.name for feature in FEATURES]
RUN = "from cru.faces.cli.main import main; main()"
COMMANDS = {
    "vault": ("vault", "list"),
    "mcp": ("mcp", "list"),
    "formats": ("oq", "list"),
    "workflows": ("fsm", "list"),
    "fleet": ("batch", "x.txt"),
}
"""Of those that have a command of their own on the command line."""


class Program:
    """cru from a folder in which a feature is missing.

    without: the folder of the feature that is gone; row: whether its row is gone, too
    """

    def __init__(self, folder: Path, home: HomeDir, without: str, *, row: bool = True) -> None:
        self.home, package = home, folder / "cru"
        for place in (package / "features", package / "core"):
            place.mkdir(parents=True)
        for source in (*SOURCE.iterdir(), *(SOURCE / "features").iterdir(), *(SOURCE / "core").iterdir()):
            there = package / source.relative_to(SOURCE)
            if source.name not in (without, "__pycache__") and not there.exists():
                there.symlink_to(source)
        if not row:
            (package / "core" / "command_table.py").unlink()
            text = (SOURCE / "core" / "command_table.py").read_text()
            (package / "core" / "command_table.py").write_text(
                f"{text}\n\nFEATURES = tuple(f for f in FEATURES if f.name != {without!r})\n"
                "COMMANDS = collect_commands(FEATURES)\n"
            )
        self._env = {**home.env, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *words: str) -> Done:
        run = subprocess.run(
            [sys.executable, "-P", "-c", RUN, *words],
            env=self._env,
            cwd=self.home.project,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Done(run.returncode, run.stdout, run.stderr)


@pytest.fixture
def model(home: HomeDir) -> Iterator[Server]:
    with server([Reply(calls=[Call("bash", {"command": "echo $((6 * 7))"})]), Reply("done")]) as running:
        home.configure(url=running.url)
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("row", [True, False], ids=["its row is there", "its row is gone"])
@pytest.mark.parametrize("name", NAMES)
def test_cru_works_without_it(tmp_path: Path, home: HomeDir, model: Server, name: str, row: bool) -> None:
    program = Program(tmp_path / "src", home, name, row=row)
    (home.cru / "plugins").mkdir()
    (home.cru / "plugins" / "guard.lua").write_text(
        'cru.on("tool:before_call", function(ctx, event) cru.log("warn", "heard") end)\n'
    )
    assert "cru [FLAGS] [PROMPT" in program.run("--help").out
    done = program.run("-t", "go")
    assert (done.code, done.out) == (0, "done\n"), done.err
    assert "heard" in done.err and "42" in str(model.requests[1].body)
    assert program.run("doctor").code in (0, 1)


@pytest.mark.parametrize("name", COMMANDS)
def test_its_command_says_whose_it_was(tmp_path: Path, home: HomeDir, name: str) -> None:
    done = Program(tmp_path / "src", home, name).run(*COMMANDS[name])
    assert done.code == 1 and f"belongs to the feature {name}, which this cru does not have" in done.err, done
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "feature", [feature for feature in FEATURES if feature.names], ids=lambda feature: feature.name
)
def test_its_names_say_whose_they_were(tmp_path: Path, home: HomeDir, feature: Feature) -> None:
    name, (family, _, functions) = feature.name, feature.names[0]
    call = f"cru.{family}.{functions.split()[0].rstrip('_')}"
    program = Program(tmp_path / "src", home, name)
    home.configure('model = "scripted:/nowhere"\n')
    (home.project / "script.lua").write_text(f"print(pcall(function() return {call} end))")
    done = program.run("lua", "script.lua")
    assert f"belongs to the feature {name}" in done.out + done.err, done


def test_settings_of_it_are_refused(tmp_path: Path, home: HomeDir, model: Server) -> None:
    program = Program(tmp_path / "src", home, "vault")
    home.configure(f'[vault]\npath = "{tmp_path}"\n', url=model.url)
    done = program.run("go")
    assert done.code == 1 and "belongs to the feature vault" in done.err and model.requests == []


def test_a_saved_workflow_that_nothing_can_hold_keeps_the_session_from_opening(
    tmp_path: Path, home: HomeDir, model: Server
) -> None:
    program = Program(tmp_path / "src", home, "workflows")
    assert program.run("go").code == 0
    state = home.context() / "plugin-state.json"
    state.write_text('{"cru": {"fsm:review": {"status": "running"}}}')
    count = len(model.requests)
    done = program.run("and now?")
    assert done.code == 1 and "belongs to the feature workflows" in done.err and len(model.requests) == count


def test_every_feature_has_a_folder_and_every_folder_a_row() -> None:
    folders = {
        entry.name for entry in os.scandir(SOURCE / "features") if entry.is_dir() and entry.name != "__pycache__"
    }
    assert folders == set(NAMES)
