"""The end of a log is read from there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.contexts.support import again, fresh, said, texts

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
    entries = again(context).entries_from(context.entries()[-3].id)
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


def test_from_an_entry_on_is_what_everything_has_after_a_rotation_too(tmp_path: Path) -> None:
    context = fresh(tmp_path)
    context.append(said("a"), said("b"), said("c"))
    kept = context.entries()[1]
    with context.lock("test"):
        context.anchor("compaction", "a summary", [kept.id])
        context.rotate()
    context.append(said("d"), said("e"))
    whole = list(context.everything())
    for number, entry in enumerate(whole):
        found = context.entries_from(entry.id)
        assert found in (whole[number:], whole)
    assert context.entries_from(whole[-1].id) == whole[-1:]
    assert context.entries_from("nothing") == whole
