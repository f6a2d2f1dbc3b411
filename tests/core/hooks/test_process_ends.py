"""How hooks end: at their limit, with the session, with others in their pipes; and that nothing of them is left."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path

import pytest
from tests.core.hooks.running import Hooks, alive
from tests.kit.waiting import ends_soon, wait_until

from cru.core.hooks.model.result import HookRun

LIMIT = 1.0
"""Seconds: a shell has begun to listen by then, on a busy machine too."""


@pytest.fixture(params=["pidfd", "thread"])
def hooks(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """Both ways of waiting for a child."""
    if request.param == "thread":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    return Hooks(tmp_path)


def _pids(hooks: Hooks) -> list[int]:
    return [int(pid) for pid in (hooks.cwd / "pids").read_text().split()]


def _wait_until_gone(hooks: Hooks) -> None:
    wait_until(lambda: not any(alive(pid) for pid in _pids(hooks)), what=f"the end of {_pids(hooks)}")


@pytest.mark.sample(1)
def test_r6_at_the_limit_everything_is_ended(hooks: Hooks) -> None:
    with ends_soon():
        made = hooks.run("echo $$ > pids; sleep 600 & echo $! >> pids; timeout 600 sleep 600", timeout=1)
    assert (made.exit, made.timed_out) == (None, True)
    _wait_until_gone(hooks)


def test_r6_who_ends_by_itself_in_the_grace_is_judged_by_its_own_status(hooks: Hooks) -> None:
    made = hooks.run("trap 'echo late >&2; exit 2' INT; while :; do sleep 0.02; done", timeout=LIMIT)
    assert (made.exit, made.stderr, made.timed_out) == (2, "late\n", False)


def test_the_other_dialects_are_asked_by_sigterm(hooks: Hooks) -> None:
    command = "trap 'echo int' INT; trap 'echo term; exit 0' TERM; while :; do sleep 0.02; done"
    made = hooks.run(command, timeout=LIMIT, dialect="gemini")
    assert (made.exit, made.stdout) == (0, "term\n")


def test_an_exit_status_that_only_repeats_the_signal_is_no_answer(hooks: Hooks) -> None:
    made = hooks.run("trap 'exit 130' INT; while :; do sleep 0.02; done", timeout=LIMIT)
    assert (made.exit, made.timed_out) == (None, True)


@pytest.mark.sample(1)
def test_r17_who_does_not_listen_is_killed_and_its_late_words_are_never_read(hooks: Hooks) -> None:
    command = "echo $$ > pids; trap '' INT TERM; echo early; sleep 600; echo late"
    with ends_soon():
        made = hooks.run(command, timeout=LIMIT)
    assert (made.exit, made.timed_out) == (None, True)
    assert "late" not in made.stdout
    _wait_until_gone(hooks)


def test_t7_a_child_in_the_background_is_left_alone_and_not_waited_for(hooks: Hooks) -> None:
    with ends_soon():
        made = hooks.run("sleep 600 & echo $! > pids; echo said")
    assert (made.exit, made.stdout, made.timed_out) == (0, "said\n", False)
    (pid,) = _pids(hooks)
    assert alive(pid)
    os.kill(pid, 9)


def test_t7_a_child_in_the_background_that_prints_without_end(hooks: Hooks) -> None:
    made = hooks.run("(echo $BASHPID > pids; exec yes) & sleep 0.05; exit 0")
    assert len(_pids(hooks)) == 1
    assert made.exit == 0 or made.error == "printed more than 16 MiB"
    _wait_until_gone(hooks)  # its pipe is closed


def test_t7_a_daemon_lives_on(hooks: Hooks) -> None:
    made = hooks.run("setsid sh -c 'echo $$ > pids; exec sleep 30' </dev/null >/dev/null 2>&1 & sleep 0.1; exit 0")
    assert made.exit == 0
    (pid,) = _pids(hooks)
    assert alive(pid)
    os.kill(pid, 9)


@pytest.mark.parametrize("command", ["while :; do :; done", "sleep 600", "trap '' TERM INT; sleep 600 | cat"])
def test_s8_s9_t12_cancelled_it_ends_at_once_with_everything(hooks: Hooks, command: str) -> None:
    async def main() -> None:
        task = asyncio.create_task(hooks.arun(f"echo $$ > pids; {command}"))
        while not (hooks.cwd / "pids").exists() or not (hooks.cwd / "pids").read_text():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ends_soon():
        asyncio.run(main())
    _wait_until_gone(hooks)


def test_a_hundred_megabytes_end_it(hooks: Hooks) -> None:
    made = hooks.run("echo $$ > pids; head -c 100000000 /dev/zero; echo end")
    assert (made.exit, made.error, made.truncated) == (None, "printed more than 16 MiB", True)
    assert len(made.stdout) == 1 << 20
    _wait_until_gone(hooks)


def test_t13_the_same_hook_in_two_sessions_at_once(tmp_path: Path) -> None:
    hooks = Hooks(tmp_path)

    async def main() -> list[HookRun]:
        return list(await asyncio.gather(*(hooks.arun("cat; sleep 0.1; cat", b"x" * n) for n in (10, 100_000))))

    results: list[list[HookRun]] = []
    threads = [threading.Thread(target=lambda: results.append(asyncio.run(main()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[len(made.stdout) for made in runs] for runs in results] == [[10, 100_000]] * 2


_KINDS = ("echo x", "exit 3", "cat", "./none.sh", "exec 0<&-", "kill $$", "sleep 1")


def _held() -> tuple[int, int, int]:
    """Open files, children, threads."""
    return (
        len(os.listdir("/proc/self/fd")),
        len(Path("/proc/thread-self/children").read_text().split()),
        threading.active_count(),
    )


@pytest.mark.slow
def test_two_hundred_runs_leave_nothing(tmp_path: Path) -> None:
    """bench/hooks.py does a thousand."""
    hooks = Hooks(tmp_path)

    async def main() -> tuple[object, object, int]:
        await hooks.arun("echo x", b"x" * 200_000)
        before = _held()
        for n in range(20):
            limits = [0.01 if kind.startswith("sleep") and n == 0 else 20.0 for kind in _KINDS]
            kinds = [kind if n == 0 or not kind.startswith("sleep") else "true" for kind in _KINDS]
            await asyncio.gather(
                *(hooks.arun(kind, b"x" * 100_000, timeout=limit) for kind, limit in zip(kinds, limits, strict=True)),
                _cancelled(hooks), hooks.arun("no", args=("x",), dialect="claude"), hooks.arun("echo a\0b"),
            )  # fmt: skip
        gc.collect()
        return before, _held(), len(asyncio.all_tasks())

    before, after, tasks = asyncio.run(main())
    assert after == before
    assert tasks == 1


async def _cancelled(hooks: Hooks) -> None:
    task = asyncio.create_task(hooks.arun("sleep 30"))
    await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
