"""A home and a project with command hooks, for tests of the real command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.kit import Done, HomeDir, cru

CALLS = 'by: order\ncall: bash {"command": "true"}\n---\ntext: Done.\n'
TOUCH = '#!/bin/sh\necho ran >> "$CRUSH_CWD/ran"\n'


def model(home: HomeDir, script: str = CALLS, config: str = "") -> None:
    path = home.path / "model.txt"
    path.write_text(script)
    home.configure(f'model = "scripted:{path}"\nmode = "trust"\n{config}')


def project(home: HomeDir, *commands: str, event: str = "PreToolUse", script: str = TOUCH) -> Path:
    """A crush.json with these commands in the project, and the script hook.sh beside it."""
    entries = [{"command": command} for command in commands or ("./hook.sh",)]
    (home.project / "crush.json").write_text(msgspec.json.encode({"hooks": {event: entries}}).decode())
    path = home.project / "hook.sh"
    path.write_text(script)
    path.chmod(0o755)
    return path


def foreign(home: HomeDir, *commands: str) -> Path:
    path = home.path / ".config" / "crush" / "crush.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = [{"command": command} for command in commands or ('echo ran >> "$CRUSH_CWD/ran"',)]
    path.write_text(msgspec.json.encode({"hooks": {"PreToolUse": entries}}, order="sorted").decode())
    return path


def turn(home: HomeDir, *flags: str, code: int = 0, **more: Any) -> Done:
    run = cru(*flags, "hello", home=home, **more)
    assert run.code == code and "Traceback" not in run.err, run
    return run


def ran(home: HomeDir) -> int:
    """How often the script has run since the last look."""
    path = home.project / "ran"
    if not path.exists():
        return 0
    count = path.read_text().count("ran")
    path.unlink()
    return count


def rows(home: HomeDir, **more: Any) -> list[dict[str, Any]]:
    run = cru("hooks", "list", "--json", home=home, **more)
    assert run.code == 0, run
    listed: list[dict[str, Any]] = msgspec.json.decode(run.out)
    return listed


def seen(home: HomeDir, *ids: str) -> list[str]:
    """ID@DIGEST of the hooks that await trust, or of those with these ids, as the review shows them."""
    runs = [cru("hooks", "review", "--trust", one, home=home) for one in ids] or [cru("hooks", "review", home=home)]
    shown = [run.err.partition("cru hooks review --trust ")[2].split("\n")[0].split() for run in runs]
    return [word for words in shown for word in words]


def trust_all(home: HomeDir) -> Done:
    return trust(home, *seen(home))


def trust(home: HomeDir, *words: str) -> Done:
    """Accept these, by ID@DIGEST or by ID as they are now."""
    known = [one for word in words for one in ([word] if "@" in word else seen(home, word))]
    run = cru("hooks", "review", "--trust", *known, home=home)
    assert run.code == 0, run
    return run
