#!/usr/bin/env python3
"""What a tool that is a program costs over its own process, and what thirty of them cost a start.

usage: python bench/executables.py [--rounds N] [--starts N]   (in an environment where cru is installed)

Interleaved in one run; milliseconds, of a start those of processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from cru.core.plugins.executables.executable import Executable, ToolSchema
from cru.core.plugins.executables.calls import ProgramContext, call_tool, environment

CALL, START = 1.3, 10.0
SCHEMA = """[ "$1" = --schema ] && echo '{"name": "%s", "description": "nothing"}' && exit\n"""


def program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n" + SCHEMA % path.name + ": $CHIBI_TOOL_ARGS\necho done\n")
    path.chmod(0o755)
    return path


async def calls(folder: Path, rounds: int) -> bool:
    path = program(folder / "tool")
    schema = ToolSchema("tool", "nothing", {})
    executable = Executable("tool", path, "env", (schema,))
    where = ProgramContext(folder, folder, folder, {"PATH": os.environ["PATH"], "HOME": str(folder)}, "main", print)
    env = environment(where, {"CHIBI_TOOL_ARGS": "{}"})

    async def bare() -> None:
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            [path], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=env, start_new_session=True
        )
        child.communicate()

    async def ours() -> None:
        await call_tool(executable, schema, {}, where)

    works: dict[str, Callable[[], Awaitable[None]]] = {"bare spawn": bare, "one call": ours}
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            began = time.perf_counter()
            await work()
            times[name].append((time.perf_counter() - began) * 1000)
    best = min(times["one call"]) / min(times["bare spawn"])
    median = statistics.median(one / base for one, base in zip(times["one call"], times["bare spawn"], strict=True))
    told(times)
    fine = min(best, median) <= CALL
    print(f"one call / bare spawn: best {best:.2f}, median {median:.2f}, budget {CALL}: {'yes' if fine else 'NO'}")
    return fine


def starts(folder: Path, count: int) -> bool:
    command = Path(sys.executable).with_name("cru")
    script = folder / "script.txt"
    script.write_text("loop: yes\ntext: fine\n")
    homes = {"a start": folder / "none", "with 30": folder / "thirty"}
    times: dict[str, list[float]] = {name: [] for name in homes}
    (homes["with 30"] / "plugins").mkdir(parents=True)
    for number in range(30):
        program(homes["with 30"] / "plugins" / f"tool{number}")
    for round in range(count + 1):
        for name, home in homes.items():
            began = cpu()
            subprocess.run(
                [command, "--home", home, "--model", f"scripted:{script}", "-C", f"c{round}", "hi"],
                check=True, stdout=subprocess.DEVNULL, cwd=folder,
            )  # fmt: skip
            if round:  # the first start asks for the schemas
                times[name].append((cpu() - began) * 1000)
    told(times)
    best = min(times["with 30"]) - min(times["a start"])
    median = statistics.median(times["with 30"]) - statistics.median(times["a start"])
    fine = min(best, median) <= START
    print(f"30 plugins add: best {best:.1f}, median {median:.1f} ms, budget {START}: {'yes' if fine else 'NO'}")
    return fine


def cpu() -> float:
    """Seconds of processor time of the children so far: a start waits for nothing, and other programs do not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def told(times: dict[str, list[float]]) -> None:
    for name, taken in times.items():
        print(f"{name:16} best {min(taken):7.2f}   median {statistics.median(taken):7.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--starts", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cru-bench-") as folder:
        fine = asyncio.run(calls(Path(folder), options.rounds))
        quick = starts(Path(folder), options.starts)
    raise SystemExit(0 if fine and quick else 1)


if __name__ == "__main__":
    main()
