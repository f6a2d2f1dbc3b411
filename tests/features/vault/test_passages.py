"""A note as passages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cru.features.vault.parse import parse_note
from cru.features.vault.semantic.passages import MOST_PASSAGES, PASSAGE_BYTES, Passage, plain_text, split_note

LONG = "A sentence of some words. " * 100


def split(text: str, path: str = "Plan.md") -> list[Passage]:
    data = text.encode()
    return split_note(parse_note(path, data), data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["Plan"]),
        ("---\nstatus: open\n---\n", ["Plan"]),
        ("---\ntitle: Other\n---\nText.\n", ["Other. Text."]),
        ("First.\n\nSecond.\n", ["Plan. First. Second."]),
        ("# Plan\nText.\n", ["Plan. Text."]),
        ("Before.\n# One\nText.\n## Two\n- a\n- b\n", ["Plan. Before.", "Plan. One. Text.", "Plan. Two. a b"]),
        ("# Empty\n# Full\nText.\n", ["Plan. Full. Text."]),
        (
            "See [[Note|that one]], [[Other#Part]] and [page](https://example.com/x).\n",
            ["Plan. See that one, Other Part and page."],
        ),
        ("**bold** `code` https://example.com/path <b>x</b>\n", ["Plan. bold code b x /b"]),
        ("- [ ] do it\n- [x] done\n", ["Plan. do it done"]),
    ],
)
def test_what_is_embedded(text: str, expected: list[str]) -> None:
    assert [passage.text for passage in split(text)] == expected


def test_a_long_paragraph_is_divided_behind_sentences() -> None:
    passages = split(LONG)
    assert len(passages) > 2 and all(passage.text.endswith("words.") for passage in passages)


def test_of_long_code_the_beginning_counts() -> None:
    [passage] = split("```\n" + "word " * 1000 + "\n```\n")
    assert len(passage.text) < 500


def test_a_note_has_so_many_passages_at_most() -> None:
    assert len(split(f"{LONG}\n\n" * 2 * MOST_PASSAGES)) == MOST_PASSAGES


def test_data_and_addresses_are_no_words() -> None:
    assert plain_text("see ![](data:image/png;base64,AAAA) http://x.y/z " + "QUJD" * 30) == "see"


@given(
    st.lists(
        st.sampled_from(
            ["# Head\n", "Word word. ", "ü" * 300, "\n\n", "- item\n", "> quote\n", "a" * 900, "```\nx\n```\n", LONG]
        )
    )
)
def test_passages_are_parts_of_the_note_in_its_order(parts: list[str]) -> None:
    text = "".join(parts)
    passages = split(text)
    at = 0
    for passage in passages:
        assert at <= passage.start <= passage.end <= len(text.encode())
        assert passage.end - passage.start <= 3 * PASSAGE_BYTES
        text.encode()[passage.start : passage.end].decode()  # no character is divided
        at = passage.end
