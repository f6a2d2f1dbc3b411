"""What commands did that /undo cannot bring back: it is named, nothing is lost, and the rest is undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.turn.test_undo_commands import Desk, bash, repository, script, work_tree

from cru.core.turn import UndoRefused


def test_one_half_of_a_move_is_not_taken_back_alone(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    (root / "src").mkdir()
    (root / "src/work").write_text("not committed\n")
    desk = Desk(tmp_path, script(bash("mv src real")))
    desk.type("go")
    (root / "src").symlink_to("real")
    before = work_tree(root)
    with pytest.raises(UndoRefused, match=r"nothing was done: .*/src/work \(its folder is a link now\)") as caught:
        desk.type("/undo")
    assert work_tree(root) == before and "move away what is in the way" in caught.value.hint
    (root / "src").unlink()
    desk.type("/undo")
    assert (root / "src/work").read_text() == "not committed\n" and not (root / "real").exists()


@pytest.mark.parametrize(
    ("command", "left"),
    [
        pytest.param("head -c 1100000 /dev/zero > big", {"big"}, id="new"),
        pytest.param("mkdir deep; head -c 1100000 /dev/zero > deep/big", {"deep/big"}, id="in a new folder"),
        pytest.param("head -c 1100000 /dev/zero > gone", {"gone"}, id="grown"),
        pytest.param("rm large", {"large"}, id="removed"),
        pytest.param("mv large moved", {"large", "moved"}, id="moved"),
    ],
)
def test_a_large_file_is_named_and_the_rest_is_undone(tmp_path: Path, command: str, left: set[str]) -> None:
    root = repository(tmp_path / "project")
    (root / "large").write_bytes(bytes(1_200_000))
    desk = Desk(
        tmp_path, script(bash(f"echo x > kept; {command}; echo y > new")), settings={"undo": {"max_file_mb": 1}}
    )
    desk.a.unlink()
    before = work_tree(root)
    desk.type("go")
    changed = work_tree(root)
    [shown] = desk.type("/undo")
    after = work_tree(root)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == left
    assert all(after.get(name) == changed.get(name) for name in left), "it stays as the command left it"
    assert all(f"{name} (too large to be kept" in shown for name in left) and "files: kept, new\n" in shown


@pytest.mark.parametrize(
    ("command", "named"),
    [
        pytest.param("rm secrets.env", "`secrets.env`", id="removed"),
        pytest.param("echo other > secrets.env", "`secrets.env`", id="overwritten"),
        pytest.param("mv secrets.env moved.env", "`secrets.env`", id="moved"),
        pytest.param("rm -r built", "`built`", id="a folder"),
        pytest.param("rm built/data", "`built/data`", id="in a folder"),
        pytest.param("rm -r built secrets.env", "`built`, `secrets.env`", id="both"),
        pytest.param("echo new > other.env; echo new > built/new; echo more >> built/data", "", id="only built"),
    ],
)
def test_an_ignored_file_that_a_command_destroyed_is_named(tmp_path: Path, command: str, named: str) -> None:
    root = repository(tmp_path / "project")
    (root / ".gitignore").write_text("built/\n*.env\n")
    (root / "secrets.env").write_text("key\n")
    (root / "built").mkdir()
    (root / "built/data").write_text("data\n")
    desk = Desk(tmp_path, script(bash(command) + bash("echo x > kept")))
    [shown] = desk.type("go", "/undo")
    lines = [line for line in shown.splitlines() if "git ignores" in line]
    assert lines == ([f"files that git ignores were changed or removed; they stay so: {named}"] if named else [])
