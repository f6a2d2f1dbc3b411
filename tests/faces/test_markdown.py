"""A terminal shows all that the model says: Markdown changes how a text looks, and takes no word of it away."""

from __future__ import annotations

import io
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit import HomeDir, pty

from cru.faces.cli.terminal.markdown_stream import MarkdownStream


def shown(text: str, width: int = 80, piece: int = 0) -> str:
    """What stands on a terminal of that width; the text comes in pieces of so many characters (0 = at once)."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, color_system=None)
    markdown: Any = MarkdownStream(lambda: None)
    markdown._console = console
    step = piece or max(1, len(text))
    for at in range(0, len(text), step):
        markdown.feed(text[at : at + step])
    markdown.flush()
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def bare(text: str) -> str:
    """Without white space: lines are broken anywhere."""
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize(
    "text",
    [
        "Use the <Button> component, List<String>",
        "Map<String, List<Int>>",
        "<promise>DONE</promise>",
        "so: <promise>DONE</promise>",
        '<a href="http://x/__init__.py">y</a>',
        "<xs:element>",
        "<https://example.org/__init__.py>",
        "<me@example.org>",
        "a <!-- remark --> b",
        "press <kbd>x</kbd>",
        "a<br>b<br/>c</p>",
        "&lt;Button&gt; &amp; &#60; &copy; &nbsp;",
        "[1]: http://example.org/a_b_c",
        "[^1]: footnote",
        '[label]: <http://example.org> "title"',
        "word[^1] and [text][ref]",
        "<?php echo 1; ?>",
        "<![CDATA[ x ]]>",
        "1 < 2 > 0 && a<b",
    ],
)
def test_what_stands_in_angle_brackets_is_shown_as_it_is(text: str) -> None:
    assert bare(text) in bare(shown(text))


def test_a_block_of_html_keeps_its_lines() -> None:
    text = "<config>\n  <name>a *b* c</name>\n    <x/>\n</config>"
    lines = [line.rstrip() for line in shown(text).splitlines()]
    assert lines == text.splitlines()


@pytest.mark.parametrize(
    "text", ["<!-- one\n\n# two\n\n* three *\n-->", "<pre>\n\n# a\n\n</pre>", "<script>\nif (a<b)\n\n`c`\n</script>"]
)
@pytest.mark.parametrize("piece", [0, 1])
def test_an_html_block_may_hold_blank_lines(text: str, piece: int) -> None:
    said = [line.strip() for line in shown(text, piece=piece).splitlines()]
    assert [line for line in said if line] == [line for line in text.splitlines() if line]


def test_links_and_images_show_where_they_lead() -> None:
    assert "docs (http://example.org/__a__/*b*)" in shown("[docs](http://example.org/__a__/*b*)")
    assert 'docs (x.md "The title")' in shown('[docs](x.md "The title")')
    assert "bold (http://b)" in shown("[**bold**](http://b)")
    assert "a picture (http://example.org/p.png)" in shown("![a picture](http://example.org/p.png)")
    assert "alt (p.png) (http://there)" in shown("[![alt](p.png)](http://there)")
    assert "http://ü.example/ä?q=ö" in shown("[x](http://ü.example/ä?q=ö)")
    assert "[x](javascript:alert)" in shown("[x](javascript:alert)")


def test_an_address_sends_nothing_to_the_terminal() -> None:
    said = shown("[x](http://a&#27;]52;c;&#x202e;b) [y](<http://\u202ea>)")
    assert "\x1b" not in said and "\u202e" not in said


def test_numbers_of_a_list_stand_as_they_were_written() -> None:
    said = [line.split() for line in shown("1. a\n1. b\n7. c").splitlines()]
    assert [words for words in said if words] == [["1", "a"], ["1", "b"], ["7", "c"]]


def test_the_language_of_a_block_of_code_is_shown() -> None:
    assert "python title=x.py" in shown("```python title=x.py\nprint(1)\n```")


def test_a_fence_in_a_longer_fence_ends_nothing() -> None:
    said = shown("````md\n```py\na = 1\n\n# b\n```\n````\n\nend", piece=1)
    assert "```py" in said and "# b" in said


def test_cells_beyond_the_head_of_a_table_are_shown() -> None:
    said = shown("| a | b |\n|---|---|\n| 1 | 2 | third |")
    assert "third" in said


def test_a_narrow_table_cuts_no_word() -> None:
    address = "http://example.org/" + "x" * 90
    said = shown(f"| name | where |\n|---|---|\n| one | {address} |", width=40)
    assert Counter(bare(said))["x"] >= 91 and "…" not in said


def test_more_columns_than_the_terminal_has() -> None:
    cells = [f"c{n}" for n in range(60)]
    row = "|" + "|".join(cells) + "|"
    said = bare(shown(f"{row}\n|{'---|' * 60}\n{row}"))
    assert all(said.count(cell) >= 2 for cell in cells[10:])


def test_lists_too_deep_for_the_terminal() -> None:
    text = "\n".join("  " * n + f"- level{n}" for n in range(40))
    said = bare(shown(text))
    assert all(f"level{n}" in said for n in range(40))


WORD = st.from_regex(r"[A-Za-z0-9]{1,7}", fullmatch=True)
INLINE = st.one_of(
    WORD,
    WORD.map(lambda w: f"<{w}>"),
    WORD.map(lambda w: f"</{w}>"),
    st.tuples(WORD, WORD).map(lambda p: f"{p[0]}<{p[1]}>"),
    st.tuples(WORD, WORD).map(lambda p: f'<{p[0]} class="{p[1]}">'),
    st.tuples(WORD, WORD).map(lambda p: f"[{p[0]}](http://{p[1]}.org/x_y_z)"),
    st.tuples(WORD, WORD, WORD).map(lambda p: f'[{p[0]}]({p[1]} "{p[2]}")'),
    st.tuples(WORD, WORD).map(lambda p: f"![{p[0]}]({p[1]}.png)"),
    st.tuples(WORD, WORD).map(lambda p: f"[{p[0]}][{p[1]}]"),
    WORD.map(lambda w: f"[^{w}]"),
    WORD.map(lambda w: f"<!-- {w} -->"),
    WORD.map(lambda w: f"<!--{w}"),
    WORD.map(lambda w: f"`{w}`"),
    WORD.map(lambda w: f"**{w}**"),
    WORD.map(lambda w: f"_{w}_"),
    WORD.map(lambda w: f"~~{w}~~"),
    WORD.map(lambda w: f"&{w};"),
    st.sampled_from(["&lt;", "&amp;", "&#60;", "<", ">", "&", "|", "*", "_", "`", "~", "[", "](", "<?x", "]]>", "\\"]),
)
LINE = st.lists(INLINE, min_size=1, max_size=5).map(" ".join)
PREFIX = st.sampled_from(
    [
        "",
        "",
        "",
        "# ",
        "### ",
        "> ",
        ">> ",
        "- ",
        "  - ",
        "    - ",
        "* ",
        "1. ",
        "2. ",
        "   3) ",
        "    ",
        "\t",
        "| ",
        "+ > ",
    ]
)
ROW = st.lists(LINE, min_size=1, max_size=4).map(lambda cells: f"| {' | '.join(cells)} |")
BLOCK = st.one_of(
    st.lists(st.tuples(PREFIX, LINE).map("".join), min_size=1, max_size=5).map("\n".join),
    st.tuples(WORD, WORD).map(lambda p: f"[{p[0]}]: {p[1]}"),
    st.tuples(WORD, LINE).map(lambda p: f"[^{p[0]}]: {p[1]}"),
    st.tuples(st.sampled_from(["```", "~~~", "````"]), WORD, LINE).map(
        lambda p: f"{p[0]}{p[1]} {p[1]}\n{p[2]}\n{p[0]}"
    ),
    st.tuples(st.sampled_from(["```", "~~~"]), LINE).map(lambda p: f"{p[0]}\n{p[1]}"),
    st.tuples(ROW, st.integers(1, 4), st.lists(ROW, max_size=3)).map(
        lambda t: "\n".join([t[0], "|" + "---|" * t[1], *t[2]])
    ),
    st.tuples(WORD, st.lists(LINE, min_size=1, max_size=3)).map(
        lambda p: "\n".join([f"<{p[0]}>", *p[1], f"</{p[0]}>"])
    ),
    st.sampled_from(["---", "***", "===", "<!--", "-->", "<pre>", "</pre>"]),
)
TEXT = st.lists(st.tuples(BLOCK, st.sampled_from(["\n", "\n\n", "\n\n\n"])).map("".join), min_size=1, max_size=6).map(
    "".join
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(TEXT, st.sampled_from([24, 80, 200]), st.sampled_from([0, 1, 7]))
def test_no_word_is_lost(text: str, width: int, piece: int) -> None:
    said = shown(text, width, piece)
    assert not Counter(c for c in text if c.isalnum() or c in "<&") - Counter(said), said
    if width == 200:  # wide enough that only tables break words
        assert all(word in said for word in re.findall(r"[A-Za-z0-9]+", text)), said


def test_a_terminal_shows_what_stands_in_angle_brackets(home: HomeDir) -> None:
    (home.path / "model.txt").write_text("text: Use the <Button> of List<String>.\\n\\n<promise>DONE</promise>\n")
    home.configure(f'model = "scripted:{home.path}/model.txt"\n')
    with pty("hi", home=home) as terminal:
        terminal.expect("Use the <Button> of List<String>.")
        terminal.expect("<promise>DONE</promise>")
        assert terminal.wait() == 0
