"""What becomes of hooks that still run beside a session when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.hooks.claude_world import about, entry
from tests.kit.waiting import ends_soon

from cru.core.base.values.cancellation import Scope, begin, check
from cru.core.conversations.line_file import LineFile
from cru.core.events.bus import Bus
from cru.core.events.payloads import TurnComplete
from cru.core.events.stamp import Origin
from cru.core.events.stream import Notice
from cru.core.hooks import session as session_module
from cru.core.hooks.dialects.claude.dialect import DIALECT as CLAUDE
from cru.core.hooks.model.status import Activation, EntryStatus, LoadedHooks
from cru.core.hooks.session import SessionHooks

ASYNC: dict[str, Any] = {"async": True}


class End:
    """A session with an asynchronous hook, and what was reported at its end."""

    def __init__(self, path: Path, *, is_chat: bool) -> None:
        facts = about(path)
        facts.folder.mkdir()
        facts.is_chat = lambda: is_chat
        status = EntryStatus(entry("Notification", **ASYNC), Activation.ACTIVE)
        self.hooks = SessionHooks(
            LoadedHooks([status]), {"claude": CLAUDE}, facts, LineFile(facts.folder / "hooks.jsonl")
        )
        self.bus, self.told = Bus(Origin("", "")), list[str]()
        self.bus.stream.subscribe(lambda item: self.told.append(item.payload.text), Notice)
        self.hooks.register(self.bus)
        self.finished = False

    async def run(self, cause: str, until: Callable[[], Awaitable[None]]) -> None:
        async def work() -> None:
            await until()
            self.finished = True

        self.hooks.detach(work())
        await self.bus.dispatch(TurnComplete(cause, "", "r"))
        with ends_soon():
            await self.hooks.close()


async def soon() -> None:
    for _ in range(9):
        await asyncio.sleep(0)


async def never() -> None:
    await asyncio.Event().wait()


# whether a person sits at a chat, how the last turn ended → whether a hook gets to its end
ENDS = [(False, "done", True), (False, "error", True), (False, "interrupted", False), (True, "done", False)]


@pytest.mark.parametrize(("is_chat", "cause", "finishes"), ENDS)
def test_a_one_shot_run_waits_for_its_hooks(tmp_path: Path, is_chat: bool, cause: str, finishes: bool) -> None:
    end = End(tmp_path, is_chat=is_chat)
    asyncio.run(end.run(cause, soon))
    assert end.finished is finishes and end.told == []


@pytest.mark.parametrize(("is_chat", "cause"), [(False, "interrupted"), (True, "done")])
def test_where_nobody_waits_a_hook_is_ended_at_once(tmp_path: Path, is_chat: bool, cause: str) -> None:
    end = End(tmp_path, is_chat=is_chat)
    asyncio.run(end.run(cause, never))
    assert not end.finished and end.told == []


def test_the_wait_is_bounded_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "GRACE", 0.01)
    end = End(tmp_path, is_chat=False)
    asyncio.run(end.run("done", never))
    assert not end.finished
    assert end.told == ["1 asynchronous hook did not finish within 0.01 s after the run and had to end"]


def test_a_person_need_not_wait_for_them(tmp_path: Path) -> None:
    end = End(tmp_path, is_chat=False)

    async def interrupt() -> None:
        closing = asyncio.create_task(end.run("done", never))
        await soon()
        assert not closing.done()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

    asyncio.run(interrupt())
    assert not end.finished and end.told == [] and not end.hooks._tasks


def test_an_interrupt_of_the_turn_does_not_keep_a_hook_of_a_chat_from_starting(tmp_path: Path) -> None:
    end, turn = End(tmp_path, is_chat=True), Scope()

    async def start() -> None:
        check()  # as what starts a process does
        end.finished = True

    async def event() -> None:
        end.hooks.detach(start())
        turn.end()

    async def run() -> None:
        await begin(event(), turn)
        await soon()
        await end.hooks.close()

    asyncio.run(run())
    assert end.finished
