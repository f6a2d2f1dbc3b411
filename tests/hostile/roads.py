"""How a hostile program gets into a run of cru: as a hook of each dialect, as a plugin, as an MCP server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from msgspec import Struct
from tests.hostile.programs import Behaviour
from tests.kit import HomeDir
from tests.kit.scripts import shebang
from tests.roads.command_hooks import BASH, FLAT, HOOKS, PLACES

GUEST = Path(__file__).parents[1] / "programs" / "hostile" / "guest.py"
NAME = "rude"
SECONDS = 1
"""That a program gets, wherever that can be said."""
CALL = {"hook": "bash", "program": NAME, "server": f"mcp_{NAME}_work"}


class Road(Struct, frozen=True):
    """A place in a run where a program is asked.

    role: hook, program (a plugin) or server
    moment: the event, `schema`, the hook of a plugin, or the method of an MCP server
    answer: what it honestly says: a text, or JSON in which "*" is the text and "#" the number of the request
    dialect: of a hook
    short: whether it stands for its like in `make test`
    """

    role: str
    moment: str
    answer: Any
    dialect: str = ""
    short: bool = False

    @property
    def codes(self) -> tuple[int, ...]:
        """The exit statuses of a run that goes on, or that a hook has refused: an exit status says so in some dialects."""
        return (0, 3) if self.role == "hook" else (0,)

    @property
    def tool(self) -> str:
        """What the model calls, so that the program is asked."""
        return CALL[self.role] if self.role != "program" or self.moment == "call" else "bash"


def _nested(event: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": "*"}}


ROADS: dict[str, Road] = {
    "a cru hook before a call": Road("hook", "tool:before_call", {"context": "*"}, "cru", short=True),
    "a cru hook of an end": Road("hook", "turn:complete", {"context": "*"}, "cru"),
    "a Crush hook before a call": Road("hook", "PreToolUse", {"context": "*"}, "crush"),
    "a Claude hook before a call": Road("hook", "PreToolUse", _nested("PreToolUse"), "claude"),
    "a Claude hook of a prompt": Road("hook", "UserPromptSubmit", _nested("UserPromptSubmit"), "claude"),
    "a Claude hook of an end": Road("hook", "Stop", {"systemMessage": "*"}, "claude"),
    "a Codex hook before a call": Road("hook", "PreToolUse", _nested("PreToolUse"), "codex"),
    "a Gemini hook before a call": Road("hook", "BeforeTool", {"systemMessage": "*"}, "gemini"),
    "a Gemini hook of a request": Road("hook", "BeforeModel", {"systemMessage": "*"}, "gemini"),
    "a plugin's tool": Road("program", "call", "*", short=True),
    "a plugin's schema": Road("program", "schema", {"name": NAME, "description": "*"}),
    "a plugin's hook before a call": Road("program", "pre_tool", {"message": "*"}),
    "a plugin's hook of a message": Road("program", "pre_message", {"prompt": "*"}),
    "an MCP server that starts": Road(
        "server", "initialize", {"jsonrpc": "2.0", "id": "#", "result": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "*", "version": "1"}}}
    ),
    "an MCP server that is called": Road(
        "server", "tools/call", {"jsonrpc": "2.0", "id": "#", "result": {"content": [{"type": "text", "text": "*"}]}}, short=True
    ),
}  # fmt: skip


def install(home: HomeDir, road: Road, name: str, behaviour: Behaviour, url: str) -> Path:
    """Put the program there; its file."""
    settings = {
        "role": road.role, "moment": road.moment, "answer": road.answer, "name": name, "source": behaviour.source,
        "home": str(home.cru), "project": str(home.project), "pids": str(home.path.parent / "pids"),
        "hook": road.moment if road.role == "program" and road.moment.startswith("p") else "",
    }  # fmt: skip
    folder = home.cru / "plugins" if road.role == "program" else home.path.parent / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / NAME
    source = GUEST.read_text().replace('r"""@settings@"""', repr(json.dumps(settings)))
    file.write_text(f"{shebang('-SE')}{source}")
    file.chmod(0o755)
    home.configure(_config(road, file), url)
    if road.role == "hook":
        _write_hook(home, road, file)
    return file


def uninstall(home: HomeDir, road: Road, file: Path, url: str) -> None:
    """Take it away again, with all that was configured for it."""
    if file.is_file():
        file.unlink()
    if road.role == "hook":
        (home.path / PLACES[road.dialect]).unlink(missing_ok=True)
    home.configure('mode = "trust"\n', url)


def _config(road: Road, file: Path) -> str:
    lines = 'mode = "trust"\n'
    if road.role == "server":
        return (
            f'{lines}[permissions]\nallow = ["mcp_{NAME}_*"]\n[mcp.servers.{NAME}]\ncommand = "{file}"\nstart_timeout = {SECONDS}\n'
            f"call_timeout = {SECONDS}\n"
        )
    if road.role == "program":
        return f"{lines}[plugins.{NAME}]\ntimeout = {SECONDS}\nhook_timeout = {SECONDS}\n"
    return lines + HOOKS


def _write_hook(home: HomeDir, road: Road, file: Path) -> None:
    timeout = SECONDS * 1000 if road.dialect == "gemini" else SECONDS
    command: dict[str, Any] = {"command": str(file), "timeout": timeout}
    matcher = {"matcher": BASH[road.dialect]} if "ool" in road.moment else {}
    if road.dialect == "cru":
        hooks: Any = [{"event": road.moment, "name": NAME, **command}]
    elif road.dialect in FLAT:
        hooks = {road.moment: [{**command, **matcher}]}
    else:
        hooks = {road.moment: [{**matcher, "hooks": [{"type": "command", **command}]}]}
    path = home.path / PLACES[road.dialect]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": hooks}))


def clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
