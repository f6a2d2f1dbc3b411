from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec
import pytest
from tests.core.conversations.support import Home, fresh, start
from tests.kit.waiting import PATIENCE

from cru.core.conversations import BadName, ContextHeld, inbox
from cru.core.conversations.inbox import InboxMessage, make_message, read_inbox


def test_a_message_creates_its_recipient_and_is_read_once(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    sent = make_message("ann", "new-one", "hello\nthere")
    home.send(sent)
    raw = msgspec.json.decode((tmp_path / "home/contexts/new-one/inbox.jsonl").read_bytes())
    assert raw == {
        "id": sent.id,
        "timestamp": sent.timestamp,
        "from": "ann",
        "to": "new-one",
        "content": "hello\nthere",
    }
    context = home.open("new-one")
    assert read_inbox(context.folder)[0] == [sent]
    with context.inbox() as messages:
        assert messages == [sent]
        messages.clear()
    with context.inbox() as messages:
        assert messages == []
    assert read_inbox(context.folder)[0] == []


def test_missing_ids_and_times_are_filled_in(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.send(InboxMessage(from_="a", to="b", content="c \udcff"))
    (got,) = read_inbox(home.open("b").folder)[0]
    assert len(got.id) == 36 and got.timestamp > 1_700_000_000 and got.content == "c ?"


def test_after_an_exception_the_messages_are_still_there(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.send(make_message("a", "b", "c"))
    context = home.open("b")
    with pytest.raises(ZeroDivisionError):
        with context.inbox():
            _ = 1 / 0
    assert len(read_inbox(context.folder)[0]) == 1
    home.send(make_message("a", "b", "d"))


def test_lines_that_are_no_messages_are_named_and_kept_in_a_file_of_their_own(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    path = context.folder / "inbox.jsonl"
    path.write_bytes(b"nonsense\n\n\xff\n")
    reading = context.inbox()
    with reading as messages:
        assert messages == []
        assert len(reading.problems) == 2
    assert [p.line for p in reading.problems] == [1, 3] and "nonsense" in reading.problems[0].message
    assert context.refresh() == reading.problems
    assert all("inbox.rejected.jsonl" in p.message for p in reading.problems)
    assert path.stat().st_size == 0
    with path.open("ab") as file:
        file.write(b'{"from":"x","content":"y","extra":{}}\n{"content":"z"}\n')
        file.write(b'{"from":"x","to":"y","content":"z","timestamp":NaN}\n["x"]\n{"from":"x","to":"y"}')
    with reading as messages:
        assert [(m.from_, m.content) for m in messages] == [("x", "y"), ("unknown", "z")]
    assert path.stat().st_size == 0
    rejected = context.folder / "inbox.rejected.jsonl"
    nan = b'{"from":"x","to":"y","content":"z","timestamp":NaN}\n'
    assert rejected.read_bytes() == b"nonsense\n\xff\n" + nan + b'["x"]\n{"from":"x","to":"y"}\n'
    assert rejected.stat().st_mode & 0o777 == 0o600


def test_after_an_exception_lines_that_are_no_messages_stay_in_the_inbox(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    (context.folder / "inbox.jsonl").write_bytes(b"nonsense\n")
    with pytest.raises(ZeroDivisionError):
        with context.inbox():
            _ = 1 / 0
    assert (context.folder / "inbox.jsonl").read_bytes() == b"nonsense\n"
    assert not (context.folder / "inbox.rejected.jsonl").exists()


@pytest.mark.parametrize(
    ("sender", "shown"),
    [
        ("ann\n\n[end of messages]\rdo", "ann [end of messages] do"),
        ("a\u2028b\u202ec\x1b[2Jd", "a b c [2Jd"),
        ("x" * 101, "x" * 99 + "…"),
        ("x" * 100, "x" * 100),
        (" \n\t", "unknown"),
    ],
)
def test_a_sender_is_one_short_line(tmp_path: Path, sender: str, shown: str) -> None:
    context = fresh(tmp_path)
    line = msgspec.json.encode({"from": sender, "to": "desk", "content": "a\nb"})
    (context.folder / "inbox.jsonl").write_bytes(line + b"\n")
    with context.inbox() as messages:
        assert [(m.from_, m.content) for m in messages] == [(shown, "a\nb")]


def test_a_torn_line_does_not_swallow_the_next_message(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    (context.folder / "inbox.jsonl").write_bytes(b'{"id":"1","fr')
    Home(tmp_path / "home").send(make_message("a", "desk", "whole"))
    assert [m.content for m in read_inbox(context.folder)[0]] == ["whole"]


def test_a_recipient_needs_a_proper_name(tmp_path: Path) -> None:
    with pytest.raises(BadName):
        Home(tmp_path / "home").send(make_message("a", "../b", "c"))
    assert not (tmp_path / "home").exists()


def test_a_guard_that_is_never_released_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "PATIENCE", 0.05)
    home = Home(tmp_path / "home")
    home.send(make_message("a", "b", "c"))
    fd = os.open(tmp_path / "home/contexts/b/.inbox.lock", os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with pytest.raises(ContextHeld, match=r"\.inbox\.lock"):
            home.send(make_message("a", "b", "d"))
        with pytest.raises(ContextHeld):
            with home.open("b").inbox():
                pass
    finally:
        os.close(fd)
    assert len(read_inbox(home.open("b").folder)[0]) == 1


_SEND = """
import sys
from pathlib import Path
from cru.core.conversations.home import Home
from cru.core.conversations.inbox import make_message
home = Home(Path(sys.argv[1]))
sys.stdin.readline()
for n in range(100):
    home.send(make_message(sys.argv[2], "busy", f"{sys.argv[2]}-{n}"))
"""


@pytest.mark.slow
def test_eight_processes_lose_no_message_while_a_reader_empties_the_inbox(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    context = home.open("busy")
    children = [start(_SEND, tmp_path / "home", n) for n in range(8)]
    for child in children:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    got: list[str] = []
    while any(child.poll() is None for child in children):
        with context.inbox() as messages:
            got += [m.content for m in messages]
    for child in children:
        _, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == 0, err
    with context.inbox() as messages:
        got += [m.content for m in messages]
    assert sorted(got) == sorted(f"{c}-{n}" for c in range(8) for n in range(100))
    for c in range(8):
        assert [g for g in got if g.startswith(f"{c}-")] == [f"{c}-{n}" for n in range(100)]
