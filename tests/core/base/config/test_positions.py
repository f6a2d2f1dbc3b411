"""Positions of keys in TOML text."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cru.core.base.config.positions import join_key, line_of, positions, split_key

TEXT = '''\
# model = "commented"
model = "a = b # no comment"   # a comment with "quotes
"api_key" = 'x'
note = """
model = "inside a text"
[not.a.header]
"""
stop = [
  "[x]", # one
  "y",
]

[api]
temperature = 0.5
reasoning = { effort = "low" }
reasoning_more.deep.key = 1

[models."a.b/c:free"]
context_window = 10
[models.'single']
api = { seed = 1 }

[[lists]]
one = 1
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("model", 2),
        ("api_key", 3),
        ("note", 4),
        ("stop", 8),
        ("api", 13),
        ("api.temperature", 14),
        ("api.reasoning", 15),
        ("api.reasoning.effort", 15),
        ("api.reasoning_more.deep.key", 16),
        ("api.reasoning_more", 16),
        ('models."a.b/c:free"', 18),
        ('models."a.b/c:free".context_window', 19),
        ("models.single.api.seed", 21),
        ("models", 18),
        ("lists.one", 24),
        ("api.missing", 13),
        ("missing", 0),
    ],
)
def test_a_key_is_found_where_it_stands(key: str, line: int) -> None:
    assert tomllib.loads(TEXT)
    assert line_of(TEXT, key) == line


def test_crlf_and_a_byte_order_mark_do_not_move_lines() -> None:
    assert line_of("a = 1\r\n\r\nb = 2\r\n", "b") == 3


def test_keys_survive_splitting_and_joining() -> None:
    for path in (("a",), ("a", "b"), ("a.b", 'c"d'), ("with space", "ä", "x\\y"), ("-", "_")):
        assert split_key(join_key(path)) == path


NAMES = st.text(st.sampled_from('ab-_.ä "#]=\\'), min_size=1, max_size=4).filter(lambda name: name.strip() == name)
VALUES = st.sampled_from(["1", '"x # ["', "'''a\n b = 1\n'''", "[\n 1, # ]\n 2 ]", "{ q = 1 }", '"""\n"quoted" \\""""'])


@pytest.mark.slow
@given(st.lists(st.tuples(NAMES, VALUES), unique_by=lambda pair: pair[0], max_size=5))
def test_every_key_of_valid_toml_is_found_on_its_line(pairs: list[tuple[str, str]]) -> None:
    text, expected = "", {}
    for name, value in pairs:
        text += "\n# x = 1\n"
        expected[(name,)] = text.count("\n") + 1
        text += f"{join_key((name,))} = {value}"
    data: dict[str, Any] = tomllib.loads(text)
    assert {(name,) for name in data} == set(expected)
    assert dict(positions(text)) == expected
