"""Patterns on identifiers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.waiting import ends_soon

from cru.core.base.files.glob import BadGlob, compile_identifier_glob, matches_identifier

CASES = [
    # pattern, identifier, fits
    ("", "anything/at all", True),
    ("", None, True),
    ("*", None, True),
    ("*", "", True),
    ("a*", None, False),
    ("**", None, False),
    ("bash", "bash", True),
    ("bash", "Bash", False),
    ("bash", "bash_output", False),
    ("bash*", "bash_output", True),
    ("*", "bash", True),
    ("*", "notes/a.md", False),
    ("*.md", "a.md", True),
    ("*.md", "notes/a.md", False),
    ("**.md", "notes/a.md", True),
    ("**/*.md", "a.md", True),
    ("**/*.md", "x/y/a.md", True),
    ("notes/**", "notes/x/a.md", True),
    ("notes/**", "notes", False),
    ("a/**/b", "a/b", True),
    ("a/**/b", "a/x/y/b", True),
    ("?at", "cat", True),
    ("?at", "/at", False),
    ("??", "a", False),
    ("[bc]at", "cat", True),
    ("[a-c]at", "dat", False),
    ("[!bc]at", "cat", False),
    ("[^bc]at", "rat", True),
    ("[!]", "!", True),
    ("[[]x", "[x", True),
    ("[a&&b]", "&", True),
    ("[.]", "x", False),
    ("[", "[", True),
    ("{read,write}", "write", True),
    ("{read,write}", "readwrite", False),
    ("{read,w*}_file", "write_file", True),
    ("{a,{b,c}d}", "cd", True),
    ("{a,}b", "b", True),
    ("a,b", "a,b", True),
    ("}", "}", True),
    ("a.b", "axb", False),
    ("a+(b)", "a+(b)", True),
    (r"\*", "*", True),
    (r"\*", "x", False),
    (r"\{a", "{a", True),
    ("my:event", "my:event", True),
    ("a*", "a\nb", True),
]


@pytest.mark.parametrize(("pattern", "identifier", "fits"), CASES)
def test_a_pattern_fits_the_whole_identifier(pattern: str, identifier: str | None, fits: bool) -> None:
    assert matches_identifier(pattern, identifier) is fits


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_an_escaped_text_fits_itself_and_no_pattern_breaks_the_matcher(text: str) -> None:
    literal = re.sub(r"([*?\[\]{}\\])", r"\\\1", text)
    assert matches_identifier(literal, text)
    try:
        compile_identifier_glob(text)
    except BadGlob as error:
        assert text in error.message


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*a" * 12 + "b", "a" * 4096, False),
        ("**a" * 12 + "b", "a" * 4096, False),
        ("**/*a" * 8 + "b", "a/" * 2048, False),
        ("{*a,**a}" * 8 + "b", "a" * 1024, False),
        ("{*,{*,{*,a}*}*}*b", "a" * 1024 + "b", True),
        ("{" * 60 + "a" + ",b}" * 60, "a", True),
        ("*a" * 12, "a" * 4096, True),
    ],
)
def test_many_stars_take_no_more_time_than_few(pattern: str, text: str, fits: bool) -> None:
    with ends_soon():
        assert matches_identifier(pattern, text) is fits


def test_braces_are_nested_64_deep_at_most() -> None:
    assert matches_identifier("{" * 63 + "a" + "}" * 63, "a")
    with pytest.raises(BadGlob, match="nested more than 64"):
        compile_identifier_glob("{" * 5000 + "a" + "}" * 5000)
