"""The pool: how many run at once, in what order, and what becomes of runs that end in other ways than with a result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.features.fleet.support import items
from tests.kit.closing import closed_later

from cru.features.fleet import FleetError, local_batch, pool
from cru.features.fleet.local_batch import LocalBatch
from cru.features.fleet.pool import ItemPool
from cru.features.fleet.records import BatchItem, QueuedTask, TaskRow, WorkResult, WorkStatus
from cru.features.fleet.run_task import RunEnd, RunSettings

DONE = RunEnd(WorkResult(WorkStatus.DONE))
SETTINGS = RunSettings(("false",), Path("/"), {})


class Play:
    """Plays runs. ends: how those of an item end, in their order, then done; most: how many ran at once."""

    def __init__(self, **ends: list[RunEnd]) -> None:
        self.ends = ends
        self.log: list[str] = []
        self.running: list[str] = []
        self.most = 0
        self.pool: ItemPool | None = None

    def started(self, task: QueuedTask) -> None:
        self.log.append(f"{task.id} began")

    def finished(self, row: TaskRow) -> None:
        assert row.result is not None
        self.log.append(f"{row.id} {row.result.status.value}")

    def died(self, task: QueuedTask, why: str) -> None:
        self.log.append(f"{task.id} died")

    def put_off(self, task: QueuedTask) -> None:
        self.log.append(f"{task.id} put off")


class PlayedRun:
    play: Play

    def __init__(self, settings: RunSettings, task: QueuedTask) -> None:
        self._task = task

    def end(self) -> None:
        self.play.ends[self._task.id] = [RunEnd(is_ended=True)]

    async def run(self, more: Mapping[str, str] | None = None) -> RunEnd:
        play, name = self.play, self._task.id
        play.running.append(self._task.item.context)
        assert len(set(play.running)) == len(play.running), "two runs have one context"
        play.most = max(play.most, len(play.running))
        for _ in range(3):
            await asyncio.sleep(0)
        play.running.remove(self._task.item.context)
        return play.ends[name].pop(0) if play.ends.get(name) else DONE


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "TaskRun", PlayedRun)
    monkeypatch.setattr(pool, "HELD_SECONDS", 0.001)


def work(folder: Path, play: Play, lines: list[tuple[int, BatchItem]], size: int = 2) -> LocalBatch:
    batch = closed_later(LocalBatch(folder, "b"))
    batch.hold(lambda: pytest.fail("the batch is held already"))
    batch.add(lines, 2)
    PlayedRun.play = play

    async def run() -> None:
        play.pool = ItemPool(batch, {item.id for _, item in lines}, size, SETTINGS, play)
        await asyncio.wait_for(play.pool.run(), 60)

    asyncio.run(run())
    return batch


@pytest.mark.parametrize("size", [1, 2, 5, 50])
def test_as_many_run_at_once_as_may_and_in_the_order_of_the_file(tmp_path: Path, size: int) -> None:
    names = [f"i{n}" for n in range(10)]
    play = Play()
    batch = work(tmp_path, play, items(*names), size)
    assert play.most == min(size, 10)
    assert [line.split()[0] for line in play.log if line.endswith("began")] == names
    assert all(row.result is not None for row in batch.rows())


def test_items_of_one_context_run_one_after_another_in_the_order_of_the_file(tmp_path: Path) -> None:
    play = Play(a=[RunEnd(why="killed")], b=[RunEnd(is_held=True)])
    work(tmp_path, play, items("a", "b", "c", context="one"), 3)
    assert play.log == [
        *("a began", "a died", "a began", "a done", "b began", "b put off", "b began", "b done", "c began", "c done"),
    ]


@pytest.mark.parametrize(
    ("ends", "log"),
    [
        ([], ["a began", "a done"]),
        ([RunEnd(is_held=True)], ["a began", "a put off", "a began", "a done"]),
        ([RunEnd(why="killed")], ["a began", "a died", "a began", "a done"]),
        ([RunEnd(why="killed")] * 2, ["a began", "a died", "a began", "a died", "a dead"]),
        ([RunEnd(WorkResult(WorkStatus.FAILED))], ["a began", "a failed"]),
        ([RunEnd(is_ended=True)], ["a began"]),
    ],
    ids=["done", "held", "died", "dead", "failed", "ended"],
)
def test_what_becomes_of_an_item_by_how_its_runs_end(tmp_path: Path, ends: list[RunEnd], log: list[str]) -> None:
    play = Play(a=list(ends))
    work(tmp_path, play, items("a"))
    assert play.log == log


@pytest.mark.parametrize("is_ended", [False, True])
def test_after_a_stop_nothing_begins_and_what_runs_finishes_or_is_handed_back(tmp_path: Path, is_ended: bool) -> None:
    class Stopped(Play):
        def started(self, task: QueuedTask) -> None:
            super().started(task)
            assert self.pool is not None
            (self.pool.end if is_ended else self.pool.stop)()

    play = Stopped()
    batch = work(tmp_path, play, items("a", "b"), 1)
    assert play.log == (["a began"] if is_ended else ["a began", "a done"])
    assert [row.result is not None for row in batch.rows()] == [not is_ended, False]


def test_on_a_full_disk_what_runs_is_ended_and_the_next_step_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    class FullLater(Play):
        def started(self, task: QueuedTask) -> None:
            monkeypatch.setattr(local_batch, "append_lines", full)

    for name, play in (("later", FullLater()), ("at once", Play())):  # the second finds the disk full at its first line
        with pytest.raises(FleetError, match=r"b\.jsonl cannot be written: No space left on device") as caught:
            work(tmp_path / name, play, items("a", "b", "c"))
        assert "make room on the disk" in caught.value.hint
