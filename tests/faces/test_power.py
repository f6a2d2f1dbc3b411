"""A power cut and a kill at every change that a run makes on disk: what was acknowledged is there, once."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.kit import HomeDir, cru
from tests.kit.faults import Change, Disk, Fault, cut_power, disks_after, run_with

from cru.core.conversations.inbox import read_inbox
from cru.core.conversations.store import FileContext

LETTER = "Is the plan sound?"
MESSAGE = {"from": "main", "to": "default", "content": LETTER}


def scripted(home: HomeDir) -> HomeDir:
    home.configure('model = "scripted:script.txt"\n')
    (home.project / "script.txt").write_text("loop: yes\ntext: done\n")
    return home


def put(home: HomeDir, *lines: bytes) -> None:
    with (home.context() / "inbox.jsonl").open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))


def times_delivered(folder: Path) -> tuple[int, int]:
    """How often the letter is in the log as it was sent, and how often it waits."""
    context = FileContext(folder)
    sent = [entry.content for entry in context.everything() if entry.entry_type == "message_resolved"]
    waiting = [message.content for message in read_inbox(context.folder)[0]]
    context.close()
    return sum(text.count(LETTER) for text in sent), waiting.count(LETTER)


def readers(home: HomeDir) -> tuple[Disk, list[Change]]:
    """What a turn that takes a message does to the disk."""
    assert cru("before", home=scripted(home)).code == 0
    put(home, msgspec.json.encode(MESSAGE))
    before = Disk.read(home.cru)
    run = run_with(Fault(), "go", home=home)
    assert run.done.code == 0 and times_delivered(home.context()) == (1, 0)
    return before, run.changes


def test_a_power_cut_neither_loses_a_message_nor_delivers_it_twice(home: HomeDir) -> None:
    before, changes = readers(home)
    number = 0
    for what, disk in disks_after(before, changes):
        disk.write(home.cru)
        assert sum(times_delivered(home.context())) == 1, what
        number += 1
    assert number > 20


def kills(home: HomeDir, changes: list[Change], paths: tuple[str, ...]) -> Iterator[int]:
    yield from (number for number, change in enumerate(changes, 1) if Path(change.path).name.startswith(paths))


@pytest.mark.slow
def test_a_kill_between_log_and_inbox_does_not_deliver_twice(home: HomeDir) -> None:
    _, changes = readers(home)
    steps = [*kills(home, changes, ("inbox", "context.jsonl"))]
    assert len(steps) > 5
    for kill in steps:
        letter = {**MESSAGE, "id": f"id-{kill}", "timestamp": 5} if kill % 2 else MESSAGE
        (home.context() / "context.jsonl").unlink()
        put(home, msgspec.json.encode(letter))
        run_with(Fault(kill=kill), "go", home=home)
        again = cru("again", home=home)
        assert again.code == 0, again
        assert times_delivered(home.context()) == (1, 0), f"killed before step {kill} ({changes[kill - 1]})"
        assert (home.context() / "inbox.jsonl").read_bytes() == b""


@pytest.mark.long
def test_a_kill_at_any_step_of_a_turn_delivers_once(home: HomeDir) -> None:
    _, changes = readers(home)
    for kill in range(1, len(changes) + 1):
        (home.context() / "context.jsonl").unlink()
        put(home, msgspec.json.encode(MESSAGE))
        run_with(Fault(kill=kill), "go", home=home)
        assert cru("again", home=home).code == 0
        assert times_delivered(home.context()) == (1, 0), f"killed before step {kill} ({changes[kill - 1]})"


def test_the_same_words_come_as_often_as_they_are_sent(home: HomeDir) -> None:
    line = msgspec.json.encode(MESSAGE)
    assert cru("before", home=scripted(home)).code == 0
    put(home, line, line)
    assert cru("one", home=home).code == 0 and times_delivered(home.context()) == (2, 0)
    put(home, line)
    assert cru("two", home=home).code == 0 and times_delivered(home.context()) == (3, 0)


@pytest.mark.slow
def test_after_a_kill_what_was_taken_is_not_shown_as_waiting_even_if_the_log_was_archived(home: HomeDir) -> None:
    assert cru("before", home=scripted(home)).code == 0
    put(home, msgspec.json.encode(MESSAGE))
    assert run_with(Fault(kill=1, kinds=("truncate",), path="/inbox.jsonl"), "go", home=home).done.code == -9
    assert (home.context() / "inbox.jsonl").read_bytes().count(LETTER.encode()) == 1
    assert "waits" not in cru("-L", home=home).out and LETTER not in cru("-n", "inbox", home=home).out
    assert cru("-a", home=home).code == 0
    put(home, msgspec.json.encode({**MESSAGE, "content": "a second one"}))
    assert "1 message waits" in cru("-L", home=home).out
    assert cru("go on", home=home).code == 0
    assert times_delivered(home.context()) == (1, 0)


def test_a_message_that_was_sent_survives_a_power_cut(home: HomeDir) -> None:
    assert cru("before", home=scripted(home)).code == 0
    before = Disk.read(home.cru)
    letter = msgspec.json.encode({"to": "critic", "content": LETTER}).decode()
    run = run_with(Fault(), "-P", "send_message", letter, home=home)
    assert run.done.code == 0 and run.done.out.startswith("Message sent to critic")
    cut_power(before, run.changes, lambda _: False).write(home.cru)
    assert times_delivered(home.context("critic")) == (0, 1)


def test_a_message_that_could_not_be_kept_is_not_there(home: HomeDir) -> None:
    assert cru("before", home=scripted(home)).code == 0
    letter = msgspec.json.encode({"to": "default", "content": LETTER}).decode()
    assert cru("-P", "send_message", letter, home=home).code == 0
    for kind, error in (("write", errno.ENOSPC), ("sync", errno.EIO)):
        fault = Fault(fail=1, errno=error, kinds=(kind,), path="/inbox.jsonl")
        run = run_with(fault, "-P", "send_message", letter, home=home)
        assert run.done.code == 1 and "Message sent" not in run.done.out, run.done
        assert "inbox.jsonl" in run.done.out + run.done.err
        assert times_delivered(home.context()) == (0, 1), "the first one"


def test_a_turn_that_ended_survives_a_power_cut(home: HomeDir) -> None:
    scripted(home).context().mkdir(parents=True)
    before = Disk.read(home.cru)
    run = run_with(Fault(), "hello", home=home)
    assert (run.done.code, run.done.out) == (0, "done\n")
    cut_power(before, run.changes, lambda _: False).write(home.cru)
    assert cru("-g", "2", home=home).out == "[USER]: hello\n[DEFAULT]: done\n"


@pytest.mark.slow
def test_a_power_cut_while_a_context_is_archived_loses_no_entry(home: HomeDir) -> None:
    for words in ("one", "two"):
        assert cru(words, home=scripted(home)).code == 0
    before = Disk.read(home.cru)
    ids = [entry["id"] for entry in home.log()]
    run = run_with(Fault(), "-a", home=home)
    assert run.done.code == 0 and any(
        change.op == "rename" and change.to.endswith("context.jsonl") for change in run.changes
    )
    number = 0
    for what, disk in disks_after(before, run.changes):
        disk.write(home.cru)
        context = FileContext(home.context())
        assert [entry.id for entry in context.everything()][: len(ids)] == ids, what
        context.close()
        number += 1
    assert number > 10


@pytest.mark.slow
def test_records_are_put_aside_over_the_runs_and_read_as_one(home: HomeDir) -> None:
    scripted(home).configure('model = "scripted:script.txt"\nrecord_file_mb = 0.003\nrecord_files = 4\n')
    (home.cru / "hooks.json").write_text('{"hooks": {"turn:complete": [{"hooks": [{"command": "true"}]}]}}')
    for number in range(16):
        assert cru(f"prompt {number}", home=home).code == 0
    names = sorted(path.name for path in home.context().glob("trace.jsonl*"))
    assert names == ["trace.jsonl", "trace.jsonl.1", "trace.jsonl.2", "trace.jsonl.3"]
    assert sum(path.stat().st_size for path in home.context().glob("trace.jsonl*")) < 4 * 0.003 * (1 << 20) + 2000
    last = cru("trace", home=home)
    place, _, total = last.out.split("(")[0].removeprefix("turn ").partition(" of ")
    assert last.err == "" and place == total.strip() and 4 <= int(total) < 16
    oldest = cru("trace", "--turn", "1", home=home)
    assert oldest.code == 0 and "1 request, done" in oldest.out.splitlines()[0]
    assert "“prompt 15”: done" in cru("hooks", "why", home=home).out
    assert cru("hooks", "why", "--turn", "1", home=home).out.splitlines()[0].endswith("”: done")
    assert cru("trace", "--turn", "1", "--request", "1", home=home).out.splitlines()[0].endswith("(as sent)")
