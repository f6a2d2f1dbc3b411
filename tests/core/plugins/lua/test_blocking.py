"""What blocks the loop of the real command does not make it immortal, and loses nothing that was logged."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from tests.core.plugins.lua.support import until_gone
from tests.kit import HomeDir, start

PLUGIN = """import asyncio, time
from pathlib import Path
import cru

begun = asyncio.Event()

def line(stream, text):
    Path("{0}/child").write_text(text)
    begun.set()

async def child():
    await cru.shell.spawn("sh", ["-c", "echo $$; sleep 60"], dict(on_line=line))

@cru.on("turn:complete")
async def stuck(ctx, event):
    await begun.wait()
    Path("{0}/in").touch()
    time.sleep(60)

cru.spawn(child)
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("number", "times", "code"), [(signal.SIGTERM, 1, 143), (signal.SIGINT, 1, 130), (signal.SIGINT, 2, 130)]
)
def test_a_call_that_never_returns_ends_with_the_process(tmp_path: Path, number: int, times: int, code: int) -> None:
    home = HomeDir(tmp_path / "home", tmp_path / "project")
    (home.cru / "plugins").mkdir(parents=True)
    home.project.mkdir()
    (home.cru / "plugins" / "stuck.py").write_text(PLUGIN.format(tmp_path))
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
        done = run.wait(30)
    assert done.code == code
    assert "did not come back" in done.err
    until_gone(int((tmp_path / "child").read_text()))
    assert [entry["content"] for entry in home.log() if entry.get("content") == "the answer"] == ["the answer"]
