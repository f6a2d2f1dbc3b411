from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path

import pytest
from tests.core.tools.box import Box, alive, in_child
from tests.kit.waiting import ends_soon, wait_until

from cru.core.base.process.errors import StartError
from cru.core.base.process.run import Ending, run_program
from cru.core.tools import shell
from cru.core.tools.protocol import ArgumentError, ToolResult, ToolSettings, ToolTimeout


@pytest.fixture(params=["pidfd", "thread"])
def box(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    """Both ways of waiting for a child."""
    if request.param == "thread":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    return Box(tmp_path)


def _pids(box: Box, name: str = "pids") -> list[int]:
    file = box.root / name
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def test_output_and_errors_come_together_in_order(box: Box) -> None:
    assert box.text("bash", command="echo one; echo two >&2; echo three") == "one\ntwo\nthree"


def test_it_runs_in_the_project_root(box: Box) -> None:
    assert box.text("bash", command="pwd -P") == str(box.root.resolve())


def test_an_exit_code_makes_it_an_error_that_keeps_the_output(box: Box) -> None:
    assert box.call("bash", command="echo half; exit 3") == ToolResult("half\n[exit code 3]", is_error=True)


def test_the_signal_that_ended_it_is_named(box: Box) -> None:
    assert box.call("bash", command="kill -9 $$") == ToolResult("(no output)\n[ended by signal 9]", is_error=True)


def test_no_output_is_said(box: Box) -> None:
    assert box.text("bash", command="true") == "(no output)"


def test_there_is_no_input_and_no_terminal(box: Box) -> None:
    assert (
        box.text("bash", command="cat; read x || echo closed; (: </dev/tty) 2>/dev/null || echo none") == "closed\nnone"
    )


def test_it_sees_only_the_environment_it_was_given(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    text = box.text("bash", command="env")
    assert "secret" not in text
    assert f"HOME={box.env['HOME']}" in text.splitlines()


def test_bytes_that_are_not_utf8_are_replaced(box: Box) -> None:
    assert box.text("bash", command=r"printf 'a\377b\303\251'") == "a\ufffdbé"


def test_a_character_in_two_pieces_stays_whole(box: Box) -> None:
    assert box.text("bash", command=r"printf '\303'; sleep 0.05; printf '\251'") == "é"
    assert "".join(box.emitted) == "é"


def test_a_command_that_begins_with_a_sign_is_no_option(box: Box) -> None:
    result = box.call("bash", command="-x foo")
    assert "[exit code 127]" in result.content


def test_output_is_passed_on_while_it_runs(box: Box) -> None:
    async def main() -> tuple[list[str], ToolResult]:
        task = asyncio.create_task(
            box.acall("bash", command="echo early; until [ -e go ]; do sleep 0.01; done; echo late")
        )
        while not box.emitted:
            await asyncio.sleep(0.01)
        early = list(box.emitted)
        box.file("go")
        return early, await task

    early, result = asyncio.run(main())
    assert early == ["early\n"]
    assert result.content == "early\nlate"
    assert "".join(box.emitted) == "early\nlate\n"


def test_many_small_writes_are_passed_on_in_few_pieces(box: Box) -> None:
    box.text("bash", command="for i in {1..500}; do echo $i; done")
    assert len(box.emitted) < 50


def test_a_timeout_keeps_the_output_so_far(box: Box) -> None:
    with pytest.raises(ToolTimeout) as caught:
        box.call("bash", command="echo before; sleep 60", timeout=1)
    assert caught.value.partial == "before\n"
    assert "ran longer than 1 s" in str(caught.value)


def test_the_time_limit_may_come_from_the_settings(tmp_path: Path) -> None:
    with pytest.raises(ToolTimeout, match=r"0\.1 s"):
        Box(tmp_path, ToolSettings(bash_timeout=0.1)).call("bash", command="sleep 60")


TREE = (
    "sleep 60 & echo $! >>pids; bash -c 'sleep 61 & echo $! >>pids; wait' & timeout 62 sleep 62 & echo $! >>pids; wait"
)


@pytest.mark.sample(1)
def test_a_timeout_ends_everything_that_was_started(box: Box) -> None:
    with pytest.raises(ToolTimeout):
        box.call("bash", command=TREE, timeout=1.5)
    pids = _pids(box)
    assert len(pids) == 3
    assert not [pid for pid in pids if alive(pid)]


def test_what_ignores_a_polite_request_is_killed(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "run_program", partial(run_program, ending=Ending(grace=0.1)))
    with ends_soon(), pytest.raises(ToolTimeout):
        box.call("bash", command="trap '' TERM; echo $$ >pids; while :; do sleep 0.05; done", timeout=1)
    assert not alive(_pids(box)[0])


def test_what_cleans_up_when_asked_may_finish(box: Box) -> None:
    with pytest.raises(ToolTimeout) as caught:
        box.call("bash", command="trap 'sleep 0.05; echo cleaned; exit' TERM; sleep 60 & wait", timeout=1)
    assert "cleaned" in caught.value.partial


def test_a_cancelled_call_leaves_nothing_behind(box: Box) -> None:
    async def main() -> None:
        task = asyncio.create_task(box.acall("bash", command=TREE))
        while len(_pids(box)) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = len(os.listdir("/proc/self/fd"))
    asyncio.run(main())
    assert not [pid for pid in _pids(box) if alive(pid)]
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_second_cancellation_does_not_wait(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "run_program", partial(run_program, ending=Ending(grace=600, grace_interrupted=600)))

    async def main() -> None:
        task = asyncio.create_task(
            box.acall("bash", command="trap '' TERM; echo $$ >pids; while :; do sleep 0.05; done")
        )
        while not _pids(box):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ends_soon():
        asyncio.run(main())
    wait_until(lambda: not alive(_pids(box)[0]))


def test_a_background_process_does_not_hold_up_the_call(box: Box) -> None:
    with ends_soon():
        text = box.text("bash", command="sleep 600 & echo $! >pids; echo started")
    (pid,) = _pids(box)
    try:
        assert alive(pid)
        assert text.startswith("started\n[processes keep running in the background")
        group = os.getpgid(pid)
        assert f"kill -- -{group}" in text
    finally:
        os.kill(pid, 9)


def test_a_background_process_with_its_own_output_is_not_waited_for(box: Box) -> None:
    assert box.text("bash", command="sleep 60 >log 2>&1 & echo $! >pids; echo started") == "started"
    (pid,) = _pids(box)
    assert alive(pid)
    os.kill(pid, 9)


def test_output_just_after_the_exit_is_kept(box: Box) -> None:
    assert box.text("bash", command="(sleep 0.05; echo late) & echo early") == "early\nlate"


@pytest.mark.slow
def test_a_hundred_megabytes_take_bounded_memory(tmp_path: Path) -> None:
    command = "echo first; head -c 104857600 /dev/zero | tr '\\0' x; echo; echo last"
    text, length, peak = in_child([], tmp_path, "bash", command=command)
    assert text.startswith("first\nxxx")
    assert 10_000_000 < length < 11_000_000
    assert peak < 110_000


@pytest.mark.slow
def test_two_hundred_calls_leak_no_descriptor(box: Box) -> None:
    async def main() -> tuple[int, int]:
        await box.acall("bash", command="true")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(200):
            await box.acall("bash", command="true")
        return before, len(os.listdir("/proc/self/fd"))

    before, after = asyncio.run(main())
    assert before == after


def test_a_command_too_long_for_the_system_says_so(box: Box) -> None:
    assert "the command is too long\n  write it to a file" in box.error("bash", command="x" * 200_000)


def test_a_nul_character_is_refused(box: Box) -> None:
    assert "cannot hold a NUL character" in box.error("bash", command="echo \0")


def test_a_project_folder_that_is_gone_is_named(box: Box) -> None:
    box.root.rmdir()
    assert f"the folder {box.root.resolve()} is gone" in box.error("bash", command="true")


def test_failed_starts_leak_no_descriptor(box: Box) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(StartError):
            box.call("bash", command="echo \0")
    assert len(os.listdir("/proc/self/fd")) == before


def test_arguments_changed_by_somebody_else_are_checked_again(box: Box) -> None:
    with pytest.raises(ArgumentError, match="`command`: expected a string"):
        asyncio.run(box.tool("bash").run({"command": 1}, box.running))


def test_sh_does_where_there_is_no_bash(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.env["PATH"] = "relative:"
    assert box.text("bash", command="echo fine") == "fine"
