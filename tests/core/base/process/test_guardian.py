"""kill -9: what ran ends all the same."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kit import wait_until
from tests.kit.processes import is_running
from tests.kit.waiting import PATIENCE

from cru.core.base.process import guardian as guardian_module
from cru.core.base.process.child import Child, Program
from cru.core.base.process.descent import UNKNOWN, Root, members
from cru.core.base.process.errors import StartError
from cru.core.base.process.guardian import Guardian, Listener, make_guardian
from cru.core.base.process.marks import VARIABLE, new_mark, number_of, numbered, numbers_of, session_mark, ticks_now
from cru.core.base.process.sweep import Watched, read_table, sweep

OWNER = """
import asyncio, sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from cru.core.base.process.child import Child, Program

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
ENDED = "something ended the process that ends commands if cru is killed"
RUNS_ON = "while :; do sleep 0.05; done"
PARTS = [
    f"trap '' TERM HUP; echo $$ >>pids; {RUNS_ON}",
    "sleep 61 & echo $! >>pids; setsid sleep 62 & echo $! >>pids; wait",
    "(setsid sh -c 'echo $$ >>pids; exec sleep 63' &) ; echo $$ >>pids; exec sleep 64",
    "echo $$ >>pids; env -i sleep 65",
    "env -i setsid sh -c 'setsid sleep 66 & echo $! >>pids'; echo $$ >>pids; exec sleep 67",
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
        wait_until(lambda: len(pids_in(tmp_path)) == 9)
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
    guardian_listeners: list[Listener]
    heard: list[str]


@pytest.fixture
def loop() -> GuardedLoop:
    loop = GuardedLoop()
    loop.heard = []
    loop.guardian_listeners = [loop.heard.append]
    loop.guardian = make_guardian(loop)
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


def test_a_shell_that_was_ended_while_commands_run_is_replaced_at_once_and_told_once(
    loop: GuardedLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    guardian, pauses = loop.guardian, []
    monkeypatch.setattr(guardian_module, "PAUSE", 3600.0)
    monkeypatch.setattr(guardian, "_restarted", -math.inf)
    call_later = loop.call_later

    def hurry(delay: float, callback: Callable[..., object], *args: Any, **more: Any) -> asyncio.TimerHandle:
        if delay == guardian_module.PAUSE:
            pauses.append(delay)
            monkeypatch.setattr(guardian, "_restarted", -math.inf)  # as if the time had passed
            delay = 0.0
        return call_later(delay, callback, *args, **more)

    monkeypatch.setattr(loop, "call_later", hurry)

    async def end_shell() -> int:
        before = guardian.pid
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            while guardian.pid == before:
                await asyncio.sleep(0.01)
        return guardian.pid

    guardian.expect("/1.1")
    second = loop.run_until_complete(end_shell())
    assert pauses == []  # nothing ran unwatched for long
    assert is_running(second)
    assert loop.heard == [f"{ENDED}; another one watches them now"]
    assert [child.mark for child in read_table(table_of(guardian))] == ["/1.1"]
    third = loop.run_until_complete(end_shell())
    assert pauses == [guardian_module.PAUSE]  # not as fast as somebody can end them
    assert is_running(third) and len(loop.heard) == 1
    guardian.remove("/1.1")
    finish(loop)
    assert not is_running(third)


def test_a_shell_that_cannot_be_replaced_is_told_and_tried_again(
    loop: GuardedLoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guardian = loop.guardian
    guardian.expect("/1.1")
    first = guardian.pid
    monkeypatch.setattr(guardian_module, "SHELL", str(tmp_path / "none"))
    monkeypatch.setattr(guardian_module, "PAUSE", 0.05)
    os.kill(first, signal.SIGKILL)

    async def wait_for_shell() -> None:
        async with asyncio.timeout(PATIENCE):
            await asyncio.sleep(0.3)
            assert guardian.pid == first
            monkeypatch.setattr(guardian_module, "SHELL", "/bin/sh")
            while guardian.pid == first:
                await asyncio.sleep(0.01)

    loop.run_until_complete(wait_for_shell())
    failure, success = loop.heard
    assert failure.startswith(
        f"{ENDED}; none can be started in its place, and a kill -9 of cru would leave them running: cannot start "
    )
    assert success == f"{ENDED}; another one watches them now" and is_running(guardian.pid)
    guardian.remove("/1.1")
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


def table_of(guardian: Guardian) -> str:
    return os.pread(guardian._table, 1 << 20, 0).decode()


def test_the_table_stays_short_however_many_commands_there_were(loop: GuardedLoop) -> None:
    guardian = loop.guardian
    guardian.expect("/1.0")
    guardian.add("/1.0", 999_999_999)
    for number in range(1, 500):
        guardian.expect(f"/1.{number}")
        guardian.add(f"/1.{number}", 999_999_999)
        guardian.remove(f"/1.{number}")
    assert os.fstat(guardian._table).st_size == 3 * guardian_module.SLOT
    assert [child.mark for child in read_table(table_of(guardian))] == ["/1.0"]
    guardian.remove("/1.0")
    assert read_table(table_of(guardian)) == []
    finish(loop)


def test_at_no_moment_does_the_table_say_less_than_it_should(
    loop: GuardedLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill between any two writes would leave."""
    guardian, seen, running = loop.guardian, list[set[str]](), list[set[str]]()
    write = os.pwrite

    def watched(descriptor: int, data: bytes, offset: int) -> int:
        seen.append({child.mark for child in read_table(table_of(guardian))})
        written = write(descriptor, data, offset)
        seen.append({child.mark for child in read_table(table_of(guardian))})
        running.extend([set(live)] * 2)
        return written

    monkeypatch.setattr(os, "pwrite", watched)
    live = set[str]()
    for number in range(40):
        guardian.expect(f"/1.{number}")
        live.add(f"/1.{number}")
        guardian.add(f"/1.{number}", 999_999_999)
        if number % 3:
            live.discard(f"/1.{number - 1}")
            guardian.remove(f"/1.{number - 1}")
    assert len(seen) == 212 and all(should <= table for should, table in zip(running, seen, strict=True))
    for mark in live:
        guardian.remove(mark)
    finish(loop)


@pytest.mark.parametrize(
    ("lines", "watched"),
    [
        ("", []),
        ("\0\0\0+/1.2\n", [Watched("/1.2")]),
        ("*/1.7\n", [Watched("/1.7")]),
        ("+/1.2   \n", [Watched("/1.2")]),
        ("=77 1234 /1.2   \n\n   \n+/1.3\n", [Watched("/1.2", 77, 1234), Watched("/1.3")]),
        ("+/1.2\n=77 12", [Watched("/1.2")]),
    ],
)
def test_the_table_is_read_as_far_as_it_was_written(lines: str, watched: list[Watched]) -> None:
    assert read_table(lines) == watched


def test_a_process_that_got_the_number_of_a_command_later_is_left_alone() -> None:
    """The command has ended, and the kill came before that was written down."""
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        started = members(Root(bystander.pid, latest=ticks_now()))
        assert started == [bystander.pid]
        sweep([Watched("/1.2", bystander.pid, ticks_now() - 1000)])
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_the_number_of_a_mark_is_handed_on_and_found_without_environment_session_and_parents(tmp_path: Path) -> None:
    mark = new_mark({})
    source = "env -i setsid sh -c 'sleep 60 & echo $!'"
    with numbered(mark):
        shell = subprocess.Popen(["sh", "-c", source], stdout=subprocess.PIPE, text=True)
    assert shell.stdout is not None
    pid = int(shell.stdout.readline())
    shell.stdout.close()
    shell.wait()
    try:
        assert members(Root(UNKNOWN, mark)) == [pid]
        assert members(Root(UNKNOWN, session_mark({}))) == [] and members(Root(UNKNOWN, new_mark({}))) == []
        assert number_of(pid) in numbers_of(mark) and number_of(os.getpid()) == 0
    finally:
        os.kill(pid, signal.SIGKILL)


def test_threads_that_start_children_leave_this_process_without_a_number() -> None:
    first, second = threading.Event(), threading.Event()

    def begin() -> None:
        with numbered(new_mark({})):
            first.set()
            second.wait(0.2)

    def follow() -> None:
        first.wait()
        with numbered(new_mark({})):
            second.set()
            threads[0].join(0.2)

    threads = [threading.Thread(target=work) for work in (begin, follow)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert number_of(os.getpid()) == 0


@pytest.mark.parametrize("text", ["", "/1.2", "/1.x.3", "/1.2.x", "nonsense", "/1.-2.3"])
def test_what_is_no_mark_has_no_numbers_of_others(text: str) -> None:
    assert number_of(os.getpid()) not in numbers_of(text) and len(numbers_of(text)) in (0, 1 << 20)


def test_marks_of_a_session_include_those_of_its_bound_children_only() -> None:
    session, bound, other = session_mark({}), new_mark({}, is_bound=True), new_mark({})
    assert bound.startswith(f"{session}.") and not other.startswith(f"{session}.")
    assert numbers_of(bound)[0] in numbers_of(session) and numbers_of(other)[0] not in numbers_of(session)
    assert new_mark({VARIABLE: "/7.1.2"}).startswith(f"/7.1.2/{os.getpid()}.")
    assert len(new_mark({VARIABLE: "/7.1.2" * 1000})) < 100
