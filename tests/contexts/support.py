"""What several tests of this room need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.kit.closing import close_later

from cru.contexts.entries import new_id, now
from cru.contexts.home import Home
from cru.contexts.store import FileContext
from cru.values.messages import Entry

DATA = Path(__file__).parents[1] / "data" / "contexts"


def fresh(tmp_path: Path, name: str = "desk") -> FileContext:
    context = Home(tmp_path / "home").open(name)
    close_later(context.close)
    return context


def again(context: FileContext) -> FileContext:
    """The same context as another process would see it."""
    other = FileContext(context.folder)
    close_later(other.close)
    return other


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
        out, err = child.communicate(timeout=20)
    assert child.returncode == 0, err
    return out.strip()
