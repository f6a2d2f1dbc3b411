"""A tool call through cru's MCP client against the SDK's own round trip: python bench/mcp_calls.py [--rounds 20]

The bar: at most 1.3 times the SDK's. Both ask the same server (tests/programs/mcp/server.py), each in a process of its own, in turns of 100
calls; what counts is the ratio of the medians, the median of the turns' ratios beside it. `cru` is ServerConnection.call: time limit, what is
lost, the result as text. `tool` is what the engine runs, McpTool with its check and its progress.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from cru.features.mcp import McpServer
from cru.features.mcp.connection import ServerConnection
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.place import ServerPlace
from cru.features.mcp.ports import NoRequests
from cru.features.mcp.tools import McpTool
from mcp import StdioServerParameters

SERVER = Path(__file__).parents[1] / "tests" / "programs" / "mcp" / "server.py"
CALLS = 100
"""In a turn."""
BAR = 1.3
ARGS = {"text": "hello"}
Ask = Callable[[], Awaitable[object]]
Times = dict[str, list[tuple[float, float]]]
"""Of each way the turns."""


async def turn(ask: Ask) -> tuple[float, float]:
    """Microseconds a call: (wall clock, CPU of this process, which a busy machine disturbs less)."""
    begin, cpu = time.perf_counter(), time.process_time()
    for _ in range(CALLS):
        await ask()
    return (time.perf_counter() - begin) / CALLS * 1e6, (time.process_time() - cpu) / CALLS * 1e6


async def no_progress(progress: float, total: float | None, message: str | None) -> None:
    pass


async def cru_ways(stack: AsyncExitStack, server: McpServer, folder: Path) -> dict[str, Ask]:
    place = ServerPlace(folder, folder, {}, dict(os.environ))
    connection = ServerConnection(ServerDefinition("small", server), place, NoRequests(folder), lambda _: None)
    stack.push_async_callback(connection.close)
    await connection.ready()
    [echo] = [McpTool(connection, tool) for tool in connection.facts.tools if tool.name == "echo"]
    running = cast(Any, SimpleNamespace(folder=folder, call_id="1", emit=lambda text: None))

    async def ask_tool() -> object:
        return await echo.run(echo.check('{"text": "hello"}'), running)

    return {"cru": lambda: connection.call("echo", ARGS, lambda content, suffix: None, no_progress), "tool": ask_tool}


async def measure(target: Any, server: McpServer, rounds: int, folder: Path) -> Times:
    """Turns of each way; target: what the SDK's client enters."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(target))
        ways: dict[str, Ask] = {"sdk": lambda: client.call_tool("echo", ARGS), **await cru_ways(stack, server, folder)}
        times: Times = {name: [] for name in ways}
        for number in range(rounds + 1):
            order = list(ways)[number % len(ways) :] + list(ways)[: number % len(ways)]
            for name in order:
                took = await turn(ways[name])
                if number:  # the first turns warm up
                    times[name].append(took)
    return times


def report(title: str, times: Times) -> bool:
    sdk = times["sdk"]
    is_kept = True
    for name, took in times.items():
        (wall, cpu), (sdk_wall, sdk_cpu) = medians(took), medians(sdk)
        turns = statistics.median(own[0] / other[0] for own, other in zip(took, sdk, strict=True))
        ratios = f"{wall / sdk_wall:5.2f} x   turns {turns:5.2f} x   CPU {cpu:6.0f} µs {cpu / sdk_cpu:5.2f} x"
        print(f"{title:<6} {name:<5} {wall:8.0f} µs a call   {ratios}", flush=True)
        is_kept = is_kept and wall / sdk_wall <= BAR
    return is_kept


def medians(took: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(wall for wall, _ in took), statistics.median(cpu for _, cpu in took)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    print(f"load {os.getloadavg()[0]:.1f}, {rounds} turns of {CALLS} calls, bar {BAR} x")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
        program = McpServer(command=sys.executable, args=(str(SERVER),))
        kept = [report("stdio", asyncio.run(measure(stdio_client(parameters), program, rounds, folder)))]
        port_file = folder / "port"
        process = subprocess.Popen([sys.executable, str(SERVER), f"http={port_file}"])
        try:
            while not port_file.exists() or not port_file.read_text():
                time.sleep(0.01)
            url = f"http://127.0.0.1:{port_file.read_text()}/mcp"
            kept.append(report("http", asyncio.run(measure(url, McpServer(url=url), rounds, folder))))
        finally:
            process.kill()
            process.wait()
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
