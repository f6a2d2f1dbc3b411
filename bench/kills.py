"""kill -9 at any moment: 200 kills spread over scripted turns, and what each left behind (run by `make test-all`, or alone).

Half of the kills fall uniformly over the length of a turn, the rest where a state was hit least so far: the run is watched on
`--json` and killed right after it entered that state. The state of a kill is the last one that the dead process announced.

After each kill: every acknowledged entry is in the log (acknowledged: its id left on `--json`, or its text reached the server); the
log opens; `--resume` finishes the turn, or says that nothing is left to do; the next turn works and no lock is left.

usage: python -m bench.kills [KILLS]
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.kit import Call, HomeDir, Received, Reply, cru, home, server, start
from tests.kit.run import Started

STATES = ("receiving", "preparing", "calling", "responding", "tooling", "settling")
ROUNDS = 3
NOTHING_LEFT = "no unfinished prompt"


def rule(request: Received) -> Reply:
    """Three rounds of a small shell call, then the final text; the place in the script is counted from the request."""
    messages = request.body["messages"]
    last_prompt = max(i for i, m in enumerate(messages) if m["role"] == "user" and "prompt" in m["content"])
    done = sum(m["role"] == "tool" for m in messages[last_prompt:])
    if done < ROUNDS:
        return Reply("working", calls=[Call("bash", {"command": f"sleep 0.01; echo {done}"})], delay=0.01, pieces=2)
    return Reply("DONE", delay=0.01)


class Kill:
    """One run, one kill, and the checks."""

    def __init__(self, number: int, folder: Path, length: float, target: str) -> None:
        self.number = number
        self.folder = folder
        self.length = length
        self.target = target
        self.state = "before the first state"
        self.problems: list[str] = []

    def run(self) -> Kill:
        with server(rule) as model:
            here = home(self.folder, url=model.url)
            with start("--json", "-t", f"prompt {self.number}", home=here) as run:
                self._kill(run)
                lines = _lines(run.out)
            sent = {
                m["content"] for r in model.requests for m in r.body["messages"] if isinstance(m.get("content"), str)
            }
            self.state = next(
                (x["payload"]["new"] for x in reversed(lines) if x["type"] == "state:changed"), self.state
            )
            if not any(x["type"] == "result" for x in lines):
                self._check(here, lines, sent)
            else:
                self.state = "after the end"
        return self

    def _kill(self, run: Started) -> None:
        if not self.target:
            time.sleep(random.uniform(0.0, self.length))
        else:
            mark = f'"new":"{self.target}"'
            times = random.randint(1, ROUNDS) if self.target not in ("receiving", "settling") else 1
            deadline = time.monotonic() + 5
            while run.alive and run.out.count(mark) < times and time.monotonic() < deadline:
                pass
            if self.target in ("calling", "tooling"):
                time.sleep(random.uniform(0, 0.01))
        run.kill()
        run.wait()

    def _check(self, here: HomeDir, lines: list[dict[str, Any]], sent: set[str]) -> None:
        acknowledged = {i for x in lines if x["type"] == "log:appended" for i in x["payload"]["ids"]}
        missing = acknowledged - _ids(here)
        self._expect(not missing, f"lost entries {missing}")
        logged = json.dumps(_entries(here), ensure_ascii=False)
        for text in sent:
            if "prompt" in text or text.strip().isdigit():
                self._expect(
                    json.dumps(text, ensure_ascii=False)[1:-1] in logged, f"was sent, is not in the log: {text!r}"
                )
        shown = cru("-g", "0", home=here)
        self._expect(shown.code == 0, f"the log does not open: {shown.err}")
        if not acknowledged and not _ids(here):
            return
        again = cru("--resume", "-t", home=here)
        finished = again.code == 0
        self._expect(finished or NOTHING_LEFT in again.err, f"--resume: {again}")
        after = cru("-t", "prompt after", home=here)
        self._expect(after.code == 0 and "DONE" in after.out, f"the next turn: {after}")
        self._expect(not (here.context() / ".lock").exists(), "a lock is left")
        calls = Counter(e["entry_type"] for e in _entries(here) if e["entry_type"] in ("tool_call", "tool_result"))
        self._expect(calls["tool_call"] == calls["tool_result"], f"calls without results: {calls}")
        rebuilt = cru("trace", "--request", "1", home=here)
        self._expect(rebuilt.code == 0, f"the trace does not rebuild: {rebuilt.err}")

    def _expect(self, true: bool, problem: str) -> None:
        if not true:
            self.problems.append(f"kill {self.number} in {self.state}: {problem}")


def _lines(text: str) -> list[dict[str, Any]]:
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue  # the line that the kill cut
    return found


def _entries(here: HomeDir) -> list[dict[str, Any]]:
    path = here.context() / "context.jsonl"
    return _lines(path.read_text(errors="replace")) if path.exists() else []


def _ids(here: HomeDir) -> set[str]:
    return {e["id"] for e in _entries(here)}


def length_of_a_turn(folder: Path) -> float:
    """Seconds from start to exit of an undisturbed run, the shortest of three."""
    times = []
    for number in range(3):
        with server(rule) as model:
            (folder / str(number)).mkdir()
            here = home(folder / str(number), url=model.url)
            began = time.monotonic()
            done = cru("--json", "-t", "prompt 0", home=here)
            times.append(time.monotonic() - began)
            assert done.code == 0, done
    return min(times)


def run(kills: int = 200, seed: int = 1) -> tuple[Counter[str], list[str]]:
    """All kills; how many hit each state, and every problem."""
    random.seed(seed)
    hits: Counter[str] = Counter({state: 0 for state in STATES})
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        length = length_of_a_turn(folder)
        number = 0
        while sum(hits[s] for s in STATES) < kills and number < kills * 4:
            number += 1
            target = "" if number % 2 else min(STATES, key=lambda s: hits[s])
            place = folder / f"kill-{number}"
            place.mkdir()
            kill = Kill(number, place, length, target).run()
            hits[kill.state] += 1
            problems += kill.problems
    return hits, problems


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    began = time.monotonic()
    hits, problems = run(kills)
    print(f"{sum(hits.values())} kills in {time.monotonic() - began:.0f} s")
    for state, count in hits.items():
        print(f"  {state:<24} {count}")
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    sys.exit(1 if problems or not all(hits[s] for s in STATES) else 0)


if __name__ == "__main__":
    main()
