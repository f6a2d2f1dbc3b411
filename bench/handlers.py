#!/usr/bin/env python3
"""What a handler's call costs: CPU time a dispatch, the least of many interleaved rounds, beside what the machine of Lua itself costs.

usage: python bench/handlers.py [--rounds N] [--profile CASE]   (in an environment where cru is installed)
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cru.core.compose import Start, build
from cru.core.events.answers import Answer, transform
from cru.core.events.bus import Bus, Event
from cru.core.events.journal import Unjournalled
from cru.core.events.payloads import MessageBeforeSend, ToolBeforeCall
from cru.core.events.registry import HandlerFunction
from cru.core.events.stamp import Origin
from cru.core.plugins.lua.runtime import LuaVM
from cru.core.base.values.messages import Message

TOOL = ToolBeforeCall("bash", {"command": "x" * 900, "timeout": 30, "description": "a call of one kilobyte"}, "call_1")
LONG, SHORT = (
    MessageBeforeSend("m", {"temperature": 1.0}, tuple(Message("user", "x" * 500, ref=str(n)) for n in range(count)))
    for count in (1000, 10)
)
CHANGE = 'event.args.command = event.args.command .. "y" return event'
LUA = 'cru.on("%s", function(ctx, event) %s end)\n'
PYTHON = "from cru import on\ndef handler(ctx, event):\n    %s\non('%s', handler)\n"

# What is dispatched, to handlers in which language, and what they are.
CASES: dict[str, tuple[Any, str, str]] = {
    "tool: no handler": (TOOL, "", ""),
    "tool: lua changes": (TOOL, "lua", LUA % ("tool:before_call", CHANGE)),
    "tool: lua reads": (TOOL, "lua", LUA % ("tool:before_call", "local c = event.args.command")),
    "tool: lua denies": (TOOL, "lua", LUA % ("tool:before_call", "return { cancel = true, reason = 'no' }")),
    "tool: 10 lua change": (TOOL, "lua", LUA % ("tool:before_call", CHANGE) * 10),
    "tool: 100 lua change": (TOOL, "lua", LUA % ("tool:before_call", CHANGE) * 100),
    "tool: python reads": (TOOL, "py", PYTHON % ("event['args']['command']", "tool:before_call")),
    "tool: python changes": (
        TOOL,
        "py",
        PYTHON % ("event['args']['command'] += 'y'; return event", "tool:before_call"),
    ),
    "tool: callable reads": (TOOL, "callable", "reads"),
    "tool: callable changes": (TOOL, "callable", "changes"),
    "1000 messages: no handler": (LONG, "", ""),
    "1000 messages: lua reads model": (LONG, "lua", LUA % ("message:before_send", "local m = event.model")),
    "1000 messages: python reads model": (LONG, "py", PYTHON % ("event['model']", "message:before_send")),
    "10 messages: lua reads model": (SHORT, "lua", LUA % ("message:before_send", "local m = event.model")),
    "10 messages: python reads model": (SHORT, "py", PYTHON % ("event['model']", "message:before_send")),
}


async def opened(case: str, folder: Path) -> Bus:
    """The bus of a session of its own with one plugin, in a new folder."""
    _, suffix, source = CASES[case]
    if suffix == "callable":
        return listened(CALLABLES[source])
    path = Path(tempfile.mkdtemp(dir=folder))
    (path / "plugins").mkdir()
    (path / "script.txt").write_text("text: fine\n")
    if source:
        (path / "plugins" / f"demo.{suffix}").write_text(source)
    start = Start(
        path, "main", {"PATH": "/usr/bin:/bin", "HOME": str(path), "CRU_SANDBOX": "off"}, path, path, {"model": f"scripted:{path}/script.txt"}
    )
    parts = build(start).session.parts
    for work in parts.services.lifecycle.opening:
        await work(parts)
    return parts.bus


def reads(event: Event[ToolBeforeCall]) -> None:
    _ = event.payload.args["command"]


def changes(event: Event[ToolBeforeCall]) -> Answer:
    args = event.payload.args
    return transform(args={**args, "command": args["command"] + "y"})


CALLABLES = {"reads": reads, "changes": changes}


def listened(function: HandlerFunction) -> Bus:
    """A bus with one function of Python on it and nothing of plugins: what the bus itself costs."""
    bus = Bus(Origin("session", "run"))
    bus.registry.on(ToolBeforeCall, function, owner="bench")
    return bus


def machine() -> Callable[[], Any]:
    """The bare round trip: the same payload into a Lua function that changes it, and back."""
    vm = LuaVM()
    function = vm.load(f"local event = ... {CHANGE}", "=bare")
    table = {field: getattr(TOOL, field) for field in TOOL.__struct_fields__}
    return lambda: vm.start(function, table)


async def measured(rounds: int, journal: bool, folder: Path) -> dict[str, float]:
    """Microseconds of CPU time a dispatch, by case."""
    bare = machine()

    async def reference() -> None:
        bare()

    work: dict[str, Callable[[], Any]] = {"the bare machine": reference}
    for case in CASES:
        bus = await opened(case, folder)
        if not journal or CASES[case][1] == "callable":
            bus.sink = Unjournalled()
        work[case] = lambda bus=bus, payload=CASES[case][0]: bus.dispatch(payload)
    best = dict.fromkeys(work, 9e9)
    for _ in range(rounds):
        for case, call in work.items():
            times = 5 if "100" in case else 50
            begun = time.thread_time()
            for _ in range(times):
                await call()
            best[case] = min(best[case], (time.thread_time() - begun) / times * 1e6)
    return best


async def profiled(case: str, folder: Path) -> None:
    bus = await opened(case, folder)
    bus.sink = Unjournalled()
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(2000):
        await bus.dispatch(CASES[case][0])
    profile.disable()
    profile.print_stats("tottime")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--profile", choices=CASES)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cru-bench-") as name:
        if given.profile:
            asyncio.run(profiled(given.profile, Path(name)))
            return
        bare, written = (asyncio.run(measured(given.rounds, journal, Path(name))) for journal in (False, True))
    print(f"{'case':32}{'µs':>8}{'÷ bare machine':>16}{'with journal':>14}")
    for case, value in bare.items():
        print(f"{case:32}{value:8.1f}{value / bare['the bare machine']:16.2f}{written[case]:14.1f}")
    print("\nreading `model` of a request of 1000 messages, beside no handler and beside a request of 10 messages:")
    for language in ("lua", "python"):
        reads = bare[f"1000 messages: {language} reads model"]
        none, few = bare["1000 messages: no handler"], bare[f"10 messages: {language} reads model"]
        print(f"{language:8}{reads - none:6.1f} µs more, {reads / none:.0f} times; {reads / few:.2f} times")


if __name__ == "__main__":
    main()
