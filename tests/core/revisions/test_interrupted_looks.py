"""A turn that is interrupted loses nothing of what its commands changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.revisions.git_place import Place, append

from cru.core.base.values.cancellation import Scope, begin
from cru.core.revisions import commands


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("is_forced", [True, False], ids=["forced", "by its timer"])
def test_a_turn_that_is_interrupted_loses_no_change_of_a_command_that_had_ended(
    place: Place, monkeypatch: pytest.MonkeyPatch, is_forced: bool
) -> None:
    """The look begins in the scope of the turn, which an interrupt ends before git has been started."""
    monkeypatch.setattr(commands, "PAUSE", 3600.0 if is_forced else 0.0)
    turn = Scope()

    async def run() -> None:
        await place.play(append("kept"))
        turn.end()
        if is_forced:
            place.watcher.begin_look()
        else:
            while place.watcher.is_looking:
                await asyncio.sleep(0.001)

    async def interrupted() -> None:
        await begin(run(), turn)
        await place.watcher.settle()

    with place.running() as runner:
        runner.run(interrupted())
    assert place.looks() == [("call_1", "")]
    place.move(backwards=True)
    assert place.tree() == place.before
