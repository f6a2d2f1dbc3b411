"""The end of a log is read from there."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.conversations.support import again, fresh, said, texts

from cru.core.base.values.messages import Entry
from cru.core.conversations.store import FileContext
from cru.core.turn.history import History, project, visible_at

KINDS = ("message",)


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []
    for name in ("pread", "read"):
        real = getattr(os, name)

        def counted(*args: int, real: object = real) -> bytes:
            data: bytes = real(*args)  # type: ignore[operator]
            sizes.append(len(data))
            return data

        monkeypatch.setattr(os, name, counted)
    return sizes


def test_the_last_entries_of_a_long_log_cost_a_few_kilobytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(tmp_path)
    context.append(*(said(f"{number} {'x' * 2000}") for number in range(3000)))
    sizes = count_reads(monkeypatch)
    tail = again(context).tail(2, KINDS)
    assert [text.split()[0] for text in texts(tail.entries)] == ["2998", "2999"] and tail.problems == []
    assert sum(sizes) < 20_000, "of 6 MB"
    sizes.clear()
    entries = again(context).entries_between(context.entries()[-3].id, "")
    assert texts(entries) == texts(context.entries()[-3:]) and sum(sizes) < 20_000


def test_other_kinds_among_them_come_along_and_a_short_log_is_read_whole(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(
        said("a"), said("b"), said("c", entry_type="leg_ended"), said("d"), said("e", entry_type="leg_ended")
    )
    assert texts(context.tail(2, KINDS).entries) == ["b", "c", "d", "e"]
    assert texts(context.tail(9, KINDS).entries) == ["a", "b", "c", "d", "e"]
    assert fresh(tmp_path, "empty").tail(3, KINDS).entries == []


def test_broken_lines_have_the_numbers_that_a_reader_of_everything_gives_them(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(said("a"))
    path = context.folder / "context.jsonl"
    for line in (b"nonsense\n", b"\n", b'{"torn'):
        with path.open("ab") as file:
            file.write(line)
        assert again(context).tail(9, KINDS).problems == [*again(context).refresh()]
    context.append(said("b"))
    assert texts(again(context).tail(9, KINDS).entries) == ["a", "b"]
    assert [problem.line for problem in again(context).tail(9, KINDS).problems] == [2, 4]
    assert again(context).tail(1, KINDS).problems == [], "it did not get so far"


@pytest.mark.parametrize("is_rotated", [False, True])
def test_between_two_entries_is_what_everything_has_after_an_anchor_too(tmp_path: Path, is_rotated: bool) -> None:
    context = fresh(tmp_path)
    context.append(said("a"), said("b"), said("c"))
    kept = context.entries()[1]
    with context.lock("test"):
        context.anchor("compaction", "a summary", [kept.id])
        if is_rotated:
            context.rotate()
    context.append(said("d"), said("e"))
    whole = list(context.everything())
    assert list(context.streamed()) == whole
    for begin, entry in enumerate(whole):
        assert context.entries_between(entry.id, "") == whole[begin:]
        for end in range(begin + 1, len(whole)):
            assert context.entries_between(entry.id, whole[end].id) == whole[begin:end]
    assert context.entries_between("nothing", "") == context.entries_between("nothing", whole[-1].id) == []


def peak_beyond_result(work: Callable[[], object]) -> int:
    """Bytes that were taken at most, beyond what is held in the end."""
    tracemalloc.start()
    try:
        result = work()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result is not None
    return peak - held


def test_a_long_log_is_read_in_pieces(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(*(said(f"{number} {'x' * 2000}") for number in range(4000)))
    size = (context.folder / "context.jsonl").stat().st_size

    def read() -> list[Entry]:
        return again(context).visible()

    assert len(read()) == 4000
    assert peak_beyond_result(read) < size / 4


def held(work: Callable[[], object]) -> int:
    """Bytes that the result of it takes."""
    tracemalloc.start()
    try:
        result = work()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert result is not None
    return taken


def test_what_an_anchor_left_behind_takes_no_memory(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(*(said(f"{number} {'x' * 2000}") for number in range(2000)))
    whole = held(lambda: project_of(again(context)))
    context.anchor("compaction", "so far", [e.id for e in context.visible()[-20:]])
    context.append(said("and on"))
    assert len(texts(again(context).visible())) == 21 and len(again(context).logged()) == 2002
    assert held(lambda: project_of(again(context))) < whole / 20


def test_the_texts_of_a_conversation_are_held_once(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(*(said(f"{number} {'x' * 20000}") for number in range(200)))
    size = (context.folder / "context.jsonl").stat().st_size
    assert held(lambda: project_of(again(context))) < 1.2 * size


def project_of(context: FileContext) -> tuple[FileContext, History]:
    """A conversation as a session holds it."""
    return context, project(context.entries(), context.visible())


def test_what_lies_long_back_is_found_without_holding_the_rest(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    entries = [said(f"{number} {'x' * 2000}") for number in range(4000)]
    for at in range(0, 4000, 100):
        context.append(*entries[at : at + 100])
        with context.lock("test"):
            context.anchor("compaction", "so far", [entries[at + 99].id])
            if at == 2000:
                context.rotate()
    size = sum(path.stat().st_size for path in context.folder.glob("*.jsonl"))
    for first in (150, 3150):  # in the archive, in the log

        def read(first: int = first) -> list[Entry]:
            return again(context).entries_between(entries[first].id, entries[first + 10].id)

        assert texts(read()) == texts(entries[first : first + 10])
        assert peak_beyond_result(read) < size / 4
        upto = visible_at(again(context).streamed(), entries[first].id)
        assert len(upto) == 52 and upto[-1] == entries[first]

        def rebuilt(first: int = first) -> list[Entry]:
            return visible_at(again(context).streamed(), entries[first].id)

        assert peak_beyond_result(rebuilt) < size / 4
