"""Where hooks stand, what they read of it, and where tools stand: one folder, wherever cru is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.core.hooks.dialect_world import results
from tests.kit import Call, HomeDir, Reply, cru, server
from tests.roads.command_hooks import BASH, FLAT, HOOKS, PLACES

EVENTS = {"gemini": "BeforeTool"}
DIALECTS = ("crush", "claude", "codex", "gemini", "cru")
HOOK = "cat > {folder}/read.json; pwd > {folder}/pwd.txt; env > {folder}/env.txt"


def install(home: HomeDir, dialect: str) -> None:
    handler = {"command": HOOK.format(folder=home.path)}
    if dialect not in FLAT:
        handler = {"hooks": [{"type": "command", **handler}]}  # type: ignore[dict-item]
    path = home.path / PLACES[dialect]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": {EVENTS.get(dialect, "PreToolUse"): [{"matcher": BASH[dialect], **handler}]}}))


@pytest.fixture
def sub(home: HomeDir) -> Path:
    (home.project / ".git").mkdir()
    folder = home.project / "sub" / "deep"
    folder.mkdir(parents=True)
    return folder


def run(home: HomeDir, cwd: Path, command: str = "pwd", *flags: str) -> str:
    """What the model read of its command."""
    with server([Reply(calls=[Call("bash", {"command": command})]), Reply("done")]) as model:
        home.configure(f'mode = "trust"\n{HOOKS}', model.url)
        done = cru(*flags, "go", home=home, cwd=cwd)
        assert done.code == 0, done
        return results(model.requests[-1].body["messages"])[-1].strip()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_working_directory(home: HomeDir, sub: Path, dialect: str) -> None:
    install(home, dialect)
    pwd, root = run(home, sub), str(home.project.resolve())
    env = dict(line.split("=", 1) for line in (home.path / "env.txt").read_text().splitlines() if "=" in line)
    read = json.loads((home.path / "read.json").read_text())
    assert (pwd, read["cwd"], (home.path / "pwd.txt").read_text().strip()) == (root, root, root)
    assert {env[name] for name in ("PWD", "CRUSH_CWD", "GEMINI_CWD", "CRU_PROJECT_ROOT") if name in env} == {root}


def test_a_root_elsewhere(home: HomeDir, sub: Path) -> None:
    other = home.path / "other"
    other.mkdir()
    install(home, "claude")
    pwd, root = run(home, sub, "pwd", "--project-root", str(other)), str(other.resolve())
    read = json.loads((home.path / "read.json").read_text())
    assert (pwd, read["cwd"], (home.path / "pwd.txt").read_text().strip()) == (root, root, root)


def test_a_folder_that_a_command_went_to_is_left_with_it(home: HomeDir, sub: Path) -> None:
    install(home, "claude")
    with server(
        [
            Reply(calls=[Call("bash", {"command": "cd sub"})]),
            Reply(calls=[Call("bash", {"command": "pwd"})]),
            Reply("done"),
        ]
    ) as model:
        home.configure(f'mode = "trust"\n{HOOKS}', model.url)
        assert cru("go", home=home, cwd=sub).code == 0
        pwd = results(model.requests[-1].body["messages"])[-1].strip()
    root = str(home.project.resolve())
    assert (pwd, json.loads((home.path / "read.json").read_text())["cwd"]) == (root, root)


@pytest.mark.parametrize("dialect", ["crush", "claude", "codex", "gemini"])
def test_a_script_of_the_root_is_found_from_below(home: HomeDir, sub: Path, dialect: str) -> None:
    """A guard of the project that names its script from the root holds wherever in the project cru is started."""
    install(home, dialect)
    place = {"crush": "crush.json"}.get(dialect, PLACES[dialect].removeprefix(".config/"))
    path = home.project / place
    path.parent.mkdir(exist_ok=True)
    path.write_text((home.path / PLACES[dialect]).read_text().replace(HOOK.format(folder=home.path), "sh guard.sh"))
    (home.path / PLACES[dialect]).unlink()
    (home.project / "guard.sh").write_text("echo never >&2; exit 2\n")
    assert "never" in run(home, sub, "pwd", "--hooks=all")
