"""A home with hooks of several systems, and a model that calls tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.kit import Done, HomeDir, cru

ALL = 'dialects = ["crush", "claude", "codex", "gemini"]'
CALLS = 'call: bash {"command": "echo hi"}\n---\ntext: Done.\n'


def model(home: HomeDir, script: str = CALLS, mode: str = "trust", hooks: str = ALL) -> None:
    """A scripted model; the user's own files of all systems are accepted."""
    path = home.path / "model.txt"
    path.write_text(script)
    home.configure(f'model = "scripted:{path}"\nmode = "{mode}"\n[hooks]\n{hooks}\n')


def crush(home: HomeDir, *entries: dict[str, Any], event: str = "PreToolUse", **more: Any) -> Path:
    """The user's crush.json; `more`: other events with their entries."""
    return _write(home.path / ".config" / "crush" / "crush.json", {"hooks": {event: list(entries), **more}})


def claude(home: HomeDir, *handlers: dict[str, Any], event: str = "PreToolUse", matcher: str = "") -> Path:
    """The user's Claude settings, with one group."""
    group = {"matcher": matcher, "hooks": [{"type": "command", **one} for one in handlers]}
    return _write(home.path / ".claude" / "settings.json", {"hooks": {event: [group]}})


def _write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())
    return path


def script(home: HomeDir, name: str, text: str, mode: int = 0o755) -> Path:
    path = home.project / name
    path.write_text(text)
    path.chmod(mode)
    return path


def hooks(home: HomeDir, *words: str, code: int = 0) -> Done:
    """`cru hooks WORDS`, which must end so and without a traceback."""
    run = cru("hooks", *words, home=home)
    assert run.code == code and "Traceback" not in run.err, run
    return run


def ids(home: HomeDir) -> dict[str, str]:
    """The id of each hook by what people call it."""
    listed = msgspec.json.decode(hooks(home, "list", "--json").out)
    return {row["name"] or row["command"]: row["id"] for row in listed}
