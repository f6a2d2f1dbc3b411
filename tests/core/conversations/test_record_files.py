"""Files of records over the time: what is put aside, what goes, and reading over all of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.core.conversations.support import LineFile, start
from tests.kit import HomeDir
from tests.kit.faults import Fault, run_with

from cru.core.conversations import line_file
from cru.core.conversations.line_file import DAY, RecordLimits
from cru.core.conversations.record_files import RecordFiles, newest_first


def line(number: int) -> bytes:
    return b'{"n":%05d}\n' % number


def numbers(path: Path) -> list[int]:
    """Those of all lines that can be read, the oldest first."""
    return [int(text[5:10]) for text in newest_first(path) if text][::-1]


def test_lines_are_read_over_all_files_from_either_end_and_past_gaps(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for number, name in enumerate(("j.4", "j.2", "j.1", "j")):
        (tmp_path / name).write_bytes(line(2 * number) + line(2 * number + 1))
    (tmp_path / "j.old").write_bytes(line(99))
    assert numbers(path) == [*range(8)]
    with RecordFiles(path) as files:
        assert b"".join(block for _, block in files.blocks()) == b"".join(map(line, range(8)))
        assert [*files.blocks(24, 60)] == [(24, line(2) + line(3)), (48, line(4))]
        assert files.place(72) == (tmp_path / "j.1", 2)
    with RecordFiles(tmp_path / "nothing" / "j") as files:
        assert list(files.backward()) == []


@pytest.mark.parametrize("size", [1, 100, 8191, 8192, 8193, 300_000, 1_000_000])
def test_lines_of_any_length_are_read_whole(tmp_path: Path, size: int) -> None:
    lines = [b"a" * size, b"", b"b", b"c" * size]
    (tmp_path / "j").write_bytes(b"\n".join(lines))
    with RecordFiles(tmp_path / "j") as files:
        assert list(files.backward()) == lines[::-1]
        blocks = [*files.blocks()]
        assert b"".join(block for _, block in blocks) == b"\n".join(lines)
        assert all(block.endswith(b"\n") for _, block in blocks[:-1])


def test_what_is_put_aside_while_it_is_read_is_read_once(tmp_path: Path) -> None:
    writer = LineFile(tmp_path / "j", RecordLimits(24, 9))
    for number in range(6):
        writer.write(line(number))
    with RecordFiles(tmp_path / "j") as files:
        for number in range(6, 12):
            writer.write(line(number))
        assert [int(text[5:10]) for text in files.backward() if text] == [5, 4, 3, 2, 1, 0]


@pytest.mark.slow
def test_a_kill_at_any_step_of_putting_aside_loses_nothing(home: HomeDir) -> None:
    code = (
        "from cru.core.conversations.line_file import LineFile, RecordLimits\nfrom pathlib import Path\nimport sys\n"
        "LineFile(Path(sys.argv[1]), RecordLimits(24, 4)).write(b'{\"n\":00006}\\n')"
    )
    path = home.cru / "j"
    home.cru.mkdir(parents=True)
    kill, ends = 1, list[int]()
    while not ends or ends[-1] != 0:
        for number, name in enumerate(("j.2", "j.1", "j")):
            (home.cru / name).write_bytes(line(2 * number) + line(2 * number + 1))
        run = run_with(Fault(kill=kill), str(path), home=home, code=code)
        ends.append(run.done.code)
        assert numbers(path) == [*range(6), *([6] if run.done.code == 0 else [])], (kill, run)
        after = LineFile(path, RecordLimits(24, 4))  # the next process goes on
        for number in range(7, 11):
            after.write(line(number))
        kept = numbers(path)
        assert kept == [n for n in range(11) if n in kept] and kept[-4:] == [7, 8, 9, 10] and len(kept) >= 6
        assert len(list(home.cru.iterdir())) <= 4
        for left in home.cru.iterdir():
            left.unlink()
        kill += 1
    assert len(ends) == 6, "three renames, a new file, a write"


_WRITE = """
import sys
from pathlib import Path
from cru.core.conversations.line_file import LineFile, RecordLimits
lines = LineFile(Path(sys.argv[1]), RecordLimits(2000, 1000))
sys.stdin.readline()
for n in range(500):
    lines.write(b'{"n":%05d}\\n' % (int(sys.argv[2]) * 1000 + n))
"""


@pytest.mark.slow
def test_several_processes_put_aside_and_write_without_losing_a_line(tmp_path: Path) -> None:
    children = [start(_WRITE, tmp_path / "j", n) for n in range(4)]
    for child in children:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        _, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
    assert sorted(numbers(tmp_path / "j")) == sorted(c * 1000 + n for c in range(4) for n in range(500))
    assert len(list(tmp_path.iterdir())) > 5


def test_a_writer_that_was_idle_writes_to_the_file_that_is_there_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle, busy = (LineFile(tmp_path / "j", RecordLimits(24, 3)) for _ in range(2))
    idle.write(line(0))
    for number in range(1, 12):
        busy.write(line(number))
    monkeypatch.setattr(line_file, "LOOK_SECONDS", 0.0)
    idle.write(line(12))
    assert numbers(tmp_path / "j")[-1] == 12 and b"00012" in (tmp_path / "j").read_bytes()


def test_a_lower_number_of_files_holds_for_those_that_are_there(tmp_path: Path) -> None:
    for number in range(1, 9):
        (tmp_path / f"j.{number}").write_bytes(line(number))
    mine = tmp_path / "j.20251122"
    mine.write_bytes(b"a copy that a person made\n")
    lines = LineFile(tmp_path / "j", RecordLimits(12, 3))
    lines.write(line(10))
    lines.write(line(11))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j", "j.1", "j.2", "j.20251122"]
    assert mine.exists() and numbers(tmp_path / "j") == [1, 10, 11]


def test_records_go_when_they_are_too_old(tmp_path: Path) -> None:
    def stamped(days: int) -> bytes:
        return b'{"k":"leg","time":%d.25}\n' % (time.time() - days * DAY)

    limits = RecordLimits(seconds=10 * DAY)
    (tmp_path / "j").write_bytes(stamped(3) + stamped(0))
    (tmp_path / "j.1").write_bytes(stamped(20))
    os.utime(tmp_path / "j.1", (0, time.time() - 20 * DAY))
    assert LineFile(tmp_path / "j", limits).write(stamped(0)), "its oldest line has a fifth of the age"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j", "j.1"]
    assert (tmp_path / "j.1").read_bytes() == stamped(3) + stamped(0)
    assert not LineFile(tmp_path / "j", limits).write(stamped(0))
    (tmp_path / "k").write_bytes(stamped(500))
    assert not LineFile(tmp_path / "k", RecordLimits(seconds=0)).write(stamped(0))


def test_a_write_costs_one_call_and_nothing_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def count(name: str) -> None:
        real = getattr(os, name)

        def counted(*args: object, **more: object) -> object:
            calls.append(name)
            return real(*args, **more)

        monkeypatch.setattr(os, name, counted)

    lines = LineFile(tmp_path / "j", RecordLimits(48, 3))
    for name in (
        "open",
        "stat",
        "fstat",
        "write",
        "pread",
        "fsync",
        "fdatasync",
        "rename",
        "replace",
        "listdir",
        "close",
    ):
        count(name)
    lines.write(line(1))
    assert calls.count("open") == 1
    calls.clear()
    for number in range(2, 5):
        lines.write(line(number))
    assert calls == ["write"] * 3
    for number in range(5, 50):
        lines.write(line(number))
    assert not {"fsync", "fdatasync"} & {*calls}
