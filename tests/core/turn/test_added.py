"""CF1 to CF8: files that an answer names are named to the model, never read (docs/events.md, "What it answers")."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from tests.core.turn.support import Ext, World, always

from cru.core.events.answers import Answer

SCRIPT = "loop: yes\ntext: ok\n"
BLOCK = "go\n\n## Referenced files\n"


def world(path: Path, *names: str, **more: object) -> World:
    """A project with a few files, and a handler of prompts that names files."""
    project = path / "project"
    (project / "docs").mkdir(parents=True)
    for name in ("a.md", "docs/b.md", "README.md"):
        (project / name).write_text("secret words")
    (path / "outside.md").write_text("secret words")
    answer = msgspec.structs.replace(Answer(context_files=names), **more)
    return World(path, SCRIPT, Ext({"message:received": always(answer)}))


def sent(made: World) -> str:
    made.run("go")
    [(_, text)] = made.said()
    return text


def journal(made: World) -> list[str]:
    """Notes beside the dispatches."""
    lines = map(msgspec.json.decode, (made.built.store.folder / "journal.jsonl").read_bytes().splitlines())
    return [line["reason"] for line in lines if line["event"] == "context_files"]


def test_cf2_cf5_names_stand_in_a_block_from_the_projects_root(tmp_path: Path) -> None:
    made = world(tmp_path, "docs/b.md", str(tmp_path / "project" / "a.md"), "./docs/../README.md")
    assert sent(made) == f"{BLOCK}- docs/b.md\n- a.md\n- README.md"
    assert b"secret words" not in made.sent[-1]
    assert made.notices() == [] and journal(made) == []


def test_cf1_a_range_of_lines_is_part_of_the_name(tmp_path: Path) -> None:
    made = world(tmp_path, "README.md:1-40", "a.md")
    assert sent(made) == f"{BLOCK}- a.md"
    assert journal(made) == ["README.md:1-40: No such file or directory"]


@pytest.mark.parametrize(("name", "why"), [
    ("missing.md", "No such file"), ("docs", "not a regular file"), ("pipe", "not a regular file"), ("nul\0.md", "null byte"),
    ("loop", "symbolic links"), ("x" * 300, "too long"), ("a.md/b", "Not a directory"),
])  # fmt: skip
def test_cf3_what_is_no_file_is_noted_in_the_journal_only(tmp_path: Path, name: str, why: str) -> None:
    made = world(tmp_path, name)
    os.mkfifo(tmp_path / "project" / "pipe")
    (tmp_path / "project" / "loop").symlink_to("loop")
    assert sent(made) == "go"
    assert made.notices() == []
    [note] = journal(made)
    assert why in note


@pytest.mark.parametrize(
    "name", ["../outside.md", "{path}/outside.md", "link.md", "folder/outside.md", "/etc/passwd", "../gone", "."]
)
def test_cf4_what_lies_outside_is_left_out_and_said(tmp_path: Path, name: str) -> None:
    made = world(tmp_path, name.format(path=tmp_path), "a.md")
    (tmp_path / "project" / "link.md").symlink_to(tmp_path / "outside.md")
    (tmp_path / "project" / "folder").symlink_to(tmp_path)
    assert sent(made) == f"{BLOCK}- a.md"
    [notice] = made.notices()
    assert "lies outside of the project and is left out" in notice


def test_cf6_a_file_is_named_once_as_it_was_spelled_first(tmp_path: Path) -> None:
    made = world(tmp_path, "short.md", "docs/b.md", "a.md", "./a.md", "docs/../a.md")
    (tmp_path / "project" / "short.md").symlink_to("docs/b.md")
    assert sent(made) == f"{BLOCK}- short.md\n- a.md"


def test_cf6_a_link_in_the_middle_does_not_change_which_file_is_meant(tmp_path: Path) -> None:
    made = world(tmp_path, "deep/../b.md")
    (tmp_path / "project" / "docs" / "deep").mkdir()
    (tmp_path / "project" / "deep").symlink_to("docs/deep")
    assert sent(made) == f"{BLOCK}- docs/b.md"


@pytest.mark.parametrize("halt", [True, False])
def test_cf7_nothing_is_named_when_the_answer_is_no(tmp_path: Path, halt: bool) -> None:
    answer = Answer(decision="deny", halt=halt, reason="no", context_files=("a.md",))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.md").write_text("")
    made = World(tmp_path, "call: ls {}\n---\ntext: end\n", Ext({"tool:before_call": always(answer)}))
    made.run("go")
    assert made.results() == ["Blocked by ext: no"]


def test_cf8_the_block_follows_the_context(tmp_path: Path) -> None:
    assert sent(world(tmp_path, "a.md", context=("one",))) == "go\n\none\n\n## Referenced files\n- a.md"


def test_a_name_stays_on_its_line(tmp_path: Path) -> None:
    made = world(tmp_path, "two\nlines \x1b[1m.md")
    (tmp_path / "project" / "two\nlines \x1b[1m.md").write_text("")
    assert sent(made) == f"{BLOCK}- two\\nlines \\x1b[1m.md"
