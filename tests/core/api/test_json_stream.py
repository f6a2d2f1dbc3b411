"""JSON texts, cut between documents however the bytes come."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cru.features.formats.json_stream import JsonSplitter, JsonText

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(['"', "\\", "]}", '\\"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def cut(data: bytes, sizes: list[int]) -> list[JsonText]:
    splitter = JsonSplitter()
    found: list[JsonText] = []
    for size in sizes:
        found += splitter.feed(data[:size])
        data = data[size:]
    return [*found, *splitter.feed(data), *splitter.end()]


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(VALUES, max_size=5),
    st.sampled_from([" ", "\n", "\r\n\n"]),
    st.sampled_from([None, 1]),
    st.lists(st.integers(0, 6), max_size=40),
)
def test_documents_come_out_as_they_went_in(values: list[Any], gap: str, indent: int | None, sizes: list[int]) -> None:
    texts = [json.dumps(value, indent=indent, ensure_ascii=False) for value in values]
    text = gap + gap.join(texts) + gap
    found = cut(text.encode(), sizes)
    assert [document.data.decode() for document in found] == texts
    start = 0
    for document in found:
        start = text.index(document.data.decode(), start)
        assert document.line == text.count("\n", 0, start) + 1
        assert document.column == start - text.rfind("\n", 0, start)
        start += len(document.data.decode())


@pytest.mark.parametrize(
    ("data", "documents"),
    [
        (b"", []),
        (b" \n ", []),
        (b"\xef\xbb\xbf{}", [b"{}"]),
        (b"[1][2]3", [b"[1]", b"[2]", b"3"]),
        (b'"a""b"', [b'"a"', b'"b"']),
        (b"[1, 2", [b"[1, 2"]),
        (b'[1, "x', [b'[1, "x']),
        (b'"x', [b'"x']),
        (b"} 1", [b"}", b"1"]),
        (b"{]{}", [b"{]", b"{}"]),
        (b'{"a": "\\\\"} 1', [b'{"a": "\\\\"}', b"1"]),
    ],
)
def test_what_is_no_document_comes_out_too(data: bytes, documents: list[bytes]) -> None:
    for sizes in ([], [1] * len(data)):
        assert [document.data for document in cut(data, sizes)] == documents


def test_a_place_counts_lines_and_characters() -> None:
    text = JsonText('{"é": 1,\n "ü" 2}'.encode(), line=3, column=5)
    assert text.place(0) == (3, 5)
    assert text.place(4) == (3, 8)
    assert text.place(len('{"é": 1,\n "ü" '.encode())) == (4, 6)
