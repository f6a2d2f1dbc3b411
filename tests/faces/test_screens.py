"""What the chat looks like, as files that a person can read: tests/data/screens. `WRITE_SCREENS=1` writes them anew; docs/terminal.md shows
some of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.kit import HomeDir, Terminal, pty

SCREENS = Path(__file__).parents[1] / "data" / "screens"
PAGE = Path(__file__).parents[2] / "docs" / "terminal.md"
SIZES = [(24, 80), (50, 200)]
SCRIPT = r"""
text: I look at the project first.
call: read {"file_path": "parser.py"}
call: update_todos {"content": "- [x] read parser.py\n- [ ] mend it\n- [ ] run the tests"}
usage: input=2600 output=90
---
call: edit {"file_path": "parser.py", "old_string": "return None", "new_string": "return []"}
usage: input=2800 output=60
---
call: bash {"command": "seq 8; echo 1 passed"}
usage: input=2900 output=40
---
text: ## Done\n\nAn **empty input** gives `[]` now:\n\n
text: | input | before | now |\n|---|---|---|\n| `""` | `None` | `[]` |\n\n
text: 1. read\n2. mended\n3. tested, 漢字 too\n
usage: input=3100 output=240 cost=0.02
"""
SOURCE = "def parse(text):\n    if not text:\n        return None\n    return text.split()\n"


def check(terminal: Terminal, rows: int, columns: int, name: str) -> None:
    """Compare the screen with the file of that name."""
    shown = terminal.screen() + "\n"
    path = SCREENS / f"{name}-{columns}x{rows}.txt"
    if os.environ.get("WRITE_SCREENS"):
        path.write_text(shown)
    assert shown == path.read_text()


@pytest.mark.sample(1)
@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_a_turn_with_calls_a_question_and_a_rendered_answer(home: HomeDir, rows: int, columns: int) -> None:
    (home.path / "script").write_text(SCRIPT)
    (home.project / "parser.py").write_text(SOURCE)
    home.configure(f'model = "scripted:{home.path / "script"}"\n[permissions]\nallow = ["bash:seq *", "bash:echo *"]\n')
    with pty(home=home, rows=rows, columns=columns) as terminal:
        terminal.expect("> ")
        terminal.expect_screen("project · ask")
        check(terminal, rows, columns, "start")
        terminal.line("mend the parser")
        terminal.expect("no > ")
        check(terminal, rows, columns, "question")
        terminal.send("y")
        terminal.expect_screen("tokens")
        terminal.expect_screen("too\n>")
        check(terminal, rows, columns, "answer")
        assert terminal.eof() == 0
    assert "return []" in (home.project / "parser.py").read_text()


@pytest.mark.sample(1)
@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_a_conversation_that_is_opened_again(home: HomeDir, rows: int, columns: int) -> None:
    (home.path / "script").write_text("text: An **answer**.\n---\nerror: 400 broken\n")
    home.configure(f'model = "scripted:{home.path / "script"}"\n')
    with pty(home=home, rows=rows, columns=columns) as terminal:
        terminal.line("a first prompt")
        terminal.expect("An answer")
        terminal.line("a second one\nof two lines")
        terminal.expect("broken")
        assert terminal.eof() == 0
    with pty(home=home, rows=rows, columns=columns) as terminal:
        terminal.expect_screen("/resume")
        terminal.expect_screen("project · ")
        check(terminal, rows, columns, "opening")
        assert terminal.eof() == 0


def test_the_page_shows_the_screens_as_they_are() -> None:
    screens = re.compile(r"(<!-- screen: (\S+) -->\n```text\n)(.*?)```", re.DOTALL)
    page = PAGE.read_text()
    if os.environ.get("WRITE_SCREENS"):
        page = screens.sub(lambda match: f"{match[1]}{(SCREENS / match[2]).with_suffix('.txt').read_text()}```", page)
        PAGE.write_text(page)
    shown = screens.findall(page)
    assert [name for _, name, _ in shown] == ["start-80x24", "question-80x24", "answer-80x24", "opening-80x24"]
    for _, name, text in shown:
        assert text == (SCREENS / f"{name}.txt").read_text(), name
