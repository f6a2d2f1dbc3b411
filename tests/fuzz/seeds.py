"""What fuzzing begins with: texts of the tests' own data, a few of each kind, and all that was found by it (tests/data/fuzz)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.core.guard.shell.test_parser import PIECES
from tests.hostile import streams
from tests.kit import Call, Reply
from tests.kit.wire import render

DATA = Path(__file__).parents[1] / "data"
FOUND = DATA / "fuzz"
LARGEST = 4096
"""Bytes of a seed."""


def seeds(target: str) -> list[bytes]:
    """Of this target, short ones."""
    made = [seed for seed in SEEDS[target]() if len(seed) <= LARGEST]
    return [*dict.fromkeys(made), *found(target)]


def found(target: str) -> list[bytes]:
    """What once broke a promise."""
    folder = FOUND / target
    return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.is_dir() else []


def _events() -> Iterator[bytes]:
    for path in ("/v1/chat/completions", "/v1/messages"):
        for reply in (
            Reply("hello", pieces=2),
            Reply(calls=[Call("ls", {"path": "."})], think="why"),
            Reply("x", error="busy"),
            Reply("x", message=True),
        ):
            yield b"\3" + render(path, reply, 0, True)
            yield b"\0" + render(path, reply, 0, False)
    for make in (streams.HELLO, streams.END, streams.CALLED):
        yield b"\1" + make


def _commands() -> Iterator[bytes]:
    cases = json.loads((DATA / "permissions" / "commands.json").read_text())
    for text in _texts(cases):
        yield text.encode()
    for at in range(0, len(PIECES), 4):
        yield "a ".join(PIECES[at : at + 4]).encode()


def _rules() -> Iterator[bytes]:
    for rule in ("bash:git *", "bash:*x*", "bash", "*", "write:src/**", "bash:{a,b} *", "outside_sandbox:*"):
        for number, command in enumerate(_commands()):
            if number % 40 == 0:
                yield rule.encode() + b"\n" + command


def _hooks() -> Iterator[bytes]:
    outputs: tuple[Any, ...] = (
        {"decision": "deny", "reason": "no"}, {"continue": False, "stopReason": "x"}, {"halt": True, "context": ["a"]},
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "updatedInput": {"a": 1}}},
        {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "x"}}},
        {"updated_input": {"command": "x"}, "context_files": ["a"], "version": 1}, {"systemMessage": "x", "suppressOutput": True},
        {"changes": [{"field": "args", "op": "set", "value": {}}], "inject": "x"},
        {"hookSpecificOutput": {"llm_request": {"messages": []}}},
    )  # fmt: skip
    for number, output in enumerate(outputs * 6):
        yield bytes((number * 5 % 256, number % 6)) + json.dumps(output).encode() + b"\0why"
    yield b"\0\0" + b'{"decision":"deny","decision":"allow"}'


def _config() -> Iterator[bytes]:
    for text in (
        'model = "x"\nfuel = 3\n[permissions]\nallow = ["bash:git *"]\nmode = "trust"\n',
        '[models."a"]\nmodel = "b"\ncontext_window = 1\n[mcp.servers.x]\ncommand = "y"\nargs = []\n',
        "[plugins.x]\ntimeout = 1.5\n[sandbox]\nmode = 'auto'\nnetwork = true\n", "a = 1979-05-27T07:32:00Z\nb = [1, 2]\n",
    ):  # fmt: skip
        yield text.encode()


def _cards() -> Iterator[bytes]:
    for text in (
        "---\nname: x\ndescription: Use it: now\ntools: [a, b]\n---\nbody\n", "---\na: &x [1]\nb: *x\n---\n", "---\n? [a]\n: b\n---",
        "---\na: |\n  text\nb: >-\n  x\n---\n",
    ):  # fmt: skip
        yield text.encode()


def _notes() -> Iterator[bytes]:
    yield from (path.read_bytes() for path in sorted((DATA / "vault").rglob("*.md")))
    yield b"---\ntags: [a]\n---\n# [[A#^b|c]]\n- [ ] task [due:: 1]\n![[x]] #tag/y `code`\n"


def _messages() -> Iterator[bytes]:
    for result in (
        {"content": [{"type": "text", "text": "x"}]}, {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]},
        {"content": [{"type": "image", "data": "eA==", "mimeType": "image/png"}], "structuredContent": {}, "isError": True},
        {"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "eA=="}}], "task": {}},
    ):  # fmt: skip
        yield json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    yield b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}'
    yield b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}'


def _log() -> Iterator[bytes]:
    for path in sorted((DATA / "contexts").rglob("*.jsonl")):
        lines = path.read_bytes().splitlines(keepends=True)
        yield b"".join(lines[:4])


def _texts(value: object) -> Iterable[str]:
    """All texts in a table of cases."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


SEEDS = {
    "sse": _events, "shell": _commands, "rules": _rules, "hooks": _hooks, "config": _config, "cards": _cards, "notes": _notes,
    "mcp": _messages, "log": _log,
}  # fmt: skip
