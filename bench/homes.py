"""One home, many processes: each works on a context of its own and writes to its neighbour's inbox (`make test-all` has a short version).

Each worker runs `cru` again and again on its context. Every run is told what to answer by a script of its own (docs/scripted-model.md): one
message to the next context, then a text that no other run says. Afterwards: each log holds what its worker was told, in that order and
nothing else; every message is in exactly one prompt or inbox; no lock, no half-written file is left; the home knows every context.

usage: python -m bench.homes [SECONDS [PROCESSES]]
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct
from tests.kit import HomeDir, cru, home

LETTER = re.compile(r"\[From: (\w+)\] letter (\w+-\d+)")


class Worker(Struct):
    """One process after another on one context. `problems` is what went wrong."""

    name: str
    neighbour: str
    runs: int = 0
    seconds: float = 0.0
    problems: list[str] = []

    def work(self, here: HomeDir, until: float, most: int) -> Worker:
        while time.monotonic() < until and self.runs < most:
            began = time.monotonic()
            script = here.path / f"{self.name}.txt"
            word = f"{self.name}-{self.runs}"
            script.write_text(
                f'by: order\ncall: send_message {{"to": "{self.neighbour}", "content": "letter {word}"}}\n---\ntext: answer {word}\n'
            )
            done = cru("-t", "-C", self.name, "--model", f"scripted:{script}", f"prompt {word}", home=here, timeout=60)
            if done.code or done.out != f"answer {word}\n" or done.err:
                self.problems.append(f"{word}: {done}")
            self.runs += 1
            self.seconds += time.monotonic() - began
        return self


def run(processes: int, seconds: float, folder: Path, most: int = 1_000_000) -> tuple[list[Worker], list[str]]:
    """All workers side by side, at most `most` runs each; what each did, and every problem."""
    here = home(folder)
    names = [f"w{number}" for number in range(processes)]
    workers = [Worker(name, names[(number + 1) % processes]) for number, name in enumerate(names)]
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(processes) as pool:
        workers = list(pool.map(lambda worker: worker.work(here, until, most), workers))
    problems = [problem for worker in workers for problem in worker.problems]
    for worker in workers:
        problems += _log(here, worker)
    problems += _letters(here, workers)
    problems += [f"left behind: {path}" for path in sorted(here.cru.rglob("*")) if path.name in (".lock", ".lock.json") or ".tmp" in path.suffixes]
    listed = cru("-L", home=here).out.split()
    problems += [f"{name} is not listed" for name in names if name not in listed]
    return workers, problems


def _log(here: HomeDir, worker: Worker) -> list[str]:
    """Where the log differs from what the worker was told."""
    said = [(entry["role"], entry["content"]) for entry in here.log(worker.name) if entry["entry_type"] == "message"]
    told = [
        line
        for number in range(worker.runs)
        for line in (("user", f"prompt {worker.name}-{number}"), ("agent", f"answer {worker.name}-{number}"))
    ]
    kinds = Counter(entry["entry_type"] for entry in here.log(worker.name))
    problems = [] if said == told else [f"{worker.name}: {len(said)} messages in the log, {len(told)} were told, or in another order"]
    for kind in ("tool_call", "tool_result", "leg_ended"):
        if kinds[kind] != worker.runs:
            problems.append(f"{worker.name}: {kinds[kind]} × {kind}, {worker.runs} runs")
    return problems


def _letters(here: HomeDir, workers: list[Worker]) -> list[str]:
    """Messages that are nowhere, or in more than one place."""
    found: Counter[tuple[str, str, str]] = Counter()
    for worker in workers:
        texts = [entry["content"] for entry in here.log(worker.name) if entry["entry_type"] == "message_resolved"]
        texts += [f"[From: {line['from']}] {line['content']}" for line in here.lines(worker.name, "inbox.jsonl")]
        found.update((worker.name, *match) for text in texts for match in LETTER.findall(text))
    sent = Counter((w.neighbour, w.name, f"{w.name}-{number}") for w in workers for number in range(w.runs))
    return [f"sent {sent[key]} times, found {found[key]} times: {key}" for key in sorted(sent | found) if sent[key] != found[key]]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        workers, problems = run(processes, seconds, Path(name))
    runs = sum(worker.runs for worker in workers)
    spent = sum(worker.seconds for worker in workers)
    print(f"{processes} processes on {processes} contexts of one home: {runs} runs in {time.monotonic() - began:.0f} s")
    print(f"  runs of a context: {min(w.runs for w in workers)} to {max(w.runs for w in workers)}; a run took {spent / runs:.2f} s")
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    sys.exit(1 if problems or not runs else 0)


if __name__ == "__main__":
    main()
