"""Programs that run to their end, or do not even start."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.kit.waiting import PATIENCE, ends_soon

from cru.core.base.process.capture import ByteCapture, TextCapture
from cru.core.base.process.child import Child, Program
from cru.core.base.process.errors import StartError, StartProblem
from cru.core.base.process.pipes import PipeReader, PipeWriter
from cru.core.base.process.run import AT_ONCE, Ending, ProcessResult, run_program


def sh(folder: Path, source: str, stdin: bytes = b"") -> Program:
    return Program(("/bin/sh", "-c", source), folder, dict(os.environ), stdin)


def run(program: Program, seconds: float | None = 10, ending: Ending = Ending()) -> ProcessResult:
    return asyncio.run(run_program(program, seconds, TextCapture(), TextCapture(), ending=ending))


def test_both_outputs_and_the_exit_status_come_back(tmp_path: Path) -> None:
    ended = run(sh(tmp_path, "cat; echo err >&2; exit 3", b"given"))
    assert ended == ProcessResult(3, "given", "err\n")


def test_one_capture_takes_both_outputs(tmp_path: Path) -> None:
    ended = asyncio.run(run_program(sh(tmp_path, "echo out; echo err >&2"), 10, TextCapture()))
    assert (ended.output, ended.errors) == ("out\nerr\n", "")


def test_a_program_without_grace_is_killed_at_its_limit(tmp_path: Path) -> None:
    with ends_soon():
        ended = run(sh(tmp_path, "trap '' TERM; sleep 600 & wait; wait"), 0.1, AT_ONCE)
    assert ended.timed_out and ended.exit_status == -9


def test_one_that_cleans_up_when_asked_has_its_own_exit_status(tmp_path: Path) -> None:
    ended = run(sh(tmp_path, "trap 'echo bye; exit 7' TERM; sleep 30 & wait"), 0.3)
    assert ended.timed_out and (ended.exit_status, ended.output) == (7, "bye\n")


def test_a_capture_that_has_enough_ends_the_program(tmp_path: Path) -> None:
    capture = ByteCapture(kept=10, most=1000)
    ended = asyncio.run(run_program(sh(tmp_path, "yes"), 10, capture, ending=AT_ONCE))
    assert capture.is_too_much and ended.is_cut and not ended.timed_out and ended.output == "y\n" * 5


def test_what_is_left_running_with_its_output_open_is_named(tmp_path: Path) -> None:
    ended = run(sh(tmp_path, "sleep 30 & echo $!"))
    os.kill(int(ended.output), 9)
    assert ended.left_behind > 0


def script(folder: Path, text: bytes, mode: int = 0o755) -> str:
    path = folder / "script"
    path.write_bytes(text)
    path.chmod(mode)
    return str(path)


STARTS: list[tuple[bytes | None, int, StartProblem]] = [
    (None, 0, StartProblem.PROGRAM_NOT_FOUND),
    (b"#!/no/such/interpreter\n", 0o755, StartProblem.INTERPRETER_NOT_FOUND),
    (b"#!/bin/sh\r\n", 0o755, StartProblem.WINDOWS_LINE_END),
    (b"plain text\n", 0o755, StartProblem.NOT_A_PROGRAM),
    (b"#!/bin/sh\n", 0o644, StartProblem.REFUSED_BY_SYSTEM),
]


@pytest.mark.parametrize(("text", "mode", "problem"), STARTS)
def test_a_file_that_cannot_be_run(tmp_path: Path, text: bytes | None, mode: int, problem: StartProblem) -> None:
    path = str(tmp_path / "script") if text is None else script(tmp_path, text, mode)
    with pytest.raises(StartError) as caught:
        run(Program((path,), tmp_path, {}))
    assert (caught.value.problem, caught.value.program, caught.value.number > 0) == (problem, path, True)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (Program(("true", "a\0b"), Path("/"), {}), StartProblem.NUL_CHARACTER),
        (Program(("true", "x" * (256 << 10)), Path("/"), {"PATH": os.defpath}), StartProblem.TOO_LONG),
        (Program(("true",), Path("/no/such/folder"), {"PATH": os.defpath}), StartProblem.FOLDER_GONE),
    ],
)
def test_a_program_that_cannot_be_given_what_it_needs(program: Program, problem: StartProblem) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StartError) as caught:
        run(program)
    assert caught.value.problem is problem
    assert len(os.listdir("/proc/self/fd")) == before


def test_pipes_are_read_and_written_when_somebody_asks(tmp_path: Path) -> None:
    async def main() -> tuple[int, bytes, int | None]:
        writer, reader = PipeWriter(), PipeReader()
        program = Program(("/bin/cat",), tmp_path, {}, writer.child_end)
        child = Child(program, reader.child_end, 2)
        writer.started()
        reader.started()
        sending = asyncio.ensure_future(writer.write(b"x" * 1_000_000))
        first = await reader.read()
        size = len(first)
        while size < 1_000_000:
            size += len(await reader.read())
        await sending
        writer.close()
        rest = await reader.read()
        await child.wait()
        child.close()
        reader.close()
        return size, rest, child.exit_status

    assert asyncio.run(main()) == (1_000_000, b"", 0)


def test_a_pipe_that_is_closed_lets_go_of_who_waits_for_it() -> None:
    async def main() -> bytes:
        reader = PipeReader()
        waiting = asyncio.ensure_future(reader.read())
        await asyncio.sleep(0.01)
        reader.close()
        return await asyncio.wait_for(waiting, PATIENCE)

    assert asyncio.run(main()) == b""
