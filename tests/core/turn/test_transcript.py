"""transcript.md for people: with the setting `transcript` each finished turn is appended; no entry is written twice in any case."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.turn.support import Ext, MadeTool, World, always

from cru.core.base.values.messages import Entry
from cru.core.events.answers import handled
from cru.core.turn import log_writer
from cru.core.turn.turn import Prompt

ANSWERS = "by: order\n" + "".join(f"text: answer {number}\n---\n" for number in range(9))
SUMMARISED = Ext({"context:overflow": always(handled("the summary"))})
ON, OFF = {"transcript": True}, {"transcript": False}


class Desk:
    """A conversation that one process after the other works on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_on, self.answers = True, 0

    def world(self) -> World:
        script = "by: order\n" + "".join(f"text: answer {number}\n---\n" for number in range(self.answers, 9))
        return World(self.path, script, SUMMARISED, settings=ON if self.is_on else OFF)

    def ask(self, *prompts: str) -> None:
        """Each in a process of its own."""
        for prompt in prompts:
            session = self.world().session
            session.submit(prompt)
            asyncio.run(session.run())
            self.answers += not prompt.startswith("/")

    def ask_together(self, *prompts: str) -> None:
        self.world().run(*prompts)
        self.answers += len(prompts)

    def switch(self) -> None:
        self.is_on = not self.is_on

    def archive(self) -> None:
        asyncio.run(self.world().session.archive())

    def compact(self) -> None:
        asyncio.run(self.world().session.compact())

    def be_killed(self, prompt: str) -> None:
        """A run is killed after its prompt was logged."""
        parts = self.world().session.parts
        with parts.store.lock("killed"):
            logged = log_writer.prompt(parts, Prompt(prompt))
            log_writer.resolved(parts, logged.id, prompt, prompt, (), "")

    def resume(self) -> None:
        self.world().resume()
        self.answers += 1

    @property
    def file(self) -> Path:
        return self.path / "home/contexts/main/transcript.md"

    def text(self) -> str:
        return self.file.read_text() if self.file.exists() else ""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def turn(prompt: str, number: int) -> str:
    return f"[USER]: {prompt}\n\n[ASSISTANT]: answer {number}\n\n"


A, B, C = turn("a", 0), turn("b", 1), turn("c", 2)
Steps = Callable[[Desk], object]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([lambda d: d.ask("a")], A, id="a turn"),
        pytest.param([lambda d: d.ask("a", "b", "c")], A + B + C, id="runs after each other"),
        pytest.param([lambda d: d.ask_together("a", "b")], A + B, id="prompts of one run"),
        pytest.param([lambda d: d.ask("a", "b"), Desk.archive], A + B, id="an archive writes nothing again"),
        pytest.param([lambda d: d.ask("a"), Desk.archive, lambda d: d.ask("b")], A + B, id="a turn behind an archive"),
        pytest.param([lambda d: d.ask("a", "b"), Desk.compact], A + B, id="nor does a compaction"),
        pytest.param([lambda d: d.ask("a", "b"), Desk.compact, lambda d: d.ask("c"), Desk.archive], A + B + C, id="both"),
        pytest.param(
            [lambda d: d.ask("a"), lambda d: d.be_killed("b"), Desk.resume, Desk.archive], A + B, id="killed and resumed"
        ),
        pytest.param(
            [lambda d: d.be_killed("x"), lambda d: d.ask("a")], "[USER]: x\n\n" + A, id="killed and never resumed"
        ),
        pytest.param([lambda d: d.be_killed("x"), Desk.archive], "[USER]: x\n\n", id="killed and archived"),
        pytest.param([lambda d: d.ask("a", "b", "/undo")], A + B, id="what was undone stays"),
        pytest.param([lambda d: d.ask("a", "b", "/undo", "c")], A + B + C, id="a turn behind an undo"),
        pytest.param([lambda d: d.ask("a", "b", "/undo", "/redo", "c")], A + B + C, id="undone and back"),
        pytest.param(
            [lambda d: d.ask("a", "b", "/undo", "/redo"), Desk.archive, lambda d: d.ask("c")], A + B + C,
            id="undone, back, archived",
        ),
        pytest.param([Desk.switch, lambda d: d.ask("a")], "", id="off"),
        pytest.param([Desk.switch, lambda d: d.ask("a", "b"), Desk.archive], A + B, id="off and archived"),
        pytest.param([Desk.switch, lambda d: d.ask("a"), Desk.switch, lambda d: d.ask("b")], A + B, id="on later"),
        pytest.param(
            [lambda d: d.ask("a"), Desk.switch, lambda d: d.ask("b"), Desk.archive], A + B, id="off later, and archived"
        ),
        pytest.param([lambda d: d.ask("a"), Desk.switch, lambda d: d.ask("b"), Desk.switch, lambda d: d.ask("c")],
                     A + B + C, id="off between"),
    ],
)  # fmt: skip
def test_every_entry_is_written_once_and_in_order(desk: Desk, steps: list[Steps], expected: str) -> None:
    for step in steps:
        step(desk)
    assert desk.text() == expected


