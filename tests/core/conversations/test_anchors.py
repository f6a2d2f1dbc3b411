from __future__ import annotations

import os
import signal
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.conversations.support import again, fresh, said, start, texts
from tests.kit.waiting import PATIENCE

from cru.core.base.values.messages import Entry
from cru.core.conversations import ContextError
from cru.core.conversations.store import FileContext


def filled(tmp_path: Path) -> FileContext:
    context = fresh(tmp_path)
    context.append(*(said(key, key) for key in "abcde"))
    return context


def test_an_anchor_leaves_what_it_keeps_in_log_order_and_what_follows(tmp_path: Path) -> None:
    context = filled(tmp_path)
    anchor = context.anchor("compaction", "they talked", ["d", "b", "unknown"])
    context.append(said("f", "f"))
    for view in (context, again(context)):
        assert texts(view.visible()) == ["b", "d", "f"]
        assert view.summary() == "they talked"
        assert len(view.logged()) == 7
    assert (anchor.entry_type, anchor.from_, anchor.role) == ("anchor", "system", "system")
    assert anchor.metadata == {"kind": "compaction", "keep": ["d", "b", "unknown"], "version": 1}


def test_a_second_anchor_may_keep_what_the_first_kept_but_brings_nothing_back(tmp_path: Path) -> None:
    context = filled(tmp_path)
    context.anchor("compaction", "one", ["a", "b"])
    context.append(said("f", "f"))
    context.anchor("compaction", "two", ["b", "c", "f"])
    assert texts(context.visible()) == texts(again(context).visible()) == ["b", "f"]
    context.anchor("archive", "", [])
    assert context.visible() == [] and context.summary() == ""


def test_summary_md_counts_until_there_is_an_anchor(tmp_path: Path) -> None:
    context = filled(tmp_path)
    assert context.summary() == ""
    context.write_text("summary.md", "from before")
    assert context.summary() == "from before"
    context.anchor("archive", "", [])
    assert context.summary() == ""


def test_rotation_moves_what_no_anchor_keeps_and_changes_nothing_that_counts(tmp_path: Path) -> None:
    context = filled(tmp_path)
    context.anchor("compaction", "s", ["b"])
    context.append(said("f", "f"))
    reader = again(context)
    before, every = list(context.visible()), list(context.everything())
    with context.lock("test"):
        assert context.rotate() == 4
        assert context.rotate() == 0
    reader.refresh()
    for view in (context, reader, again(context)):
        assert view.visible() == before
        assert texts(view.entries()) == ["b", "s", "f"]
        assert texts(list(view.everything())) == texts(every), "in the order in which it was said"
    context.append(said("g"))
    assert texts(again(context).visible()) == ["b", "f", "g"]


def test_rotation_carries_broken_lines_along_byte_for_byte(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(said("a"))
    log = context.folder / "context.jsonl"
    with log.open("ab") as file:
        file.write(b"broken \xff line\r\n")
    context.anchor("archive", "", [])
    with log.open("ab") as file:
        file.write(b"later broken\n{torn")
    with context.lock("test"):
        assert context.rotate() == 2
    assert (context.folder / "transcript_archive.jsonl").read_bytes().endswith(b"broken \xff line\r\n")
    assert log.read_bytes().endswith(b"\nlater broken\n{torn")
    context.append(said("b"))
    assert texts(again(context).visible()) == ["b"]


def test_only_the_holder_of_the_lock_may_rotate(tmp_path: Path) -> None:
    context = filled(tmp_path)
    context.anchor("archive", "", [])
    with pytest.raises(ContextError, match="lock"):
        context.rotate()


_KILLED = """
import os, sys
from pathlib import Path
from cru.core.conversations import rotation
from cru.core.conversations.store import FileContext
rotation.replace_file = lambda *_, **__: os.kill(os.getpid(), 9)
context = FileContext(Path(sys.argv[1]))
with context.lock("test"):
    context.rotate()
"""


def test_a_rotation_killed_between_its_steps_loses_and_doubles_nothing(tmp_path: Path) -> None:
    context = filled(tmp_path)
    context.anchor("compaction", "s", ["b"])
    expected = [e.id for e in context.everything()]
    with start(_KILLED, context.folder) as child:
        child.communicate(timeout=PATIENCE)
    assert child.returncode == -signal.SIGKILL
    archive = context.folder / "transcript_archive.jsonl"
    assert archive.read_bytes().count(b"\n") == 5
    assert [e.id for e in again(context).everything()] == expected
    with context.lock("test"):
        assert context.rotate() == 4
    assert archive.read_bytes().count(b"\n") == 5, "what was archived already is not archived again"
    assert [e.id for e in again(context).everything()] == expected


def test_an_archive_that_was_killed_in_mid_write_is_completed(tmp_path: Path) -> None:
    context = filled(tmp_path)
    context.anchor("archive", "", [])
    (context.folder / "transcript_archive.jsonl").write_bytes(b'{"id":"a","times')
    with context.lock("test"):
        context.rotate()
    assert texts(list(again(context).everything()))[:5] == list("abcde")


Step = tuple[str, Any]
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("anchor"), st.lists(st.integers(0, 30), max_size=6)),
        st.tuples(st.just("rotate"), st.none()),
        st.tuples(st.just("reopen"), st.none()),
        st.tuples(st.just("other"), st.integers(1, 2)),
        st.tuples(st.just("tear"), st.binary(min_size=1, max_size=9).map(lambda b: b"{" + b)),
    ),
    max_size=25,
)


@pytest.mark.slow
@given(steps)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_sequence_of_operations_shows_what_a_simple_model_says(sequence: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        play(Path(folder), sequence)


def play(folder: Path, sequence: list[Step]) -> None:
    context = FileContext(folder)
    visible: list[str] = []
    every: list[str] = []
    count = 0
    for step, value in sequence:
        if step in ("append", "other"):
            ids = [f"e{count + n}" for n in range(value)]
            count += value
            with closing(context if step == "append" else FileContext(folder)) as writer:
                writer.append(*(Entry(i, 1) for i in ids))
            visible += ids
            every += ids
        elif step == "anchor":
            keep = [f"e{n}" for n in value]
            every.append(context.anchor("compaction", "s", keep).id)
            visible = [i for i in visible if i in keep]
        elif step == "tear":
            with open(folder / "context.jsonl", "ab") as file:
                file.write(value)
        else:
            context = change(context, step)
        context.refresh()
        assert [e.id for e in context.visible()] == visible
        assert [e.id for e in context.everything()] == every
    context.close()


def change(context: FileContext, step: str) -> FileContext:
    if step == "reopen":
        context.close()
        return FileContext(context.folder)
    with context.lock("test"):
        context.rotate()
    return context


def test_no_temporary_file_is_left_behind(tmp_path: Path) -> None:
    context = filled(tmp_path)
    context.anchor("archive", "", [])
    with context.lock("test"):
        context.rotate()
    context.write_text("todos.md", "x")
    assert sorted(os.listdir(context.folder)) == [
        "context.jsonl",
        "context_meta.json",
        "todos.md",
        "transcript_archive.jsonl",
    ]
