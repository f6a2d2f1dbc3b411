"""Writes docs/performance.md from the figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import peers

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
PICTURE = PAGE.with_suffix(".svg")
HEAD = """# Performance

Written by `make bench` (`python -m bench.performance`) from what it measured; do not edit. How to run it: [bench/README.md](../bench/README.md).

What cru promises, and what it reached. A figure is the median of {passes} passes over all rows, beside the least and the most of them; within a
pass everything that is compared runs in turns, {reps} times ({few} times where a run takes long), and medians count. Ratios say more than times: the machine is
{processor} with {cores} cores, {system}, and cru runs on {python}. Commit {commit}, {measured}.

| what | figure | of the passes | bar | aim | made of | |
|---|---|---|---|---|---|---|
"""
BESIDE = """
## Beside other agents

Every agent that was installed where this was measured, one-shot against the same server: medians of {runs} runs, in brackets the least and the most; the agents
take turns. A round is one call of the shell tool with `true`. Memory is that of the largest process; others' load is what else kept the processors busy
meanwhile, in processors. `floor-raw` and `floor-pyreqwest` are the bare harness, which does nothing but ask, parse, log and run the tool. A dash: it has no
rounds, or could not be told to trust a made authority. The agents do different work in a round (codex starts a login shell, opencode takes snapshots of the
project): [bench/README.md](../bench/README.md) has how each is started.

![start and round of each agent](performance.svg)

"""
HOW = """
## How it is measured

- The model is a server on this machine that answers at once (`bench/mockllm.py`), in a network that has only a loopback; each agent runs as its
  users run it, with a home of its own, one-shot, installed and compiled.
- **Start → first request**: from just before the process is made until the first byte of its first request is there. Over https it is the
  first byte inside of the connection: the certificate is of a made authority, which is verified as any other.
- **A round**: from the model's answer, a call of the shell tool with `true`, to the first byte of the next request. The bare harness
  (`bench/floor_harness.py`) parses, logs, runs the tool and asks again, over asyncio streams, and does nothing else.
- **Handlers**: CPU time of one dispatch of a call of 1 kB, the least of many rounds (`bench/handlers.py`). **A command hook**: a dispatch
  beside a bare spawn of the same command with pipes (`bench/hooks.py`). A function of Python on the bus gets the payload as it is; a
  handler of a plugin gets a table that is its own, and what it returns is compared with what it was given: about half of its time.
- **300 Lua plugins**: about half of it is Lua's: a plugin has its own copy of the standard library and of the names of `cru` (55 µs, 13 kB), so that
  nothing that it does to them reaches another one, and its text is compiled. The rest is one read of its file, one crossing into Lua, and
  registering what it listens to. It must run at the start: nobody else knows which events it listens to.
- **100 agents** (`bench/agents.py`): each asks a model that answers after two seconds, and calls a tool each time, while the agent above them has a model that
  answers at once. Counted is what somebody listens to, what is in each log, and that each answer came to the main agent once.
- **Tasks of a queue** (`bench/fleet.py`): each is a run of cru with two requests and a command; afterwards each result is there once, and no command ran twice.
- **The vault** (`bench/vault.py`): wall clock in one process on notes of a fixed seed, with words as uneven as in a language: the commonest is in 98 % of
  them. The fixed loop is half a million additions in Python, timed before and after: divide by it to compare machines.
- **The sandbox** is off in all rows but its own: peers that have one run without it, and so does cru.
- **A writing command** (`echo N >> notes.txt`) is one after which undo looks at the work tree: processor time of cru and all that it starts.
- **Instructions and calls** (`bench/instructions.py`): user-space instructions of cru's own process, Python functions and system calls of its main
  thread (without waits of threads for one another), in a git project. They are the same on every run, so tests hold them
  (`tests/faces/test_budgets.py`); [decisions](decisions/performance.md) says what they consist of.
- **Beyond the bare interpreter**: less what `python -c pass` takes in the same environment.
- The tests hold what a clock cannot: which modules a start loads (`tests/faces/test_budgets.py`), how often something is encoded, read or judged.

## Bars that are missed, and why

- **A round beside the bare harness.** It takes fewer instructions than that of the bare harness, and seven system calls more: the log is forced to
  the disk by a thread, each command is written to a table from which it is ended if cru is killed, it carries a mark that finds what it leaves
  running, and its exit is awaited. The bare harness does none of this. Over 1,000 rounds cru is faster, since it encodes each message once.
- **A start beside the bare harness.** Of 310 million instructions 245 are those of the bare harness (the interpreter, asyncio, JSON); the rest reads
  settings, hooks and the log, and prepares the tools.
- **A function of Python that changes 1 kB.** The bar is that of a machine on which each handler takes four fifths of the time; beside the bare
  bridge to Lua the figure has not changed.
- **300 Lua plugins.** See above: each has its own copy of the standard library, and must run at the start.

## Where the time goes

**A round** (about 2.3 ms when its pieces were marked, on a slower machine; medians of its pieces, each marked in the running process; microseconds):

