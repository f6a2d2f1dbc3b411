from __future__ import annotations

import uuid

import msgspec
import pytest

from cru.core.base.values.messages import Entry
from cru.core.conversations.entries import (
    LogProblem,
    anchor_keeps,
    decode,
    decode_lines,
    encode,
    new_id,
    replace_surrogates,
    role_of,
)


def test_an_entry_comes_back_as_it_was() -> None:
    entry = Entry("i", 7, "bot", "read", '{"a":1}\nb', "tool_call", "", "c1", {"model": "m"}, True)
    line = encode(entry)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode(line) == entry


def test_every_field_that_chibi_requires_is_written() -> None:
    raw = msgspec.json.decode(encode(Entry("i", 7)))
    assert raw == {"id": "i", "timestamp": 7, "from": "", "to": "", "content": "", "entry_type": "message"}


def test_unknown_types_are_kept_and_unknown_keys_are_ignored() -> None:
    line = b'{"id":"a","timestamp":1,"from":"x","to":"y","content":"z","entry_type":"control_transfer","colour":[1]}'
    assert decode(line) == Entry("a", 1, "x", "y", "z", "control_transfer")


def test_null_stands_for_a_missing_value() -> None:
    assert decode(b'{"id":"a","timestamp":1,"metadata":null,"role":null}') == Entry("a", 1)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"a","timest',
        b"[]",
        b"3",
        b'{"timestamp":1}',
        b'{"id":"a","timestamp":1,"content":"\xff"}',
        b"[" * 5000,
        b"\0\0",
    ],
)
def test_a_line_that_is_no_entry_is_a_problem_with_its_number(line: bytes) -> None:
    good = encode(Entry("ok", 1))
    entries, problems = decode_lines(good + b"\n \n" + line + b"\n" + good, 10, "some.jsonl")
    assert [e.id for e in entries] == ["ok", "ok"]
    assert [(p.file, p.line) for p in problems] == [("some.jsonl", 13)]
    assert problems[0].message


def test_ids_are_version_4_uuids() -> None:
    ids = {new_id() for _ in range(50)}
    assert len(ids) == 50
    assert all(uuid.UUID(i).version == 4 and str(uuid.UUID(i)) == i for i in ids)
    assert all(uuid.UUID(i).variant == uuid.RFC_4122 for i in ids)


def test_text_that_no_file_can_hold_is_mended_everywhere() -> None:
    entry = Entry("i", 1, content="a\udc80", metadata={"k\udc80": ["\udc81"]})
    assert replace_surrogates(entry) == Entry("i", 1, content="a?", metadata={"k?": ["?"]})


def test_roles_follow_the_field_and_without_it_the_recipient() -> None:
    assert role_of(Entry("i", 1, "w", "user")) == "assistant"
    assert role_of(Entry("i", 1, "ann", "w")) == "user"
    assert role_of(Entry("i", 1, "w", "ann", role="agent")) == "assistant"


def test_which_entries_are_anchors() -> None:
    assert anchor_keeps(Entry("i", 1, entry_type="anchor", metadata={"keep": ["a"]})) == {"a"}
    assert anchor_keeps(Entry("i", 1, entry_type="anchor", metadata={"keep": "nonsense"})) == ()
    assert anchor_keeps(Entry("i", 1, entry_type="compaction", metadata={"summary": "s"})) == ()
    assert anchor_keeps(Entry("i", 1, entry_type="compaction")) is None
    assert anchor_keeps(Entry("i", 1, entry_type="context_created")) == ()
    assert anchor_keeps(Entry("i", 1)) is None


@pytest.mark.parametrize(("line", "text"), [(3, "/c/a.jsonl:3: torn"), (0, "/c/a.jsonl: torn")])
def test_a_problem_of_a_whole_file_has_no_line(line: int, text: str) -> None:
    assert LogProblem("a.jsonl", line, "torn").text("/c") == text
