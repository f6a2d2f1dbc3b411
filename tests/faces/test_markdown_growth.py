"""Markdown on a terminal: what is shown does not depend on how the text comes in pieces, and the work grows as the text does."""

from __future__ import annotations

import io
import os
import random
import re
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console
from rich.segment import Segment
from tests.faces.test_markdown import TEXT

if TYPE_CHECKING:
    from _typeshed import TraceFunction

from cru.faces.cli.console import printable
from cru.faces.cli.terminal import markdown_stream
from cru.faces.cli.terminal.markdown import LineConsole, print_markdown
from cru.faces.cli.terminal.markdown_stream import MarkdownStream

DOCUMENTS: dict[str, Callable[[int], str]] = {
    "a list": lambda n: "".join(f"- item {i} with *some* words\n" for i in range(n)),
    "a nested list": lambda n: "".join(f"{'  ' * (i % 6)}- item {i}\n" for i in range(n)),
    "a numbered list": lambda n: "".join(f"{i}. item {i}\n" for i in range(n)),
    "a paragraph": lambda n: "".join(f"line {i} with *some* words and `code`\n" for i in range(n)),
    "one long line": lambda n: "word *some* more " * n,
    "one long word": lambda n: "word" * 5 * n,
    "hard breaks": lambda n: "a line  \nanother\\\n" * n,
    "code": lambda n: "```python\n" + "".join(f"x{i} = {i}  # text\n\n" for i in range(n)) + "```\n",
    "code without an end": lambda n: "- ~~~\n" + "  text\n\n" * n,
    "a table": lambda n: "| a | b |\n|---|---|\n" + "".join(f"| {i} | cell |\n" for i in range(n)),
    "quotes": lambda n: "".join(f"{'> ' * (i % 5 + 1)}quote {i}\n" for i in range(n)),
    "a paragraph in a quote": lambda n: "> " + "text\n" * n,
    "html": lambda n: "<div>\n" + "".join(f"<b>{i}</b>\n" for i in range(n)),
    "a remark": lambda n: "<!--\n" + "text\n\n" * n + "-->\n\nend",
    "blank lines": lambda n: "\n" * n + "text\n \t\n" * 3,
    "windows lines": lambda n: "- a line\r\n" * n,
}


def pieces_of(text: str, seed: int) -> Iterator[str]:
    """The text in pieces of chance lengths, some of them empty."""
    chance = random.Random(seed)
    at = 0
    while at < len(text):
        length = chance.choice((0, 1, 1, 2, 5, 13, 80, 1000))
        yield text[at : at + length]
        at += length


def streamed(pieces: Iterable[str], width: int = 80) -> str:
    """Everything that is sent to a terminal, colours too."""
    output = io.StringIO()
    stream = MarkdownStream(lambda: None)
    stream._console = LineConsole(file=output, width=width, force_terminal=True, color_system="truecolor")
    for piece in pieces:
        stream.feed(piece)
    stream.flush()
    assert not stream.waiting
    return without_ids(output)


def blocks_of(text: str) -> Iterator[str]:
    """The rule by which a text is cut, applied to the whole text: a block ends at a blank line behind text, outside of code and HTML."""
    block, until = "", None
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        block += line
        if not line.endswith("\n"):
            break
        if until is not None:
            until = None if until.search(line[:-1]) else until
            continue
        until = markdown_stream._until(line[:-1])
        if until is None and not line.strip() and block.strip():
            yield block
            block = ""
    yield block


def rendered(text: str, width: int = 80) -> str:
    """The same blocks, rendered by a console of rich's own."""
    output = io.StringIO()
    console = Console(file=output, width=width, force_terminal=True, color_system="truecolor")
    for block in blocks_of(text):
        if block.strip():
            print_markdown(console, printable(block).strip("\n"))
    return without_ids(output)


