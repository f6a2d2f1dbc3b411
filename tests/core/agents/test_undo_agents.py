"""What sub-agents change belongs to the turn in which they worked."""

from __future__ import annotations

import json
from pathlib import Path

from tests.core.agents.support import call, script
from tests.core.agents.test_worktree import git_project
from tests.core.turn.test_undo_commands import Desk, repository, work_tree


def write(name: str, content: str) -> str:
    return "call: write " + json.dumps({"file_path": name, "content": content}) + "\n"


def bash(command: str) -> str:
    return "call: bash " + json.dumps({"command": command}) + "\n"


def test_files_and_commands_of_sub_agents_go_with_the_turn(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    child = script(
        tmp_path,
        "child",
        write("kept", "by the agent\n") + "---\n" + bash("rm gone; echo x > made") + "---\ntext: did it\n",
    )
    desk = Desk(tmp_path, f"by: order\n{call('general', child)}\n---\ntext: done\n")
    desk.a.unlink()
    before = work_tree(root)
    desk.type("go")
    assert not (root / "gone").exists() and (root / "made").exists()
    shown = Desk(tmp_path, "").type("/undo")[-1]
    assert work_tree(root) == before and "cannot be taken back" not in shown


def test_without_git_sub_agents_are_named(tmp_path: Path) -> None:
    child = script(tmp_path, "child", bash("echo x > made") + "---\ntext: did it\n")
    desk = Desk(tmp_path, f"by: order\n{call('general', child, description='make it')}\n---\ntext: done\n")
    desk.type("go")
    assert "sub-agents worked, whose commands cannot be taken back: `make it`" in Desk(tmp_path, "").type("/undo")[-1]


def test_a_worktree_of_its_own_is_nobodys_change(tmp_path: Path) -> None:
    git_project(tmp_path)
    child = script(tmp_path, "child", write("new", "x\n") + "---\ntext: did it\n")
    desk = Desk(tmp_path, f"by: order\n{call('general', child, isolation='worktree')}\n---\ntext: done\n")
    desk.type("go")
    keeper = desk.session.parts.services.changes.keeper()
    assert keeper is not None and keeper.store.changes() == []
    assert Desk(tmp_path, "").type("/undo")[-1].splitlines()[1:] == ["/redo brings it again, until the next prompt"]
