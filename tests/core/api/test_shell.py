"""shell: real programs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room
from tests.kit.waiting import wait_until

from cru.core.api import shell
from cru.core.api.host import BadArgument, NamespaceError

EXEC: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("echo", ["hi"]), {"success": True, "exit_code": 0, "stdout": "hi\n", "stderr": ""}),
    (("true",), {"success": True, "exit_code": 0, "stdout": "", "stderr": ""}),
    (("true", {}), {"success": True, "exit_code": 0, "stdout": "", "stderr": ""}),
    (("false", None), {"success": False, "exit_code": 1, "stdout": "", "stderr": ""}),
    (("sh", ["-c", "echo out; echo err >&2; exit 3"]), {"exit_code": 3, "stdout": "out\n", "stderr": "err\n"}),
    (("sh", ["-c", "kill -9 $$"]), {"success": False, "exit_code": -1}),
    (("echo", ["$HOME; rm -rf x"]), {"stdout": "$HOME; rm -rf x\n"}),
    (("echo", [1, 2.5]), {"stdout": "1 2.5\n"}),
    (("cat", [], {"stdin": "given"}), {"stdout": "given"}),
    (("true", [], {"stdin": "x" * 200_000}), {"success": True}),
    (("cat", []), {"stdout": ""}),
    (("sh", ["-c", "echo $A $CRU_CONTEXT"], {"env": {"A": "b"}}), {"stdout": "b main\n"}),
    (("printf", ["\\377"]), {"stdout": "\udcff"}),
]


@pytest.mark.parametrize(("args", "expected"), EXEC)
def test_exec_runs_a_program_without_a_shell(tmp_path: Path, args: tuple[Any, ...], expected: dict[str, Any]) -> None:
    found = Room(tmp_path)(shell.exec_, *args)
    assert {key: found[key] for key in expected} == expected
    assert sorted(found) == ["exit_code", "stderr", "stdout", "success"]


def test_exec_runs_in_the_project_root_or_where_it_is_told(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (room.root / "sub").mkdir()
    assert room(shell.exec_, "pwd")["stdout"] == f"{room.root}\n"
    assert room(shell.exec_, "pwd", [], {"cwd": "sub"})["stdout"] == f"{room.root}/sub\n"


@pytest.mark.parametrize("name", ["rm", "sudo", "chmod", "chown", "/bin/rm", "../bin/chmod"])
def test_four_programs_are_refused_by_policy(tmp_path: Path, name: str) -> None:
    for function in (shell.exec_, shell.spawn):
        with pytest.raises(NamespaceError) as caught:
            Room(tmp_path)(function, name, ["x"])
        assert caught.value.message == f"Command '{name}' is not allowed by shell policy"


FAILS: list[tuple[tuple[Any, ...], str]] = [
    (("no-such-program-here",), "cannot start no-such-program-here: No such file"),
    (("echo hi | cat",), "cannot start echo hi .* one program and its arguments.*sh"),
    (("ls -l",), "cannot start ls -l: .* one program and its arguments"),
    (("true", [], {"cwd": "missing"}), "cannot start true: No such file"),
    (("true", ["a\0b"]), "cannot start true: embedded null"),
    (("sleep", ["5"], {"timeout": 0.05}), "sleep ran longer than 0.05 s"),
    ((None,), "cmd must be a string"),
    (("true", "x"), "args must be an array"),
    (("true", {"a": 1}), "args must be an array"),
    (("true", [{}]), "array of strings"),
    (("true", [], {"stdin": 1}), "stdin must be a string"),
    (("true", [], {"env": "A=b"}), "env must be a table"),
    (("true", [], {"timeout": "soon"}), "timeout must be a number"),
]


@pytest.mark.parametrize(("args", "message"), FAILS)
def test_what_cannot_run_raises(tmp_path: Path, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(NamespaceError, match=message):
        Room(tmp_path)(shell.exec_, *args)


def test_a_cancelled_exec_ends_everything_that_it_started(tmp_path: Path) -> None:
    room = Room(tmp_path)

    async def main() -> int:
        task = asyncio.ensure_future(shell.exec_("sh", ["-c", "sleep 30 & echo $! > pid; wait"]))
        while not (room.root / "pid").exists() or not (room.root / "pid").read_text():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int((room.root / "pid").read_text())

    pid = room(main)
    wait_until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_spawn_hands_over_lines_as_they_come(tmp_path: Path) -> None:
    lines: list[tuple[str, str]] = []

    async def on_line(stream: str, line: str) -> None:
        lines.append((stream, line))
        await asyncio.sleep(0)

    found = Room(tmp_path)(
        shell.spawn, "sh", ["-c", "echo a; echo b; printf c"], {"on_line": on_line, "env": {"X": "1"}}
    )
    assert lines == [("stdout", "a"), ("stdout", "b"), ("stdout", "c")]
    assert found["stdout"] == "a\nb\nc"
    lines.clear()
    Room(tmp_path)(shell.spawn, "sh", ["-c", "echo bad >&2"], {"on_line": on_line})
    assert lines == [("stderr", "bad")]


def test_lines_without_end_do_not_keep_the_session_from_its_limit(tmp_path: Path) -> None:
    with pytest.raises(NamespaceError, match=r"yes ran longer than 0\.2 s"):
        Room(tmp_path)(shell.spawn, "yes", [], {"on_line": lambda stream, line: None, "timeout": 0.2})


def test_an_error_in_on_line_is_raised_after_the_child_has_ended(tmp_path: Path) -> None:
    room = Room(tmp_path)
    seen: list[str] = []

    def on_line(stream: str, line: str) -> None:
        seen.append(line)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        room(shell.spawn, "sh", ["-c", "echo a; echo b; echo done > mark"], {"on_line": on_line})
    assert seen == ["a"]
    assert (room.root / "mark").exists()
    with pytest.raises(BadArgument, match="on_line must be a function"):
        room(shell.spawn, "true", [], {"on_line": 1})


def test_spawn_without_on_line_is_exec(tmp_path: Path) -> None:
    assert Room(tmp_path)(shell.spawn, "echo", ["hi"])["stdout"] == "hi\n"


def test_which_finds_programs_on_the_path_of_tools(tmp_path: Path) -> None:
    room = Room(tmp_path)
    found = room(shell.which, "sh")
    assert found is not None
    assert os.access(found, os.X_OK)
    assert [room(shell.which, name) for name in ("no-such-program", "", "a\0", "./nope")] == [None] * 4
    (room.root / "tool").write_text("#!/bin/sh\n")
    (room.root / "tool").chmod(0o755)
    assert room(shell.which, "./tool") == f"{room.root}/./tool"


def test_output_without_end_is_kept_within_bounds(tmp_path: Path) -> None:
    found = Room(tmp_path)(shell.exec_, "sh", ["-c", "echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo last"])
    assert found["truncated"] is True
    assert len(found["stdout"]) < 11 << 20
    assert found["stdout"].startswith("first\n")
    assert found["stdout"].endswith("last\n")


def test_a_line_without_end_comes_in_pieces(tmp_path: Path) -> None:
    sizes: list[int] = []
    Room(tmp_path)(
        shell.spawn, "head", ["-c", "5000000", "/dev/zero"], {"on_line": lambda _, line: sizes.append(len(line))}
    )
    assert sum(sizes) == 5_000_000
    assert max(sizes) < 2 << 20
