"""What blocks the loop of the real command does not make it immortal, and loses nothing that was logged."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.kit import HomeDir, start

PLUGIN = 'cru.on("turn:complete", function() io.open("%s/in", "w"):close() io.open("%s/pipe") end)'


@pytest.mark.parametrize(("number", "times", "code"), [(signal.SIGTERM, 1, 143), (signal.SIGINT, 2, 130)])
def test_a_call_that_never_returns_ends_with_the_process(tmp_path: Path, number: int, times: int, code: int) -> None:
    home = HomeDir(tmp_path / "home", tmp_path / "project")
    (home.cru / "plugins").mkdir(parents=True)
    home.project.mkdir()
    os.mkfifo(tmp_path / "pipe")
    (home.cru / "plugins" / "stuck.lua").write_text(PLUGIN % (tmp_path, tmp_path))
    (tmp_path / "model.txt").write_text("text: the answer\n")
    home.configure(f'model = "scripted:{tmp_path}/model.txt"\n')
    with start("hello", home=home) as run:
        run.wait_for("the answer")
        while not (tmp_path / "in").exists():
            assert run.alive
            time.sleep(0.01)
        for _ in range(times):
            run.signal(number)
            time.sleep(0.2)
        done = run.wait(15)
    assert done.code == code
    assert "did not come back" in done.err
    assert [entry["content"] for entry in home.log() if entry.get("content") == "the answer"] == ["the answer"]
