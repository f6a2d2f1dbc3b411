#!/usr/bin/env python3
"""Measures what docs/performance.md promises, and writes that page from the figures.

usage: python -m bench.performance measure [--passes 3] [--reps 9] [--only ROW…]   into $BENCH_HOME/performance.json
       python -m bench.performance peers [--reps 5]                                every installed agent, into the same file
       python -m bench.performance write                                           docs/performance.md from it
       python -m bench.performance write --only ROW… [--note TEXT]                 only these rows of the page as it is

cru must be installed in $BENCH_HOME/py/cru (run.sh does it). Every pass measures every row; within a pass what is compared runs in turns,
and the figure of a pass is the median of its runs. A row's figure is the median of the passes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench import interpreters, page, peers, runners
from bench.run_peer import B as HOME, quiet


class Row(NamedTuple):
    """One row of the page.

    name: of the row, for --only
    what: is measured
    unit: of the figure; one that begins with × is a ratio
    bar: what it may be at most; None: nothing is promised
    aim: what it should be; None: the bar
    runner: measures it, together with the other rows of that runner: {name: Sample}
    """

    name: str
    what: str
    unit: str
    bar: float | None
    aim: float | None
    runner: Callable[[int], dict[str, runners.Sample]]


ROWS = (
    Row("version", "`cru --version` beyond the bare interpreter", "ms", 10, None, runners.starts),
    Row("help", "`cru --help` beyond the bare interpreter", "ms", 10, None, runners.starts),
    Row("start-http", "start → first request, http", "× codex native", 0.60, 0.50, runners.starts),
    Row("start-https", "the same over https with a verified certificate, beyond http", "ms", 12, 6, runners.starts),
    Row("start-bare", "start → first request, http", "× the bare harness", 1.30, None, runners.starts),
    Row("chat", "start → prompt of the chat drawn, beyond the bare interpreter", "ms", 60, 30, runners.chat),
    Row("round-20", "a round with one tool call, 20 rounds", "× the bare harness", 1.0, None, runners.rounds_20),
    Row("round-pi", "a round with one tool call, 20 rounds", "× pi", 0.25, None, runners.rounds_20),
    Row("round-200", "a round, 200 rounds", "× the bare harness", 0.9, None, runners.rounds_200),
    Row("memory", "resident memory after 200 rounds", "MB", 30, None, runners.rounds_200),
    Row("round-1000", "a round, 1,000 rounds", "× the bare harness", 0.8, None, runners.rounds_1000),
    Row("write", "CPU of a round whose command may write, in git, 2 files", "× one that only reads", 1.5, 1.2, runners.writes),
    Row("write-large", "the same with 5,000 files", "× one that only reads", 1.5, 1.2, runners.writes),
    Row("sandbox", "a round whose command is confined, beyond one whose command is not", "ms", None, None, runners.sandbox),
    Row("start-instructions", "start and exit without a tool call", "M instructions", 320, 280, runners.counts),
    Row("round-instructions", "a round", "M instructions", 2.15, 2.0, runners.counts),
    Row("first-instructions", "the first tool call, beyond a later one", "M instructions", 25, 15, runners.counts),
    Row("round-calls", "a round", "Python calls", 760, 650, runners.counts),
    Row("round-system-calls", "a round", "system calls", 58, 52, runners.counts),
    Row("nobody", "an event that nobody listens to", "µs", 1, None, runners.handlers),
    Row("lua-reads", "one Lua handler that reads 1 kB", "µs", 50, 40, runners.handlers),
    Row("lua-changes", "one Lua handler that changes 1 kB", "µs", 70, 50, runners.handlers),
    Row("python-reads", "one function of Python on the bus that reads 1 kB", "µs", 6, None, runners.handlers),
    Row("python-changes", "one function of Python on the bus that changes 1 kB", "µs", 10, None, runners.handlers),
    Row("plugin-reads", "one handler of a Python plugin that reads 1 kB", "µs", None, None, runners.handlers),
    Row("plugin-changes", "one handler of a Python plugin that changes 1 kB", "µs", None, None, runners.handlers),
    Row("hook", "one command hook", "× a bare spawn with pipes", 1.10, None, runners.hooks),
    Row("plugins", "start with 300 Lua plugins, beyond a start without", "ms", 60, None, runners.plugins),
    Row("plugins-memory", "their memory", "MB", 20, None, runners.plugins),
    Row("agents-memory", "100 agents in the background of one process", "MB each", 10, None, runners.agents),
    Row("agents-round", "a round of the agent above them", "× alone", 1.5, None, runners.agents),
    Row("agents-first", "a call of `task` → the first request of its sub-agent", "ms", 15, None, runners.agents),
    Row("fleet-2", "300 tasks of a queue, two workers", "× the time of one", 0.59, None, runners.fleet),
    Row("vault-index", "10 MB of notes read for the first time (7,440 notes)", "ms", 2000, None, runners.vault),
    Row("vault-change", "one note that changed, p95", "ms", 20, None, runners.vault),
    Row("vault-search", "a search for two words as frequent as in the notes, 100,000 notes, p95", "ms", 10, None, runners.vault),
    Row("vault-neighbours", "neighbours of a note to depth 2, 100,000 notes, p95", "ms", 5, None, runners.vault),
)  # fmt: skip


def measure(passes: int, reps: int, only: list[str]) -> None:
    """Measure the rows, and merge them into what is known of others."""
    file = Path(HOME) / "performance.json"
    known = json.loads(file.read_text()) if file.exists() else {"rows": {}}
    rows = [row for row in ROWS if not only or row.name in only]
    samples: dict[str, list[runners.Sample]] = {}
    for number in range(passes):
        for runner in dict.fromkeys(row.runner for row in rows):
            is_quiet = quiet(60)
            print(f"pass {number + 1}: {runner.__name__}{'' if is_quiet else ' (the machine is busy)'}", flush=True)
            for name, sample in runner(reps).items():
                samples.setdefault(name, []).append(sample)
    for row in rows:
        if row.name in samples:
            known["rows"][row.name] = summary(samples[row.name])
            bar = "" if row.bar is None else f"bar {row.bar:g}"
            print(f"{row.name:16} {known['rows'][row.name]['figure']:8.2f} {row.unit:26} {bar}")
        else:
            print(f"{row.name:16} not measured")
    known["machine"] = runners.machine()
    known["measured"] = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    known["passes"], known["reps"] = passes, reps
    file.write_text(json.dumps(known, indent=1))


def summary(samples: list[runners.Sample]) -> dict[str, object]:
    """The median of the passes, how far they lie apart, and what that of the median was made of."""
    ordered = sorted(samples, key=lambda sample: sample.figure)
    middle = ordered[len(ordered) // 2]
    return {
        "figure": statistics.median(sample.figure for sample in samples), "least": ordered[0].figure, "most": ordered[-1].figure,
        "made_of": middle.made_of,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "peers", "interpreters", "write"))
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--note", default="", help="of `write --only`: how the run differs from that of the page")
    parser.add_argument("--only", nargs="*", default=[], choices=[row.name for row in ROWS])
    options = parser.parse_args()
    if options.what == "write":
        file = Path(HOME) / "performance.json"
        if options.only:
            page.replace_rows([row for row in ROWS if row.name in options.only], file, options.note)
        else:
            page.write(ROWS, file)
        return
    runners.isolate(sys.argv[1:])
    with runners.prepared():
        if options.what == "measure":
            measure(options.passes, options.reps, options.only)
        elif options.what == "peers":
            keep("peers", peers.measure(options.reps))
        else:
            interpreters.measure(options.reps)


def keep(name: str, figures: object) -> None:
    """Beside what is known already."""
    file = Path(HOME) / "performance.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(known | {name: figures}, indent=1))


if __name__ == "__main__":
    main()
