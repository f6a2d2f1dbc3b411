"""What other programs and earlier versions wrote must always load. These files are never regenerated."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.core.conversations.support import DATA, Home, said, texts

from cru.core.conversations.inbox import read_inbox


def golden(tmp_path: Path, name: str) -> Home:
    shutil.copytree(DATA / name, tmp_path / name)
    return Home(tmp_path / name)


def test_a_home_of_chibi_0_4_works_as_it_is(tmp_path: Path) -> None:
    home = golden(tmp_path, "chibi-0.4")
    assert home.prepare() == ()
    assert (home.current, home.previous, home.names()) == ("desk", None, ["default", "desk", "notes"])
    context = home.open(home.current)
    assert [p.line for p in context.refresh()] == [6]
    assert [e.entry_type for e in context.visible()] == [
        "message",
        "tool_call",
        "tool_result",
        "message",
        "compaction",
        "message",
    ]
    assert context.visible()[0].from_ == "ann"
    assert context.summary() == "They fixed the build.\n"
    assert context.read_text("todos.md") == "- [ ] tests\n"
    assert [m.from_ for m in read_inbox(context.folder)[0]] == ["notes"]
    assert home.reflection == "Be brief.\n"
    context.append(said("go on"))
    assert texts(home.open("desk").entries())[-1] == "go on"


def test_a_home_of_chibi_0_10_works_as_it_is(tmp_path: Path) -> None:
    home = golden(tmp_path, "chibi-0.10")
    assert home.prepare() == ()
    assert (home.current, home.previous, home.names()) == ("desk", "old-one", ["desk", "old-one"])
    context = home.open("desk")
    assert context.refresh() == ()
    assert texts(context.visible()) == ["go on", "", '{"path":"a"}', "text of a", "done"]
    assert [e.entry_type for e in context.visible()][1] == "control_transfer"
    assert context.visible()[2].flow_control is True and context.visible()[2].tool_call_id == "call_1"
    assert context.summary() == "Earlier: greetings."
    assert len(context.logged()) == 8


def test_a_home_of_version_1_loads(tmp_path: Path) -> None:
    home = golden(tmp_path, "cru-1")
    assert home.prepare() == ()
    assert (home.current, home.previous) == ("desk", "default")
    context = home.open("desk")
    assert context.refresh() == ()
    assert context.session_id == "3f2b8c1e-5a6d-4e7f-8a9b-0c1d2e3f4a5b"
    assert texts(context.visible()) == ["keep me", "after the anchor"]
    assert context.summary() == "They counted to three."
    assert texts(list(context.everything())) == ["one", "two", "keep me", "They counted to three.", "after the anchor"]
    assert context.visible()[1].metadata == {"source": "user", "model": "m"}


@pytest.mark.parametrize("name", ["chibi-0.4", "chibi-0.10", "cru-1"])
def test_reading_a_home_changes_no_line_of_its_logs(tmp_path: Path, name: str) -> None:
    home = golden(tmp_path, name)
    before = (home.path / "contexts/desk/context.jsonl").read_bytes()
    context = home.open("desk")
    context.refresh()
    list(context.everything())
    context.append(said("x"))
    assert (home.path / "contexts/desk/context.jsonl").read_bytes().startswith(before)
