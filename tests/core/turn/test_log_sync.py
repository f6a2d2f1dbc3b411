"""The log forced to the disk beside what runs."""

from __future__ import annotations

import asyncio
import threading

import pytest

from cru.core.turn.log_sync import LogSync


def test_it_begins_when_the_task_waits_and_is_waited_for() -> None:
    begun, go = [], threading.Event()

    def sync() -> None:
        begun.append(threading.current_thread())
        go.wait(10)

    async def run() -> None:
        log = LogSync(sync)
        for count in (1, 2, 3):
            go.clear()
            log.begin_soon()
            assert len(begun) == count - 1
            asyncio.get_running_loop().call_later(0.01, go.set)
            await log.wait()
            assert len(begun) == count
        await log.finish()

    asyncio.run(run())
    assert len(set(begun)) == 1 and begun[0] is not threading.main_thread()
    assert not begun[0].is_alive()


def test_what_was_to_begin_begins_at_once_if_it_is_waited_for() -> None:
    synced = []

    async def run() -> None:
        log = LogSync(lambda: synced.append(1))
        log.begin_soon()
        await log.wait()
        await log.finish()

    asyncio.run(run())
    assert synced == [1]


def test_what_it_raises_is_raised_in_who_waits() -> None:
    async def run() -> None:
        log = LogSync(lambda: 1 / 0)
        log.begin_soon()
        try:
            with pytest.raises(ZeroDivisionError):
                await log.wait()
            await log.wait()
        finally:
            await log.finish()

    asyncio.run(run())


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()], ids=repr)
def test_where_no_thread_can_start_it_is_done_all_the_same(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise error

    def sync() -> None:
        synced.append(threading.current_thread())
        if len(synced) == 2:
            raise OSError("no room")

    async def run() -> None:
        log = LogSync(sync)
        log.begin_soon()
        await log.wait()
        log.begin_soon()
        with pytest.raises(OSError, match="no room"):
            await log.finish()

    synced: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "start", refuse)
    asyncio.run(asyncio.wait_for(run(), 60))
    assert synced == [threading.main_thread()] * 2