def without_ids(output: io.StringIO) -> str:
    """What was written, without the numbers by which rich keeps links apart: they are chance."""
    return re.sub(r"(?<=\x1b\]8;)id=\d+", "", output.getvalue())


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_block_in_pieces_looks_as_it_does_at_once(kind: str) -> None:
    text = f"before\n\n{DOCUMENTS[kind](40)}\n\nbehind *it*"
    expected = rendered(text)
    assert expected.strip()
    for seed in range(5):
        assert streamed(pieces_of(text, seed)) == expected


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(TEXT, st.sampled_from([24, 80, 200]), st.integers(0, 1 << 16))
def test_any_text_in_pieces_looks_as_it_does_at_once(text: str, width: int, seed: int) -> None:
    assert streamed(pieces_of(text, seed), width) == rendered(text, width)


def work_of(text: str) -> int:
    """Lines of cru's code that run while the text comes in pieces of 8 characters, and characters that the parser and rich's splitter
    of lines read (the splitter: what is left of a segment for each of its lines)."""
    count = 0
    parse, split = MarkdownIt.parse, Segment.split_and_crop_lines.__func__  # type: ignore[attr-defined]

    def trace(frame: FrameType, event: str, _argument: object) -> TraceFunction | None:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename == markdown_stream.__file__ else None

    def counting_parse(parser: MarkdownIt, source: str, *more: object) -> object:
        nonlocal count
        count += len(source)
        return parse(parser, source, *more)  # type: ignore[arg-type]

    def counting_split(kind: type[Segment], /, segments: Iterable[Segment], *more: object, **options: object) -> object:
        def counted() -> Iterator[Segment]:
            nonlocal count
            for segment in segments:
                count += len(segment.text) * max(1, segment.text.count("\n"))
                yield segment

        return split(kind, counted(), *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MarkdownIt, "parse", counting_parse)
        patch.setattr(Segment, "split_and_crop_lines", classmethod(counting_split))
        sys.settrace(trace)
        try:
            assert streamed(text[at : at + 8] for at in range(0, len(text), 8))
        finally:
            sys.settrace(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_the_work_grows_as_the_text_does(kind: str) -> None:
    make = DOCUMENTS[kind]
    small, large = work_of(make(100)), work_of(make(400))
    assert large <= 5 * small, f"{small} for 100 lines, {large} for 400"


LARGE = {
    "a list": f"- an item{' with *words*' * 10}\n" * 4_000,
    "code": "```python\n" + f"x = 1{'  # words' * 10}\n\n" * 6_000 + "```\n",
    "one long line": "*word* more " * 50_000,
    "blank lines before and behind": "\n" * 10 + f"-\r\n{'- - -' * 50}\n" * 2_000 + "\n" * 10,
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_block_beyond_the_limit_is_shown_as_it_was_written(kind: str) -> None:
    text = LARGE[kind]
    shown = [streamed(pieces_of(f"*before*\n\n{text}\n\n*behind*", seed), 100) for seed in range(2)]
    assert shown[0] == shown[1]
    before, behind = rendered("*before*", 100), rendered("*behind*", 100)
    assert shown[0].startswith(before) and shown[0].endswith(behind)
    assert shown[0][len(before) : -len(behind)] == printable(text).strip("\n") + "\n"


def test_a_large_block_takes_little_room_while_it_is_shown() -> None:
    output = open(os.devnull, "w")  # noqa: SIM115  closed below
    stream = MarkdownStream(lambda: None)
    stream._console = LineConsole(file=output, width=80, force_terminal=True)
    text = "".join(f"- item {number}{' with *some* words and `code`' * 10}\n" for number in range(10_000))
    stream.feed("*rich* is loaded\n\n")
    tracemalloc.start()
    try:
        for at in range(0, len(text), 1000):
            stream.feed(text[at : at + 1000])
        stream.flush()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        output.close()
    assert peak < len(text), f"{peak} bytes for {len(text)} of text"


@pytest.mark.slow
def test_text_that_waits_takes_hardly_more_room_than_itself() -> None:
    stream = MarkdownStream(lambda: None)
    size = 1 << 18
    tracemalloc.start()
    try:
        for number in range(size // 8):
            stream.feed(f"{number:07}{'' if number % 5 else chr(10)}")
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert stream.waiting and size // 2 < kept < 1.5 * size, f"{kept} bytes for {size} of text"
