"""kill -9 of `cru` while a tool's command runs: nothing of the command remains (what a finished one left running: test_left_running.py)."""

from __future__ import annotations

from tests.kit import Call, HomeDir, Reply, kill_at, server, start, wait_until
from tests.kit.processes import is_running

COMMAND = "sh -c 'sleep 60 & echo $! >>pids; setsid sleep 61 & echo $! >>pids; wait' & echo $! >>pids; wait"


def test_a_killed_run_leaves_nothing_of_its_command(home: HomeDir) -> None:
    file = home.project / "pids"

    def pids() -> list[int]:
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    with server([Reply(calls=[Call("bash", {"command": COMMAND})])]) as model:
        home.configure(url=model.url)
        with start("--mode", "trust", "go", home=home) as run:
            assert kill_at(run, lambda: len(pids()) == 3)
            wait_until(lambda: not any(map(is_running, pids())))
