"""The copy of a conversation in the database: what goes there, what comes back, and who wins."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.features.fleet.support import batch_of, fetched, items, joined, queue_at

from cru.core.conversations import ContextHeld
from cru.core.conversations.lock import ContextLock
from cru.features.fleet import FleetError
from cru.features.fleet.context_copy import ContextCopy, CopyRefused, Restored
from cru.features.fleet.queue import WorkQueue
from cru.features.fleet.records import QueuedTask, WorkResult, WorkStatus
from cru.features.fleet.run_task import RunEnd, RunSettings, TaskRun
from cru.features.fleet.shared_run import run_shared


def folder_of(tmp_path: Path, home: str, **files: str) -> Path:
    folder = tmp_path / home / "c-x"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).with_suffix(".jsonl" if name == "context" else ".md").write_text(text)
    return folder


def copy_of(queue: WorkQueue, folder: Path) -> ContextCopy:
    return ContextCopy(queue.database, folder)


def files(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


def parts(queue: WorkQueue) -> dict[str, int]:
    with queue.database.transaction() as run:
        return dict(run("SELECT path, COUNT(*) FROM cru_files GROUP BY path"))


def test_what_one_home_did_is_in_the_other(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    here, there = folder_of(tmp_path, "a", context="one\n", todos="do it"), tmp_path / "b" / "c-x"
    (here / "tasks" / "7f").mkdir(parents=True)
    (here / "tasks" / "7f" / "context.jsonl").write_text("below\n")
    for name in ("trace.jsonl", "journal.jsonl.1", "inbox.jsonl", ".lock", "spans/x"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("of this machine")
    copy_of(queue, here).copy(None, 0)
    assert copy_of(queue, there).restore() is Restored.BROUGHT
    assert files(there) == {"context.jsonl": "one\n", "todos.md": "do it", "tasks/7f/context.jsonl": "below\n"}
    assert (there / "context.jsonl").stat().st_mode & 0o077 == 0


def test_no_settings_of_a_context_go_to_another_machine(tmp_path: Path, url: str) -> None:
    """Nor what somebody else has put there."""
    queue = queue_at(url)
    here, there = folder_of(tmp_path, "a", context="one\n"), tmp_path / "b" / "c-x"
    (here / "local.toml").write_text('mode = "trust"\n')
    copy_of(queue, here).copy(None, 0)
    with queue.database.transaction() as run:
        for name in ("local.toml", "LOCAL.toml", "tasks/7f/local.toml", ".lock", "trace.jsonl", "spans/x"):
            run("INSERT INTO cru_files VALUES ('c-x', %(path)s, 0, %(data)s)", path=name, data=b'mode = "trust"')
    there.mkdir(parents=True)
    (there / "local.toml").write_text("own")
    assert copy_of(queue, there).restore() is Restored.BROUGHT
    assert files(there) == {"context.jsonl": "one\n", "local.toml": "own"}
    assert sorted(path.name for path in there.iterdir() if path.name != ".lock") == ["context.jsonl", "local.toml"]


def test_a_log_that_grows_is_copied_by_its_new_lines_and_other_files_whole(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    here = folder_of(tmp_path, "a", context="one\n", todos="first", goals="gone soon")
    copy = copy_of(queue, here)
    for number in range(3):
        copy.copy(None, 0)
        with (here / "context.jsonl").open("a") as log:
            log.write(f"{number}\n")
        (here / "todos.md").write_text(f"todos {number}")
        (here / "goals.md").unlink(missing_ok=True)
    copy.copy(None, 0)
    assert parts(queue) == {"context.jsonl": 4, "todos.md": 1}
    there = tmp_path / "b" / "c-x"
    copy_of(queue, there).restore()
    assert files(there) == {"context.jsonl": "one\n0\n1\n2\n", "todos.md": "todos 2"}


def test_a_log_that_was_replaced_is_copied_anew(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    here = folder_of(tmp_path, "a", context="one\ntwo\n")
    copy = copy_of(queue, here)
    copy.copy(None, 0)
    (here / "new").write_text("an anchor, and much more than there was\n")
    (here / "new").rename(here / "context.jsonl")
    copy.copy(None, 0)
    there = tmp_path / "b" / "c-x"
    copy_of(queue, there).restore()
    assert files(there) == {"context.jsonl": "an anchor, and much more than there was\n"}


def test_many_small_parts_become_one_at_the_end_of_a_run(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    here = folder_of(tmp_path, "a", context="")
    copy = copy_of(queue, here)
    for number in range(70):
        with (here / "context.jsonl").open("a") as log:
            log.write(f"{number}\n")
        copy.copy(None, 0)
    assert parts(queue)["context.jsonl"] == 70
    with (here / "context.jsonl").open("a") as log:
        log.write("end\n")
    copy.copy(None, 0, is_last=True)
    assert parts(queue) == {"context.jsonl": 1}
    copy_of(queue, there := tmp_path / "b" / "c-x").restore()
    assert (there / "context.jsonl").read_text().split() == [*map(str, range(70)), "end"]


def test_what_only_this_home_has_stays_if_it_goes_on_from_the_copy(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    here = folder_of(tmp_path, "a", context="one\n")
    copy_of(queue, here).copy(None, 0)
    with (here / "context.jsonl").open("a") as log:
        log.write("a reply that was not copied any more\n")
    again = copy_of(queue, here)
    assert again.restore() is Restored.KEPT
    again.copy(None, 0)
    assert parts(queue) == {"context.jsonl": 2}
    copy_of(queue, there := tmp_path / "b" / "c-x").restore()
    assert files(there) == files(here)


def test_what_does_not_go_on_from_the_copy_is_put_aside(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    copy_of(queue, folder_of(tmp_path, "a", context="one\ntwo\n")).copy(None, 0)
    there = folder_of(tmp_path, "b", context="one\nother\n")
    assert copy_of(queue, there).restore() is Restored.DIVERGED
    assert sorted(files(there).values()) == ["one\nother\n", "one\ntwo\n"]
    assert (there / "context.jsonl").read_text() == "one\ntwo\n"


class FinishedRun(TaskRun):
    async def run(self, more: Mapping[str, str] | None = None) -> RunEnd:
        return RunEnd(WorkResult(WorkStatus.DONE, notices=("own",)))


@pytest.mark.parametrize(("log", "is_told"), [("one\n", False), ("one\nother\n", True)])
def test_a_result_tells_of_what_its_worker_set_aside(tmp_path: Path, url: str, log: str, is_told: bool) -> None:
    queue = queue_at(url)
    batch_of(queue).add(items("x"), 5, is_shared=True)
    copy_of(queue, folder_of(tmp_path, "a/contexts", context="one\ntwo\n")).copy(None, 0)
    folder_of(tmp_path, "b/contexts", context=log)
    worker = joined(queue)
    task = fetched(queue, worker)
    assert task is not None
    settings = RunSettings(("false",), tmp_path / "b", {})

    async def call(work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    end = asyncio.run(run_shared(task, FinishedRun(settings, task), worker, queue.database, settings, call))
    assert end.result is not None
    *told, own = end.result.notices
    assert own == "own" and [("set aside" in text) for text in told] == [True] * is_told


def test_a_conversation_that_somebody_works_on_is_left_alone(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    copy_of(queue, folder_of(tmp_path, "a", context="one\n")).copy(None, 0)
    there = folder_of(tmp_path, "b", context="")
    with ContextLock(there, "chat", 30), pytest.raises(ContextHeld):
        copy_of(queue, there).restore()
    assert (there / "context.jsonl").read_text() == ""


def test_only_who_has_the_task_copies(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    batch_of(queue).add(items("x"), 5, is_shared=True)
    a, b = joined(queue, "a"), joined(queue, "b")
    task = fetched(queue, a)
    assert isinstance(task, QueuedTask) and task.is_shared
    copy = copy_of(queue, folder_of(tmp_path, "a", context="one\n"))
    copy.copy(task, a)
    with pytest.raises(CopyRefused):
        copy.copy(task, b)
    queue.hand_back(a, task)
    with pytest.raises(CopyRefused):
        copy.copy(task, a)


def test_a_copy_whose_answer_was_lost_can_be_made_again(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    here = folder_of(tmp_path, "a", context="one\n")
    copy = copy_of(queue, here)
    copy.copy(None, 0)
    with (here / "context.jsonl").open("a") as log:
        log.write("two\n")
    before = dict(copy._states)
    copy.copy(None, 0)
    copy._states = before  # as if the connection had gone after the commit
    with (here / "context.jsonl").open("a") as log:
        log.write("three\n")
    copy.copy(None, 0)
    copy_of(queue, there := tmp_path / "b" / "c-x").restore()
    assert (there / "context.jsonl").read_text() == "one\ntwo\nthree\n"


def test_a_copy_leads_out_of_no_folder(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    with queue.database.transaction() as run:
        run("INSERT INTO cru_files VALUES ('c-x', '../../evil', 0, %(data)s)", data=b"x")
    with pytest.raises(FleetError, match="leads out of it"):
        copy_of(queue, tmp_path / "b" / "c-x").restore()
    assert not (tmp_path / "evil").exists()


def test_links_are_neither_followed_nor_written_through(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    here = folder_of(tmp_path, "a", context="one\n")
    (tmp_path / "secret").write_text("s")
    os.symlink(tmp_path / "secret", here / "todos.md")
    copy_of(queue, here).copy(None, 0)
    assert parts(queue) == {"context.jsonl": 1}


def test_a_name_that_is_no_text_is_left_where_it_is(tmp_path: Path, url: str) -> None:
    queue = queue_at(url)
    here = folder_of(tmp_path, "a", context="one\n")
    (here / os.fsdecode(b"b\xffd")).write_text("x")
    copy_of(queue, here).copy(None, 0)
    assert parts(queue) == {"context.jsonl": 1}


def test_a_shared_task_is_for_workers_of_every_home(tmp_path: Path, url: str) -> None:
    mine, other = queue_at(url), queue_at(url, "elsewhere")
    batch_of(mine).add(items("x"), 5, is_shared=True)
    assert other.has_work() and other.left_tasks().elsewhere == 0
    task = fetched(other, joined(other))
    assert task is not None and task.is_shared


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True)])
def test_a_batch_is_shared_or_it_is_not(tmp_path: Path, url: str, first: bool, second: bool) -> None:
    queue = queue_at(url)
    batch_of(queue).add(items("x"), 5, is_shared=first)
    with pytest.raises(FleetError, match="batch b"):
        batch_of(queue).add(items("x", "y"), 5, is_shared=second)
    assert [row.id for row in batch_of(queue).rows()] == ["x"]


def test_a_batch_of_another_home_is_neither_continued_nor_forgotten(tmp_path: Path, url: str) -> None:
    batch_of(queue_at(url, "elsewhere")).add(items("x"), 5, False)
    queue = queue_at(url)
    with pytest.raises(FleetError, match="one of another home"):
        batch_of(queue).add(items("x"), 5, False)
    assert batch_of(queue).forget() == 0
