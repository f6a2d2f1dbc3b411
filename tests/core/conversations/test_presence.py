"""A seat: who has a context open keeps it from being removed, not from being worked on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.core.conversations.support import Home, again, fresh, start
from tests.kit.waiting import PATIENCE

from cru.core.conversations import ContextHeld

_SIT = """
import sys
from pathlib import Path
from cru.core.conversations.store import FileContext
context = FileContext(Path(sys.argv[1]))
context.attend("cru chat in desk")
print("sits", flush=True)
sys.stdin.read()
context.close()
"""


def test_a_context_that_is_open_somewhere_is_not_deleted_and_can_be_worked_on(tmp_path: Path) -> None:
    context, home = fresh(tmp_path), Home(tmp_path / "home")
    with start(_SIT, context.folder) as child:
        assert child.stdout and child.stdout.readline() == "sits\n"
        with pytest.raises(ContextHeld) as caught:
            home.delete("desk")
        assert (
            f"open in process {child.pid} on " in caught.value.message and "(cru chat in desk)" in caught.value.message
        )
        assert caught.value.code == 4 and f"kill {child.pid}" in caught.value.hint
        with context.lock("mine"):
            assert home.status("desk") == "active"
        child.communicate("", timeout=PATIENCE)
    assert not (context.folder / ".seat").exists()
    assert home.delete("desk")


def test_the_seat_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    with start(_SIT, context.folder) as child:
        assert child.stdout and child.stdout.readline() == "sits\n"
        child.send_signal(signal.SIGKILL)
        child.wait(30)
    assert (context.folder / ".seat").exists()
    assert Home(tmp_path / "home").delete("desk")


def test_of_several_the_last_to_leave_frees_it(tmp_path: Path) -> None:
    context, home = fresh(tmp_path), Home(tmp_path / "home")
    others = [again(context), again(context)]
    for other in others:
        other.attend("cru")
    others[1].close()
    with pytest.raises(ContextHeld, match=f"process {os.getpid()} "):
        home.delete("desk")
    others[0].close()
    assert not (context.folder / ".seat").exists() and home.delete("desk")


def test_a_renamed_context_stays_attended(tmp_path: Path) -> None:
    context, home = fresh(tmp_path), Home(tmp_path / "home")
    context.attend("cru")
    home.rename("desk", "table")
    with pytest.raises(ContextHeld, match="'table' is open"):
        home.delete("table")
    context.close()
    assert home.delete("table")


def test_a_seat_that_cannot_be_taken_is_a_problem_and_no_error(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    (tmp_path / "outside").write_text("mine")
    (context.folder / ".seat").symlink_to(tmp_path / "outside")
    context.attend("cru")
    assert [problem.file for problem in context.refresh()] == [".seat"]
    assert (tmp_path / "outside").read_text() == "mine"
    context.close()


def test_a_process_that_has_left_is_not_named_to_be_ended(tmp_path: Path) -> None:
    context, home = fresh(tmp_path), Home(tmp_path / "home")
    stays = again(context)
    stays.attend("cru chat in desk")
    with start(_SIT, context.folder) as child:
        assert child.stdout and child.stdout.readline() == "sits\n"
        child.communicate("", timeout=PATIENCE)
    with pytest.raises(ContextHeld) as caught:
        home.delete("desk")
    assert str(child.pid) not in str(caught.value) and "open in another process" in caught.value.message
    stays.close()
    assert home.delete("desk")
