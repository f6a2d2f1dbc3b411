"""kill -9 of `cru` while a tool's command runs: nothing of the command remains, and what a finished one left running goes on."""

from __future__ import annotations

from tests.kit import Call, HomeDir, Reply, kill_at, server, start, wait_until
from tests.kit.processes import is_running

COMMAND = "sh -c 'sleep 60 & echo $! >>pids; setsid sleep 61 & echo $! >>pids; wait' & echo $! >>pids; wait"


def number_in(home: HomeDir, name: str) -> int:
    """A process id, 0: it is not written yet."""
    file = home.project / name
    return int(file.read_text() or 0) if file.exists() else 0


def test_a_killed_run_leaves_nothing_of_its_command(home: HomeDir) -> None:
    file = home.project / "pids"

    def pids() -> list[int]:
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    with server([Reply(calls=[Call("bash", {"command": COMMAND})])]) as model:
        home.configure(url=model.url)
        with start("--mode", "trust", "go", home=home) as run:
            assert kill_at(run, lambda: len(pids()) == 3)
            wait_until(lambda: not any(map(is_running, pids())))


def test_what_a_finished_command_left_running_goes_on(home: HomeDir) -> None:
    left = [Call("bash", {"command": "setsid sleep 60 >/dev/null 2>&1 & echo $! >left"})]
    running = [Call("bash", {"command": "echo $$ >running; exec sleep 60"})]
    with server([Reply(calls=left), Reply(calls=running)]) as model:
        home.configure(url=model.url)
        with start("--mode", "trust", "go", home=home) as run:
            assert kill_at(run, lambda: number_in(home, "running") > 0)
            wait_until(lambda: not is_running(number_in(home, "running")))
            assert is_running(number_in(home, "left"))
