"""What becomes of calls that had no result when a run was killed (docs/decisions/fleet.md)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import World

from cru.core.events.payloads import ToolCalled
from cru.core.events.stream import Notice
from cru.core.turn import interrupted_calls

MAY_HAVE_RUN = "interrupted, may have run"
SCRIPT = 'text: I look\ncall: ls {}\ncall: write {"file_path": "a.txt", "content": "A"}\n---\ntext: the end\n'


def killed(path: Path, script: str = SCRIPT, results: int = 0, **settings: Any) -> World:
    """A session on the log of a run that was killed when so many of its calls had a result."""
    whole = path / "whole"
    whole.mkdir()
    first = World(whole, script, settings={"mode": "trust"})
    first.run("do it")
    lines = (first.built.store.folder / "context.jsonl").read_bytes().splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if b'"tool_result"' in line][results]
    (path / "cut").mkdir()
    world = World(path / "cut", "by: order\nloop: yes\ntext: the end\n", settings={"mode": "trust", **settings})
    (world.built.store.folder / "context.jsonl").write_bytes(b"".join(lines[:at]))
    shutil.rmtree(whole)
    return world


def results(world: World) -> dict[str, str]:
    return {entry.from_: entry.content for entry in world.log("tool_result")}


def test_a_tool_that_only_reads_runs_again_and_of_others_the_model_is_told(tmp_path: Path) -> None:
    world = killed(tmp_path)
    assert world.resume().cause == "done"
    assert results(world)["write"] == MAY_HAVE_RUN and results(world)["ls"] != MAY_HAVE_RUN
    assert [called.name for called in world.of(ToolCalled)] == ["ls"]
    assert not (world.path / "project" / "a.txt").exists()
    assert len(world.sent) == 1  # the reply that asked for the calls is not asked for again


def test_a_call_that_has_its_result_does_not_run_again(tmp_path: Path) -> None:
    world = killed(tmp_path, results=1)
    world.resume()
    assert world.of(ToolCalled) == [] and results(world)["write"] == MAY_HAVE_RUN


def test_retry_runs_all_of_them_again_and_says_so(tmp_path: Path) -> None:
    world = killed(tmp_path, on_interrupted="retry")
    assert world.resume().cause == "done"
    assert (world.path / "project" / "a.txt").read_text() == "A"
    assert [(n.level, n.text.partition(":")[0]) for n in world.of(Notice) if "runs again" in n.text] == [
        ("info", "ls runs again"), ("warning", "write runs again"),
    ]  # fmt: skip


def test_what_runs_again_takes_the_road_of_every_call(tmp_path: Path) -> None:
    world = killed(tmp_path, on_interrupted="retry", mode="plan")
    world.resume()
    assert not (world.path / "project" / "a.txt").exists()
    assert "plan" in results(world)["write"]


def test_fail_ends_the_run_and_names_the_call_and_a_person_may_go_on(tmp_path: Path) -> None:
    world = killed(tmp_path, on_interrupted="fail")
    result = world.resume()
    assert result.cause == "error" and "while it called write, which may have done its work" in result.error
    assert "cru -C main --resume" in result.hint
    assert world.sent == []
    assert world.resume().cause == "done" and results(world)["write"] == MAY_HAVE_RUN


def test_fail_lets_calls_that_only_read_run_again(tmp_path: Path) -> None:
    world = killed(tmp_path, "call: ls {}\n---\ntext: the end\n", on_interrupted="fail")
    assert world.resume().cause == "done"


def test_a_call_that_ends_the_turn_ends_it_after_a_kill_too(tmp_path: Path) -> None:
    world = killed(tmp_path, 'call: call_user {"message": "over to you"}\n', on_interrupted="retry")
    assert world.resume().response == "over to you"
    assert world.sent == []


@pytest.mark.parametrize("kind", ["read", "write", "shell", "fetch", "memory", "message", "flow", "tool"])
def test_only_what_reads_files_is_taken_to_change_nothing(kind: str) -> None:
    assert (kind in interrupted_calls.READ_ONLY) is (kind == "read")
