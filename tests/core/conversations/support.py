"""What several tests of this room need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.kit.closing import closed_later

from cru.core.base.values.messages import Entry
from cru.core.conversations import home, line_file
from cru.core.conversations.entries import new_id, now
from cru.core.conversations.store import FileContext

DATA = Path(__file__).parents[2] / "data" / "contexts"


class Home(home.Home):
    """One whose contexts are closed when the test is over."""

    def open(self, name: str) -> FileContext:
        return closed_later(super().open(name))


class LineFile(line_file.LineFile):
    """One that is closed when the test is over."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        closed_later(self)


def fresh(tmp_path: Path, name: str = "desk") -> FileContext:
    return Home(tmp_path / "home").open(name)


def again(context: FileContext) -> FileContext:
    """The same context as another process would see it."""
    return closed_later(FileContext(context.folder))


def said(text: str, key: str = "", **more: str) -> Entry:
    return Entry(id=key or new_id(), timestamp=now(), from_="user", to="desk", content=text, role="user", **more)  # type: ignore[arg-type]


def texts(entries: list[Entry]) -> list[str]:
    return [e.content for e in entries]


def start(code: str, *args: object, wrap: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """A Python process of its own that runs `code`; it is on its own if it waits for stdin."""
    command = [*wrap, sys.executable, "-c", code, *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=dict(os.environ))


def run(code: str, *args: object, wrap: tuple[str, ...] = ()) -> str:
    """Run it to its end; its standard output."""
    with start(code, *args, wrap=wrap) as child:
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    return out.strip()