| µs | what | in the bare harness |
|---|---|---|
| 1,060 | bash, from its exec to its exit | the same |
| 90 | the fork and exec, as seen by the parent | the same |
| 110 | preparing the child, its pipes and its pidfd | in place of it a thread for each child, which costs more |
| 75 | reading the reply: head, events, deltas | a little less: it trusts the reply |
| 130 | log, announce and permit: two writes that first look whether the log is still the same file, eight events, one judgement | two writes |
| 110 | what follows the result: its events, the loop guard, the states | – |
| 75 | the next request: new messages encoded, SHA-256 and recipe of it in the trace | the whole conversation encoded anew: more from some 150 rounds on |
| 85 | sending it | the same |
| 165 | the log forced to the disk beside it: a thread that needs the interpreter twice, and the kernel's work | – |

So with 20 rounds the bar is out of reach as long as a round is on the disk before the next one ends: without that (fdatasync taken out) it is 1.07 × the
bare harness, and 0.07 is what events, permissions, log and trace cost together. With 200 and more the bare harness pays for encoding again what
was encoded, and loses. A slower disk is felt only by a model that answers faster than it: a batch waits until the round before is safe.

What is missing to 2.3 ms are wake-ups, and the server.

**Over https**: some 4 ms for the connection and the handshake, the server's part included; some 3 ms for loading the library (its object code is 9.7 MB)
while the rest of the start wants the interpreter too; the rest is the second core, which is busy for 25 ms with the seed of the library's random
numbers (begun early and done in time, but it shares caches and memory with the start). Where no variable names other certificates, the system's are
read: 3.7 ms more for the file and the folder of Debian, 290 files.

## What makes a start fast for you

- An interpreter that was built with profiles and link-time optimization (PGO and LTO) starts faster than one that was compiled plainly, as
  pyenv does unless it is told otherwise (`PYTHON_CONFIGURE_OPTS="--enable-optimizations --with-lto" pyenv install …`). Debian's and
  Ubuntu's, and those of python.org and uv are built so.
- Install without `-e`: an editable install looks up its modules the long way.
- Over https the time to the server counts twice; a proxy near you adds to it. `SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt` (and no
  `SSL_CERT_DIR`) reads one file instead of a whole folder: 2 ms less.
"""


def write(rows: Sequence[Any], file: Path) -> None:
    """From the JSON that `measure` left."""
    known = json.loads(file.read_text())
    few = max(known["reps"] // 2, 1)
    text = HEAD.format(
        **known["machine"], passes=known["passes"], reps=known["reps"], few=few, measured=known["measured"]
    )
    text += (
        "".join(row_text(row, known["rows"].get(row.name)) for row in rows)
        + beside(known.get("peers", {}))
        + HOW
        + interpreters(known.get("interpreters", {}))
    )
    PAGE.write_text(text)
    print(PAGE)


def replace_rows(rows: Sequence[Any], file: Path, note: str) -> None:
    """Only these rows of the page as it is; each says when it was measured. note: how that run differs from the page's, for people"""
    known = json.loads(file.read_text())
    day, commit = known["measured"].split()[0], known["machine"]["commit"]
    lines = PAGE.read_text().splitlines(keepends=True)
    for row in rows:
        figures = known["rows"][row.name]
        text = row_text(row, figures | {"made_of": f"{figures['made_of']}; {day}"})
        at = next(at for at, line in enumerate(lines) if line.startswith(f"| {row.what} |") and f" {row.unit} |" in line)
        lines[at] = text
    behind = 1 + max(at for at, line in enumerate(lines[: lines.index("## Beside other agents\n")]) if line.startswith("|"))
    lines[behind:behind] = [f"\nThe rows with {day} were measured on that day, at commit {commit}. {note}\n"]
    PAGE.write_text("".join(lines))
    print(PAGE)


def beside(known: dict[str, Any]) -> str:
    """The table of all agents; draws the picture, too."""
    if not known:
        return ""
    PICTURE.write_text(peers.picture(known))
    runs = len(next(iter(known.values()))["ttfr_ms_all"])
    return BESIDE.format(runs=runs) + peers.table(known)


def row_text(row: Any, figures: dict[str, Any] | None) -> str:
    bar, aim = ("" if value is None else f"{value:g}" for value in (row.bar, row.aim))
    if figures is None:
        return f"| {row.what} | not measured | | {bar} {row.unit} | {aim} | | |\n"
    figure = figures["figure"]
    kept = "" if row.bar is None else "kept" if figure <= row.bar else "**not kept**"
    return (
        f"| {row.what} | {number(figure)} {row.unit} | {number(figures['least'])} – {number(figures['most'])} | {bar} | {aim} "
        f"| {figures['made_of']} | {kept} |\n"
    )


def number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 20 else f"{value:.1f}" if abs(value) >= 4 else f"{value:.2f}"


def interpreters(builds: dict[str, Any]) -> str:
    if not builds:
        return ""
    lines = [
        "",
        "What the build of the interpreter gives, start → first request over http:",
        "",
        "| build | ratio | ms |",
        "|---|---|---|",
    ]
    lines += [
        f"| {label}: {build['version']} | {build['ratio']:.2f} | {build['ms']:.0f} |" for label, build in builds.items()
    ]
    lines += [
        "",
        "Those are the interpreters of this machine, with cru installed anew for each; python.org's and uv's were not there to be compared.",
    ]
    return "\n".join(lines) + "\n"
