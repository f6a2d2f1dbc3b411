"""`python -m bench.agents [AGENTS]`: many agents in the background of one process, and how long a sub-agent takes to its first request.

Agents ask a model that answers after two seconds; the agent above them has one that answers at once (bench/agents_server.py).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.kit.home import HomeDir, home
from tests.kit.run import program

AGENTS, AGENT_ROUNDS, AGENT_DELAY = 100, 6, 2000
ROUNDS, SPAWNS = 1000, 20
EVENTS = ("task:spawned", "task:completed", "tool:completed")
LISTENER = "".join(f'cru.on("{name}", function() end)\n' for name in EVENTS)
"""What somebody listens to stands in the journal."""
SETTINGS = """mode = "trust"
fuel = 100000
max_idle_rounds = 0
[tasks]
max_concurrent = 1000
max_tasks = 100000
"""


class AgentsRun(NamedTuple):
    """What came of a run.

    rounds: milliseconds from an answer to the next request of the main agent, for each of its rounds
    first: milliseconds from an answer with one call of `task` to the sub-agent's first request, for each
    memory: most resident bytes
    seconds: of the whole run
    problems: events, answers or steps of agents that are not there, or there twice
    """

    rounds: list[float]
    first: list[float]
    memory: int
    seconds: float
    problems: list[str]


@contextmanager
def model_server() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", "bench.agents_server"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def run(agents: int, mode: str = "background", rounds: int = ROUNDS, agent: str = "", command: str = "") -> AgentsRun:
    """One process with so many agents. `command`: which cru, the one of these tests if it is not named."""
    agent = agent or f"agent-{AGENT_ROUNDS}-{AGENT_DELAY}"
    with tempfile.TemporaryDirectory() as folder, model_server() as url:
        here = home(Path(folder))
        here.configure(SETTINGS.replace("[tasks]", f'model = "parent-{agents}-{rounds}-{mode}"\n[tasks]'), url=f"{url}/v1")
        (here.cru / "plugins").mkdir()
        (here.cru / "plugins" / "listener.lua").write_text(LISTENER)
        begin = time.monotonic()
        process = subprocess.Popen(
            [command or str(program()), f"use {agent} please"], env=here.env, cwd=here.project, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        memory = _watch(process)
        seconds = time.monotonic() - begin
        errors = process.stderr.read().decode() if process.stderr is not None else ""
        problems = [f"exit status {process.returncode}: {errors[-300:]}"] if process.returncode else []
        events = json.loads(urllib.request.urlopen(f"{url}/events").read())
        if mode == "background":
            problems += _lost(here, agents, int(agent.split("-")[1]), rounds)
        return AgentsRun(_rounds(events, rounds), _first_requests(events), memory, seconds, problems)


def _watch(process: subprocess.Popen[bytes]) -> int:
    """The most resident memory until its end."""
    memory = 0
    while process.poll() is None:
        try:
            text = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        high = re.search(r"VmHWM:\s+(\d+) kB", text)
        memory = max(memory, int(high[1]) * 1024 if high else 0)
        time.sleep(0.05)
    process.wait()
    return memory


def _rounds(events: list[dict[str, Any]], rounds: int) -> list[float]:
    """Of the main agent: those between its calls of bash."""
    own = [event for event in events if event["model"].startswith("parent")]
    times = [(after["first"] - before["sent"]) / 1e6 for before, after in zip(own, own[1:], strict=False)]
    return times[1 : rounds + 1] if len(times) > rounds else times


def _first_requests(events: list[dict[str, Any]]) -> list[float]:
    ordered = sorted(events, key=lambda event: event["first"])
    pairs = zip(ordered, ordered[1:], strict=False)
    return [
        (after["first"] - before["sent"]) / 1e6
        for before, after in pairs
        if before["model"].startswith("parent") and after["model"].startswith("agent")
    ]


def _lost(here: HomeDir, agents: int, steps: int, rounds: int) -> list[str]:
    """Each agent's start, end and calls stand in the journal, each of its steps in its log, and its answer came to the main agent once."""
    journal = [line["event"] for line in here.lines("default", "journal.jsonl")]
    expected = dict(zip(EVENTS, (agents, agents, agents * (1 + steps) + rounds), strict=True))
    problems = [f"{journal.count(name)} of {count} {name}" for name, count in expected.items() if journal.count(name) != count]
    said = "\n".join(entry["content"] for entry in here.log() if entry.get("role") == "user")
    problems += [f"answer {n}: {said.count(f'answer-{n}.')} times" for n in range(agents) if said.count(f"answer-{n}.") != 1]
    logs = list(here.context().glob("tasks/*/context.jsonl"))
    if len(logs) != agents:
        problems.append(f"{len(logs)} conversations of {agents} agents")
    for log in logs:
        kinds = [json.loads(line)["entry_type"] for line in log.read_text().splitlines()]
        if (kinds.count("tool_call"), kinds.count("tool_result")) != (steps, steps):
            problems.append(f"{log.parent.name}: {kinds.count('tool_result')} of {steps} results")
    return problems


def measure(agents: int, command: str) -> dict[str, tuple[float, str]]:
    """The figures of docs/performance.md. Ends the process if something was lost."""
    alone, many = run(0, command=command), run(agents, command=command)
    if alone.problems or many.problems:
        raise SystemExit(f"lost: {alone.problems + many.problems}")
    first = run(SPAWNS, "waited", 0, "agent-0-0", command).first
    mean, base = statistics.mean(many.rounds), statistics.mean(alone.rounds)
    each = (many.memory - alone.memory) / agents / 2**20
    return {
        "agents-memory": (each, f"{many.memory / 2**20:.0f} MB with {agents}; without {alone.memory / 2**20:.0f} MB"),
        "agents-round": (mean / base, f"{mean:.2f} ms; alone {base:.2f} ms; nothing lost"),
        "agents-first": (statistics.median(first[1:]), f"median of {len(first) - 1}; the first of a run {first[0]:.0f} ms"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="?", type=int, default=AGENTS)
    parser.add_argument("--program", default="", help="the cru to measure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.agents, options.program)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    for name, (figure, made_of) in figures.items():
        print(f"{name:14} {figure:7.2f}   {made_of}")


if __name__ == "__main__":
    main()
