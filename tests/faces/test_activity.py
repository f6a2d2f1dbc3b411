"""The activity line is true: it says what is going on, and nothing that is over."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import MadeTool, World

from cru.core.base.values.interruptions import Delayed
from cru.core.base.values.messages import CallPart
from cru.core.compose import FaceSettings
from cru.core.events.payloads import AgentThinking
from cru.core.events.stream import StateChanged
from cru.faces.cli.terminal.live import LiveRegion
from cru.faces.cli.text_face import TextFace


class Watched(LiveRegion):
    """A live region that keeps what it showed, each time that this changed."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []

    def show(self, activity: str) -> None:
        super().show(activity)
        if self.shown[-1:] != [activity]:
            self.shown.append(activity)


def watched(world: World, **look: Any) -> Watched:
    live = Watched()
    face = TextFace(False, live)
    face.watch(world.session.parts.bus)
    face.dress(FaceSettings(**look), world.session.parts)
    return live


def test_a_turn_waits_then_answers(tmp_path: Path) -> None:
    world = World(tmp_path, "text: hello\n")
    live = watched(world)
    world.run("go")
    assert live.shown == ["", "waiting for the model", "answering", ""]


@pytest.mark.parametrize(
    ("hides", "writing", "running"), [(False, "writing a call of ls", "running ls"), (True, "working", "working")]
)
def test_a_call_is_written_then_runs(tmp_path: Path, hides: bool, writing: str, running: str) -> None:
    world = World(tmp_path, "call: ls {}\n---\ntext: done\n")
    live = watched(world, hide_tool_calls=hides)
    world.run("go")
    waiting = "waiting for the model"
    assert live.shown == ["", waiting, writing, "", running, "", waiting, "answering", ""]


def test_tools_that_run_together_are_named_until_each_has_ended(tmp_path: Path) -> None:
    world = World(tmp_path, "call: fast {}\ncall: slow {}\ncall: torn {}\n---\ntext: done\n")
    ended = [asyncio.Event(), asyncio.Event()]

    async def slow(_args: dict[str, Any]) -> str:
        await ended[0].wait()
        ended[1].set()
        return "ok"

    async def torn(_args: dict[str, Any]) -> str:
        await ended[1].wait()
        raise ValueError("torn")

    def fast(_args: dict[str, Any]) -> str:
        ended[0].set()
        return "ok"

    world.tools(
        MadeTool("fast", fast, parallel=True),
        MadeTool("slow", slow, parallel=True),
        MadeTool("torn", torn, parallel=True),
    )
    live = watched(world)
    world.run("go")
    running = [text for text in live.shown if text.startswith("running")]
    assert "running fast, slow" in running or "running slow" in running
    assert running[-1] == "running torn" and live.shown[-1] == ""


TEXTS = [
    (Delayed(1_700_000_000.0, True), "rate limited, next try at 22:13:20"),
    (Delayed(1_700_000_000.0), "no reply, next try at 22:13:20"),
    (Delayed(), "waiting for the model"),
    (CallPart(0, "1", "write"), "writing a call of write"),
    (CallPart(0, "1", "x\x1b[2J"), "writing a call of x\\x1b[2J"),
    (AgentThinking("hm", 1), "thinking"),
    (StateChanged("calling", "responding"), ""),
]


@pytest.mark.parametrize(("item", "shown"), TEXTS)
def test_what_the_request_does_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, item: Any, shown: str) -> None:
    monkeypatch.setattr(time, "localtime", time.gmtime)
    world = World(tmp_path, "text: hello\n")
    live = watched(world)
    world.session.parts.bus.stream.tell(StateChanged("preparing", "calling"))
    world.session.parts.bus.stream.tell(item)
    assert live.shown[-1] == shown
