"""What tests of dialogs share: a plugin that asks, a person who answers."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.kit import HomeDir, Terminal, pty
from tests.kit.waiting import wait_until

HELLO = "by: order\ntext: Hello\n"
WAY = 'cru.ui.ask(nil, { header = "Way", question = "Which way?", choices = { "left", "right", "back" } })'
OPEN = "cancels > "


def plugin(home: HomeDir, code: str, name: str = "asks.lua") -> None:
    folder = home.cru / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(code)


def scripted(home: HomeDir, script: str = HELLO, config: str = "") -> None:
    (home.project / "model.txt").write_text(script)
    home.configure(f'model = "scripted:{home.project}/model.txt"\n{config}')


def asking(home: HomeDir, dialog: str, event: str = "message:received") -> None:
    """A plugin that shows the dialog and keeps what came of it."""
    plugin(
        home,
        f'cru.on("{event}", function(ctx, event)\n  if ctx.is_continuation then return end\n'
        f'  local function keep(r) cru.fs.append("answers", cru.json.encode(r) .. "\\n") end\n'
        f"  local found = {dialog}\n  keep(found)\nend)",
    )


def answers(home: HomeDir) -> list[Any]:
    file = home.project / "answers"
    return [msgspec.json.decode(line) for line in file.read_text().splitlines()] if file.exists() else []


def run(home: HomeDir, *keys: str, words: str = "hi") -> Terminal:
    """One run that is answered with these lines; its terminal after its end."""
    with pty(words, home=home) as terminal:
        for line in keys:
            answer(terminal, line)
        assert terminal.wait() == 0
    return terminal


def answer(terminal: Terminal, text: str) -> None:
    """Wait for a line to type in, type, and press Enter."""
    last_line(terminal, "cancels >")
    terminal.send(text)
    last_line(terminal, f"cancels > {text}".rstrip())
    terminal.key("enter")


def last_line(terminal: Terminal, end: str) -> None:
    wait_until(lambda: terminal.screen().rstrip().endswith(end), what=f"{end!r} at the end of the screen")
