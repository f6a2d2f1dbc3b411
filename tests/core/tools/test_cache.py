"""Saved outputs go by age, and no file goes that an entry of that time names."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from cru.core.base.values.messages import Entry
from cru.core.tools.output import clean_outputs, clear_outputs

DAY = 86400


def saved(context: Path, name: str, days: float) -> Path:
    path = context / "tool_cache" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return path


def nobody() -> Iterable[Entry]:
    raise AssertionError("nothing is old: the log need not be read")


def test_what_is_a_day_older_than_the_limit_goes(tmp_path: Path) -> None:
    young, old = saved(tmp_path, "young.txt", 7.9), saved(tmp_path, "old.txt", 8.1)
    assert clean_outputs(tmp_path, 7, lambda: []) == 1
    assert young.exists() and not old.exists()
    assert clean_outputs(tmp_path, 7, nobody) == 0


def test_a_file_that_a_recent_entry_names_stays_until_that_is_old_too(tmp_path: Path) -> None:
    file = saved(tmp_path, "bash_1.txt", 20)
    stub = Entry("1", int(time.time()) - 2 * DAY, content=f"all of it is saved in\n{file}\n", entry_type="tool_result")
    assert clean_outputs(tmp_path, 7, lambda: [stub]) == 0 and file.exists()
    assert clean_outputs(tmp_path, 0, lambda: [stub]) == 1 and not file.exists()


def test_what_a_hook_saved_is_named_in_an_entrys_metadata(tmp_path: Path) -> None:
    file = saved(tmp_path, "hook_1.txt", 20)
    entry = Entry("1", int(time.time()), entry_type="message_resolved", metadata={"context": [f"it is in {file}"]})
    assert clean_outputs(tmp_path, 7, lambda: [entry]) == 0 and file.exists()


def test_clear_removes_all_files_and_nothing_else(tmp_path: Path) -> None:
    assert clear_outputs(tmp_path) == 0
    saved(tmp_path, "a.txt", 0)
    saved(tmp_path, "b.txt", 100)
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    (tmp_path / "tool_cache" / "link").symlink_to(outside)
    (tmp_path / "tool_cache" / "folder").mkdir()
    assert clear_outputs(tmp_path) == 2 and outside.read_text() == "mine"
    assert sorted(os.listdir(tmp_path / "tool_cache")) == ["folder", "link"]


@pytest.mark.parametrize("days", [0, 7])
def test_a_folder_that_is_a_link_is_left_alone(tmp_path: Path, days: int) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = saved(elsewhere, "mine.txt", 100)
    context = tmp_path / "context"
    context.mkdir()
    (context / "tool_cache").symlink_to(elsewhere / "tool_cache")
    assert (clear_outputs(context), clean_outputs(context, days, nobody)) == (0, 0) and file.exists()