def test_calls_of_tools_are_one_short_line_each(tmp_path: Path) -> None:
    long = "x" * 500
    script = f'by: order\ncall: echo {{"text": "{long}"}}\n---\ntext: done\n'
    world = World(tmp_path, script, settings=ON).tools(MadeTool("echo", lambda args: args["text"]))
    world.run("go")
    user, call, answer, end = (tmp_path / "home/contexts/main/transcript.md").read_text().split("\n\n")
    assert (user, answer, end) == ("[USER]: go", "[ASSISTANT]: done", "")
    assert call.startswith('[TOOL CALL: echo] {"text": "xxx') and call.endswith("xxx...") and len(call) < 200


def test_a_compaction_in_the_middle_of_a_turn_keeps_the_order(tmp_path: Path) -> None:
    """What the compaction drops was not written yet, and what it keeps is written once, too."""
    world = World(tmp_path, ANSWERS, SUMMARISED, settings={**ON, "context_window_limit": 0})
    world.run("a", "b")
    parts = world.session.parts
    dropped_only = [entry for entry in parts.store.visible() if entry.entry_type == "message"][1:2]
    (tmp_path / "home/contexts/main/transcript.md").unlink()
    (tmp_path / "home/contexts/main/.transcript.json").unlink()
    from cru.core.turn.compaction.run import _anchor

    with parts.store.lock("test"):
        _anchor(parts, dropped_only, "the summary")
    world.run("c")
    assert (tmp_path / "home/contexts/main/transcript.md").read_text() == A + B + C


def test_what_a_kill_left_unwritten_is_written_by_the_next_turn(desk: Desk) -> None:
    """The record is written first: the file is still as long as it says."""
    desk.ask("a")
    size = desk.file.stat().st_size
    desk.ask("b")
    os.truncate(desk.file, size)
    desk.ask("c")
    assert desk.text() == A + B + C


def test_a_file_that_was_moved_away_begins_anew(desk: Desk) -> None:
    desk.ask("a", "b")
    desk.file.rename(desk.path / "kept.md")
    desk.ask("c")
    assert desk.text() == C


def test_a_transcript_that_cannot_be_written_is_reported_and_written_later(desk: Desk) -> None:
    world = desk.world()
    desk.file.mkdir()
    result = world.run("a")
    assert result.cause == "done" and any("transcript.md" in notice for notice in world.notices())
    desk.file.rmdir()
    desk.answers = 1
    desk.ask("b")
    assert desk.text() == A + B


def test_a_turn_that_could_not_be_written_is_not_lost_if_the_file_comes_back_longer(desk: Desk) -> None:
    desk.ask("a")
    kept = desk.file.rename(desk.path / "kept.md")
    world = desk.world()
    desk.file.mkdir()
    assert world.run("b").cause == "done"
    desk.file.rmdir()
    kept.rename(desk.file)
    desk.answers = 2
    desk.ask("c")
    assert desk.text() == A + B + C


def test_a_record_that_is_broken_counts_as_none(desk: Desk) -> None:
    desk.ask("a")
    (desk.file.parent / ".transcript.json").write_text("{")
    desk.ask("b")
    assert desk.text() == A + A + B


def test_without_the_setting_nothing_is_recorded(desk: Desk) -> None:
    desk.switch()
    desk.ask("a")
    desk.archive()
    assert desk.text() == A and not (desk.file.parent / ".transcript.json").exists()


def test_the_record_keeps_only_what_may_be_offered_again(desk: Desk) -> None:
    desk.ask("a", "b")
    desk.archive()
    desk.ask("c")
    desk.ask("/undo")
    visible: list[Entry] = desk.world().session.parts.store.visible()
    assert visible == []
    assert (desk.file.parent / ".transcript.json").stat().st_size < 200
