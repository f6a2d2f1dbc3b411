"""kill -9: what ran ends all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit import wait_until
from tests.kit.processes import is_running

from cru.process import guardian as guardian_module
from cru.process.child import Child, Program
from cru.process.errors import StartError
from cru.process.guardian import Guardian
from cru.process.sweep import read_table

OWNER = """
import asyncio, sys
from pathlib import Path
from cru.process.child import Child, Program

class Loop(asyncio.SelectorEventLoop):
    guardian = None

async def main():
    env = {"PATH": "/usr/bin:/bin"}
    for source in sys.argv[1:]:
        Child(Program(("/bin/sh", "-c", source), Path.cwd(), env, is_marked=True), 2)
    print(asyncio.get_running_loop().guardian.pid, flush=True)
    await asyncio.sleep(60)

Loop().run_until_complete(main())
"""
RUNS_ON = "while :; do sleep 0.05; done"
PARTS = [
    f"trap '' TERM HUP; echo $$ >>pids; {RUNS_ON}",
    "sleep 61 & echo $! >>pids; setsid sleep 62 & echo $! >>pids; wait",
    "(setsid sh -c 'echo $$ >>pids; exec sleep 63' &) ; echo $$ >>pids; exec sleep 64",
    "echo $$ >>pids; env -i sleep 65",
    "echo $$ >>pids; kill -STOP $$",
]


def pids_in(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def test_a_killed_process_leaves_nothing_of_its_commands(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    owner = subprocess.Popen([sys.executable, "-c", OWNER, *PARTS], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        shell = int(owner.stdout.readline())
        wait_until(lambda: len(pids_in(tmp_path)) == 7)
        assert all(map(is_running, [shell, *pids_in(tmp_path)]))
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        owner.stdout.close()
        wait_until(lambda: not any(map(is_running, [shell, *pids_in(tmp_path)])))
        assert bystander.poll() is None
    finally:
        owner.kill()
        bystander.kill()
        bystander.wait()


class GuardedLoop(asyncio.SelectorEventLoop):
    guardian: Guardian


@pytest.fixture
def loop() -> GuardedLoop:
    loop = GuardedLoop()
    loop.guardian = Guardian()
    return loop


def finish(loop: GuardedLoop) -> None:
    loop.guardian.close()
    loop.close()


def test_one_shell_watches_all_commands_and_ends_with_the_session(loop: GuardedLoop, tmp_path: Path) -> None:
    async def run(source: str) -> int:
        child = Child(Program(("/bin/sh", "-c", source), tmp_path, {}, is_marked=True), 2)
        pid = loop.guardian.pid
        await child.wait()
        child.close()
        return pid

    shells = {loop.run_until_complete(run("exit 0")) for _ in range(3)}
    (shell,) = shells
    assert is_running(shell)
    finish(loop)
    assert not is_running(shell)


def test_without_a_marked_command_there_is_no_shell(loop: GuardedLoop, tmp_path: Path) -> None:
    async def run() -> None:
        child = Child(Program(("/bin/true",), tmp_path, {}), 2)
        await child.wait()
        child.close()

    loop.run_until_complete(run())
    assert loop.guardian.pid == 0
    finish(loop)


def test_a_shell_that_was_ended_is_started_anew(loop: GuardedLoop) -> None:
    loop.guardian.expect("/1.1")
    first = loop.guardian.pid
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not is_running(first))
    loop.guardian.expect("/1.2")
    assert loop.guardian.pid != first and is_running(loop.guardian.pid)
    loop.guardian.remove("/1.1")
    loop.guardian.remove("/1.2")
    finish(loop)


def test_a_command_that_nobody_could_watch_does_not_start(
    loop: GuardedLoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guardian_module, "SHELL", str(tmp_path / "none"))

    async def run() -> None:
        Child(Program(("/bin/sh", "-c", "touch ran"), tmp_path, {}, is_marked=True), 2)

    with pytest.raises(StartError, match="cannot start"):
        loop.run_until_complete(run())
    assert not (tmp_path / "ran").exists()
    finish(loop)


def test_a_program_that_does_not_start_is_not_watched(loop: GuardedLoop, tmp_path: Path) -> None:
    async def run() -> None:
        Child(Program(("/no/such",), tmp_path, {}, is_marked=True), 2)

    with pytest.raises(StartError):
        loop.run_until_complete(run())
    shell = loop.guardian.pid
    finish(loop)
    assert shell > 0 and not is_running(shell)


def test_the_table_stays_short_however_many_commands_there_were(
    loop: GuardedLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guardian_module, "LARGEST", 1000)
    guardian = loop.guardian
    guardian.expect("/1.0")
    guardian.add("/1.0", 999_999_999)
    for number in range(1, 500):
        guardian.expect(f"/1.{number}")
        guardian.add(f"/1.{number}", 999_999_999)
        guardian.remove(f"/1.{number}")
        assert guardian._size < 1100
    guardian.remove("/1.0")
    assert guardian._size == 0
    finish(loop)


@pytest.mark.parametrize(
    ("text", "children"),
    [
        ("", {}),
        ("+/1.2\n", {"/1.2": 0}),
        ("+/1.2\n=77 /1.2\n", {"/1.2": 77}),
        ("+/1.2\n=77 /1.2\n-/1.2\n+/1.3\n", {"/1.3": 0}),
        ("+/1.2\n=77 /1.", {"/1.2": 0}),
    ],
)
def test_the_table_is_read_as_far_as_it_was_written(text: str, children: dict[str, int]) -> None:
    assert read_table(text) == children
