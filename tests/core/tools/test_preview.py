from __future__ import annotations

from typing import Any

import pytest

from cru.core.tools.builtin import BuiltInTools
from cru.core.tools.preview import COLUMNS, FIRST_LINES, LINES, LONGEST, cut_preview, show_arguments

TOOLS = {tool.spec.name: tool for tool in BuiltInTools().tools()}


@pytest.mark.parametrize(
    ("tool", "args", "shown"),
    [
        ("write", {"file_path": "a", "content": "one\ntwo\n"}, "one\ntwo\n(2 lines, 8 bytes)"),
        ("write", {"file_path": "a", "content": "ü"}, "ü\n(1 line, 2 bytes)"),
        ("write", {"file_path": "a", "content": ""}, "(0 lines, 0 bytes)"),
        ("edit", {"file_path": "a", "old_string": "x\ny", "new_string": "z"}, "- x\n- y\n+ z"),
        ("edit", {"file_path": "a", "old_string": "x", "new_string": ""}, "- x"),
        (
            "edit",
            {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
            "- x\n+ y\n(everywhere in the file)",
        ),
        ("send_message", {"to": "b", "content": "hello\nyou"}, "hello\nyou"),
        ("bash", {"command": "ls"}, ""),
        ("read", {"file_path": "a"}, ""),
    ],
)
def test_a_preview_shows_what_would_be_written_or_sent(tool: str, args: dict[str, Any], shown: str) -> None:
    assert TOOLS[tool].preview(args) == shown


def test_a_preview_is_whole_and_a_question_shows_its_beginning_and_its_end() -> None:
    long = TOOLS["write"].preview({"content": "x\n" * 500})
    assert long.splitlines() == ["x"] * 500 + ["(500 lines, 1000 bytes)"]
    shown = cut_preview(long)
    assert shown == [
        *["x"] * FIRST_LINES, f"… {501 - LINES} more lines", *["x"] * (LINES - FIRST_LINES - 1), "(500 lines, 1000 bytes)",
    ]  # fmt: skip
    (wide,) = cut_preview(TOOLS["send_message"].preview({"content": "x" * 100_000}))
    assert wide == "x" * COLUMNS + f" … {100_000 - COLUMNS} more characters"
    huge = TOOLS["send_message"].preview({"content": "x\n" * LONGEST}).splitlines()
    assert len(huge) == LONGEST // 2 + 1 and huge[-1] == f"… {LONGEST:,} more characters"


@pytest.mark.parametrize("count", [0, 1, LINES - 1, LINES, LINES + 1, 3 * LINES])
def test_a_preview_that_fits_is_shown_as_it_is(count: int) -> None:
    lines = [f"line {number}" for number in range(count)]
    shown = cut_preview("\n".join(lines))
    assert (shown == lines) is (count <= LINES) and len(shown) <= LINES + 1
    assert not lines or (shown[0], shown[-1]) == (lines[0], lines[-1])


@pytest.mark.parametrize(
    "evil", ["\x1b[2K\x1b[1A", "\x1b]0;t\x07", "a\rb", "\x9b31m", "\u202egpj.exe", "a\x00b", "\u2028", "\x08"]
)
def test_nothing_in_a_preview_moves_the_cursor_or_turns_the_text_around(evil: str) -> None:
    shown = TOOLS["edit"].preview({"old_string": evil, "new_string": evil})
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert all(line[:2] in ("- ", "+ ") for line in shown.splitlines())


@pytest.mark.parametrize(
    ("args", "first", "shown"),
    [
        ({}, (), ""),
        ({"amount": 7, "account": "DE123"}, (), 'amount: 7\naccount: "DE123"'),
        ({"amount": 7, "account": "DE123"}, ("account", "nothing", "account"), 'account: "DE123"\namount: 7'),
        ({"to": {"name": "x", "all": [1, None]}}, (), 'to: {"name":"x","all":[1,null]}'),
        ({"text": "two\nlines\x1b[2J\u202e\x9b"}, (), 'text: "two\\nlines\\u001b[2J\\u202e\\x9b"'),
        ({"a b\n": "x"}, (), '"a b\\n": "x"'),
        ({"api_key": "abcdef", "how": "Bearer abcdefgh12345"}, (), 'api_key: "[hidden]"\nhow: "Bearer [hidden]"'),
    ],
)
def test_every_argument_has_its_line(args: dict[str, Any], first: tuple[str, ...], shown: str) -> None:
    assert show_arguments(args, first) == shown


def test_nothing_in_a_preview_is_out_of_sight() -> None:
    shown = TOOLS["send_message"].preview({"content": "hello" + " " * 500 + "world\u200b"})
    assert shown == "hello ⟨500 blanks⟩ world\\u200b"


def test_a_long_argument_is_cut_with_a_count() -> None:
    (line,) = cut_preview(show_arguments({"text": "x" * 1000}))
    assert line.startswith('text: "xxx') and line.endswith(f" … {1000 + 8 - COLUMNS} more characters")
