"""A hundred thousand dispatches leave nothing behind, in Python or in Lua."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import pytest
from tests.kit.closing import closed_later

from cru.core.api.handlers import PluginHandler
from cru.core.compose import Start, build
from cru.core.events.payloads import ToolBeforeCall
from cru.core.plugins.lua.plugins import LuaPlugins
from cru.core.turn.session import Session

TIMES = 20_000
ROUNDS = 5
SETTLED = 2
"""The rounds after which allocators keep as much as they need; what leaks goes on growing."""
ALLOWED = {"resident kB": 512, "objects": 150, "handles": 5, "bytes in Lua": 32 << 10, "blocks": 1500}

LUA = """
cru.on("tool:before_call", function(ctx, event)
  ctx:set("n", { ctx.session_id })
  event.args.command = event.args.command .. event.args.extra[2]
  return event
end)
"""
PYTHON = """
from cru import on
def handler(ctx, event):
    ctx.get("n")
    event["args"]["command"] += "z"
    return event
on("tool:before_call", handler)
"""


def counts(machine: LuaPlugins) -> dict[str, int]:
    for _ in range(2):
        machine.vm.start(machine.vm.load("collectgarbage() collectgarbage()", "=full"))
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return {
        "resident kB": int(status.partition("VmRSS:")[2].split()[0]),
        "objects": len(gc.get_objects()),
        "handles": len(machine.vm.converter.hosts),
        "bytes in Lua": machine.vm.memory_used(),
        "blocks": sys.getallocatedblocks(),
    }


async def dispatched(session: Session) -> list[dict[str, int]]:
    parts = session.parts
    for work in parts.services.lifecycle.opening:
        await work(parts)
    (lua, _) = [h for h in parts.bus.registry.by_event["tool:before_call"] if isinstance(h.call, PluginHandler)]
    assert isinstance(lua.call, PluginHandler)
    machine = lua.call._host.plugin.invoke.__self__  # type: ignore[attr-defined]
    assert isinstance(machine, LuaPlugins)
    seen = []
    for _ in range(ROUNDS):
        for n in range(TIMES):
            call = ToolBeforeCall("bash", {"command": f"echo {n}", "extra": ["x", "y"]}, f"call_{n}")
            outcome = await parts.bus.dispatch(call)
            assert outcome.payload.args["command"] == f"echo {n}yz"
        seen.append(counts(machine))
    return seen


@pytest.mark.long
def test_a_hundred_thousand_dispatches_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "one.lua").write_text(LUA)
    (tmp_path / "plugins" / "two.py").write_text(PYTHON)
    (tmp_path / "script.txt").write_text("text: fine\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    settings = {"model": f"scripted:{tmp_path}/script.txt"}
    built = closed_later(build(Start(tmp_path, "main", environment, tmp_path, tmp_path, settings)))
    seen = asyncio.run(dispatched(built.session))
    print(f"\nafter each {TIMES} dispatches: {seen}")
    grown = {name: seen[-1][name] - seen[SETTLED][name] for name in ALLOWED}
    assert {name: by for name, by in grown.items() if by > ALLOWED[name]} == {}
