from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from tests.core.conversations.support import again, fresh, said, start, texts

from cru.core.base.values.messages import Entry
from cru.core.conversations import ContextError, LogLost
from cru.core.conversations.entries import encode


def test_what_was_appended_is_there_for_another_process(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(said("one"), said("two"))
    context.append()
    assert texts(context.entries()) == ["one", "two"]
    assert again(context).entries() == context.entries()
    assert stat.S_IMODE((context.folder / "context.jsonl").stat().st_mode) == 0o600


def test_a_reader_sees_what_another_process_appends_without_reading_again(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    other = again(context)
    assert other.entries() == []
    for number in range(3):
        context.append(said(str(number)))
        assert other.refresh() == ()
        assert len(other.entries()) == number + 1
    other.append(said("mine"))
    context.append(said("yours"))
    assert texts(context.entries()) == ["0", "1", "2", "mine", "yours"]


def test_several_entries_are_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(tmp_path)
    writes: list[int] = []
    real = os.write

    def counting(fd: int, data: bytes) -> int:
        writes.append(len(data))
        return real(fd, data)

    monkeypatch.setattr(os, "write", counting)
    context.append(said("one"), said("two"), said("three"))
    assert len(writes) == 1


def test_a_torn_last_line_is_reported_left_and_never_swallows_the_next_entry(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(said("whole"))
    log = context.folder / "context.jsonl"
    torn = encode(said("torn"))[:30]
    before = log.read_bytes() + torn
    log.write_bytes(before)
    reader = again(context)
    problems = reader.refresh()
    assert [(p.file, p.line) for p in problems] == [("context.jsonl", 2)] and "incomplete" in problems[0].message
    assert reader.refresh() == ()
    reader.append(said("next"))
    assert log.read_bytes().startswith(before + b"\n{")
    assert texts(reader.entries()) == ["whole", "next"]
    assert reader.refresh() == (), "the same line is not reported twice"
    later = again(context)
    assert [p.line for p in later.refresh()] == [2]
    assert texts(later.entries()) == ["whole", "next"]


def test_a_line_that_grows_between_two_looks_is_no_problem(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(said("first"))
    line = encode(said("second"))
    with open(context.folder / "context.jsonl", "ab", buffering=0) as file:
        for part in (line[:20], line[20:50], line[50:]):
            file.write(part)
            assert context.refresh() == ()
    assert texts(context.entries()) == ["first", "second"]


def test_a_last_entry_without_newline_counts(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    (context.folder / "context.jsonl").write_bytes(encode(said("a")) + encode(said("b"))[:-1])
    assert context.refresh() == ()
    assert texts(context.entries()) == ["a", "b"]
    context.append(said("c"))
    assert texts(again(context).entries()) == texts(context.entries()) == ["a", "b", "c"]
    (context.folder / "context.jsonl").open("ab").close()
    assert context.refresh() == ()


def test_malformed_and_blank_lines_are_skipped_with_their_numbers(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    data = b"\n" + encode(said("a")) + b"not json\n" + b"\xff\xfe\n" + b"  \r\n" + encode(said("b"))
    (context.folder / "context.jsonl").write_bytes(data)
    assert [p.line for p in context.refresh()] == [3, 4]
    context.append(said("c"))
    with open(context.folder / "context.jsonl", "ab") as file:
        file.write(b"{}\n")
    assert [p.line for p in context.refresh()] == [8]
    assert texts(context.entries()) == ["a", "b", "c"]


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(said("old"), said("older"))
    log = context.folder / "context.jsonl"
    (tmp_path / "new").write_bytes(encode(said("new")))
    (tmp_path / "new").replace(log)
    context.refresh()
    assert texts(context.entries()) == ["new"]
    context.append(said("more"))
    assert texts(again(context).entries()) == ["new", "more"]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_file_rewritten_in_place_is_read_anew(tmp_path: Path, count: int) -> None:
    context = fresh(tmp_path)
    context.append(said("old one"), said("old two, which is longer"))
    (context.folder / "context.jsonl").write_bytes(b"".join(encode(said(f"new {n}")) for n in range(count)))
    context.refresh()
    assert texts(context.entries()) == [f"new {n}" for n in range(count)]


def test_a_file_that_vanished_leaves_an_empty_log(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(said("gone"))
    (context.folder / "context.jsonl").unlink()
    assert context.refresh() == ()
    assert context.entries() == []
    context.append(said("back"))
    assert texts(again(context).entries()) == ["back"]


def test_text_that_json_cannot_hold_is_the_same_in_memory_and_on_disk(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(said("bad \udcff byte"))
    assert again(context).entries() == context.entries()
    assert texts(context.entries()) == ["bad ? byte"]


def test_syncing_in_a_thread_does_not_disturb_appending(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.sync()
    failures: list[Exception] = []

    def sync() -> None:
        try:
            for _ in range(50):
                context.sync()
        except (OSError, ContextError) as error:
            failures.append(error)

    thread = threading.Thread(target=sync)
    thread.start()
    for number in range(200):
        context.append(said(str(number)))
        if number % 20 == 0:
            context.close()
    thread.join()
    assert failures == []
    assert len(again(context).entries()) == 200


_LOOP = """
import sys
from pathlib import Path
from cru.core.conversations.store import FileContext
from cru.core.base.values.messages import Entry
context = FileContext(Path(sys.argv[1]))
n = 0
while True:
    context.append(Entry(id=f"a{n}", timestamp=n, content="x" * (n % 7) * 900), Entry(id=f"b{n}", timestamp=n))
    print(n, flush=True)
    n += 1
"""


def test_a_killed_writer_loses_nothing_that_it_acknowledged_while_another_reads(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    with start(_LOOP, context.folder) as child:
        assert child.stdout
        last = -1
        while last < 300:
            last = int(child.stdout.readline())
            context.refresh()
            assert [e.id for e in context.entries()[2 * last : 2 * last + 2]] == [f"a{last}", f"b{last}"]
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()
        acknowledged = int(rest[-1]) if rest else last
    context.refresh()
    ids = [e.id for e in context.entries()]
    assert ids[: 2 * acknowledged + 2] == [f"{x}{n}" for n in range(acknowledged + 1) for x in "ab"]
    context.append(said("after"))
    assert again(context).entries()[-1].content == "after"
    assert child.returncode == -signal.SIGKILL


def test_a_deleted_folder_is_a_clear_error(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    subprocess.run(["rm", "-r", context.folder], check=True)
    with pytest.raises(ContextError, match="cannot write") as caught:
        context.append(Entry("a", 1))
    assert "deleted or renamed" in caught.value.hint


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_log_that_is_deleted_or_replaced_in_a_turn_is_rescued_to_the_byte(tmp_path: Path, is_replaced: bool) -> None:
    """Also what is not held in memory: lines behind an anchor, and such as are no entries."""
    context = fresh(tmp_path)
    log = context.folder / "context.jsonl"
    context.append(said("long ago"))
    with log.open("ab") as file:
        file.write(b"no entry\n")
    with context.lock("test"):
        context.refresh()
        context.anchor("archive", "", [])
        context.append(said("now"))
        before = log.read_bytes()
        log.unlink()
        if is_replaced:
            log.touch()
        with pytest.raises(LogLost):
            context.append(said("more"))
        [rescued] = context.folder.glob("context.jsonl.rescued-*")
        assert rescued.read_bytes().startswith(before)
        assert rescued.read_bytes()[len(before) :].count(b"\n") == 1 and b"more" in rescued.read_bytes()
