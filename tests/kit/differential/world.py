"""Where a case is played: a home and a project with its files, `~/record`, and a model that follows the case's script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from tests.kit.differential.cases import Case, ModelReply
from tests.kit.differential.compare import Firing
from tests.kit.home import HomeDir
from tests.kit.steps import Call, Received, Reply, Status, Step

RECORD = """#!/bin/sh
f=$HOME/records/$$
[ -e "$f.env" ] && f=$f.again
cat "/proc/$$/environ" > "$f.env"
printf %s "$1" > "$f.name"
exec cat > "$f.stdin"
"""
"""One process besides the shell and its last: it runs a thousand times."""
USER_FILE = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "crush": ".config/crush/crush.json",
    "gemini": ".gemini/settings.json",
}
"""The user's file of hooks of each dialect, below the home."""
CONVERSATION = ("system", "instructions", "systemInstruction", "messages", "input", "contents")
Naming = Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]


def prepare(case: Case, dialect: str, here: HomeDir) -> Path:
    """Write the files of a case. The folder in which the program is started."""
    record = here.path / "record"
    record.write_text(RECORD)
    record.chmod(0o755)
    (here.path / "records").mkdir()
    files = dict(case.files)
    if case.settings is not None:
        files[f"~/{USER_FILE[dialect]}"] = case.settings
    for name, content in files.items():
        path = here.path / name[2:] if name.startswith("~/") else here.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else msgspec.json.encode(content).decode()
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)
    folder = here.project / case.cwd
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def firings(here: HomeDir) -> list[Firing]:
    """What `~/record` has kept."""
    files = sorted(here.path.glob("records/*.stdin"), key=lambda path: path.stat().st_mtime_ns)
    return [_firing(path) for path in files]


def _firing(path: Path) -> Firing:
    try:
        stdin = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError:
        stdin = None
    pairs = (part.partition("=") for part in path.with_suffix(".env").read_text(errors="replace").split("\0") if part)
    known = stdin if isinstance(stdin, dict) else {}
    event = path.with_suffix(".name").read_text() or known.get("hook_event_name") or known.get("event") or "?"
    return Firing(str(event), stdin, {name: value for name, _, value in pairs})


class ScriptedModel(Struct):
    """Follows a script: each request takes a reply.

    named: a tool and its arguments in the words of the player
    has_side_requests: requests without tools are none of the conversation's, and read `ok`
    texts: of each request that took a reply
    """

    script: tuple[ModelReply, ...]
    named: Naming
    has_side_requests: bool = False
    texts: list[str] = []

    def __call__(self, request: Received) -> Step:
        body = request.body
        if not isinstance(body, dict) or (self.has_side_requests and not body.get("tools")):
            return Reply("ok")
        self.texts.append("\n".join(_texts({key: body[key] for key in CONVERSATION if key in body})))
        number = len(self.texts) - 1
        if number >= len(self.script):
            return Reply("(the script is over)")
        return self._step(self.script[number])

    def _step(self, reply: ModelReply) -> Step:
        if reply.status:
            return Status(reply.status)
        calls = reply.calls or ((reply,) if reply.tool else ())
        return Reply(reply.text, [Call(*self.named(call.tool, call.input)) for call in calls])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
