"""A full disk, a disk that fails and a read-only home at each change that a turn makes: a clear error, nothing is lost, and the next run
goes on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from tests.kit import HomeDir, cru
from tests.kit.faults import SPACE, Change, Disk, Fault, run_with

LETTER = "Is the plan sound?"
SCRIPT = 'loop: yes\ntext: looking\ncall: update_todos {"content": "x"}\n---\ntext: done\n'
PLUGIN = 'cru.on("turn:complete", function() end)'
FULL = Fault(errno=errno.ENOSPC, lasting=True, kinds=SPACE)
BROKEN = Fault(errno=errno.EIO)
READ_ONLY = Fault(errno=errno.EROFS, lasting=True)
FAULTS = {"full": FULL, "broken": BROKEN, "read-only": READ_ONLY}


def prepare(home: HomeDir) -> Disk:
    """A context with a turn, a message that waits, and a plugin, so that a turn writes every kind of file."""
    home.configure('model = "scripted:script.txt"\n')
    (home.project / "script.txt").write_text(SCRIPT)
    assert cru("before", home=home).code == 0
    (home.cru / "plugins").mkdir()
    (home.cru / "plugins" / "p.lua").write_text(PLUGIN)
    (home.context() / "inbox.jsonl").write_text(f'{{"from":"me","to":"default","content":"{LETTER}"}}\n')
    return Disk.read(home.cru)


def contents(home: HomeDir, kind: str) -> list[str]:
    return [entry["content"] for entry in home.log() if entry["entry_type"] == kind]


def check(home: HomeDir, before: Disk, fault: Fault) -> Change | None:
    """One faulty turn, and the next one on a whole disk. What failed, None if the turn has no such step."""
    before.write(home.cru)
    run = run_with(fault, "go", home=home)
    failed = next((change for change in run.changes if change.failed), None)
    what = f"{failed}: {run.done}"
    assert run.done.code in (0, 1) and "Traceback" not in run.done.err, what
    if run.done.code:
        assert os.strerror(fault.errno) in run.done.err, what
        assert any(line.startswith("  ") for line in run.done.err.splitlines()), f"no next step: {what}"
    else:
        assert run.done.out == "looking\ndone\n" and contents(home, "message")[-1] == "done", what
    again = cru("again", home=home)
    assert again.code == 0 and again.out.endswith("done\n") and "not an entry" not in again.err, (what, again)
    assert contents(home, "message")[:3] == ["before", "looking", "done"], what
    assert sum(text.count(LETTER) for text in contents(home, "message_resolved")) == 1, what
    assert (home.context() / "inbox.jsonl").read_bytes() == b"", what
    return failed


def place(change: Change) -> str:
    """What kind of file it is."""
    name = Path(change.path).name
    return "log" if name == "context.jsonl" else "records" if name.startswith(("trace", "journal")) else "other"


def one_of_each_kind(changes: list[Change], fault: Fault) -> list[int]:
    """The first step on each kind of file for each function that can fail so."""
    counted = [change for change in changes if not fault.kinds or change.op in fault.kinds]
    first = {(change.op, place(change)): number for number, change in reversed([*enumerate(counted, 1)])}
    return sorted(first.values())


def fail_one_of_each_kind(home: HomeDir, fault: Fault) -> None:
    before = prepare(home)
    changes = run_with(Fault(), "go", home=home).changes
    steps = one_of_each_kind(changes, fault)
    failed = [check(home, before, Fault(0, step, fault.errno, fault.lasting, fault.kinds)) for step in steps]
    assert all(failed) and {change.op for change in failed if change} == {
        change.op for change in changes if not fault.kinds or change.op in fault.kinds
    }


@pytest.mark.slow
def test_on_a_full_disk_a_turn_ends_clearly(home: HomeDir) -> None:
    fail_one_of_each_kind(home, FULL)


@pytest.mark.slow
def test_on_a_broken_disk_a_turn_ends_clearly(home: HomeDir) -> None:
    fail_one_of_each_kind(home, BROKEN)


@pytest.mark.slow
def test_in_a_read_only_home_a_turn_ends_clearly(home: HomeDir) -> None:
    fail_one_of_each_kind(home, READ_ONLY)


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_a_turn_ends_clearly_at_every_step(home: HomeDir, name: str) -> None:
    before, fault, step = prepare(home), FAULTS[name], 1
    while check(home, before, Fault(0, step, fault.errno, fault.lasting, fault.kinds)):
        step += 1
    assert step > 20


@pytest.mark.slow
def test_records_that_cannot_be_written_end_no_turn(home: HomeDir) -> None:
    before = prepare(home)
    for path in ("trace.jsonl", "journal.jsonl"):
        before.write(home.cru)
        run = run_with(Fault(fail=1, errno=errno.EIO, lasting=True, path=path), "go", home=home)
        assert (run.done.code, run.done.out) == (0, "looking\ndone\n")
        assert run.done.err.count("cannot be written: cannot write") == 1 and path in run.done.err


def test_the_error_that_is_told_is_the_first_one(home: HomeDir) -> None:
    prepare(home)
    run = run_with(Fault(fail=1, errno=errno.EROFS, lasting=True, path="context.jsonl"), "go", home=home)
    assert run.done.code == 1 and run.done.err.startswith(f"cru: cannot write {home.context() / 'context.jsonl'}: ")
