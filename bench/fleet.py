"""`python -m bench.fleet [TASKS]`: how many tasks a minute a pool of 1, 2 and 4 does, and as many workers on Postgres; and whether every
result is there once.

Each task is a run of cru with two requests to the scripted model and one call of bash, which appends a line to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec
from tests.kit.databases import Databases
from tests.kit.home import HomeDir, home
from tests.kit.postgres import postgres, programs
from tests.kit.run import program as own_program

SCRIPT = 'call: bash {{"command": "echo $CRU_CONTEXT >> {count}"}}\nusage: input=100 output=10\n---\ntext: done\nusage: input=120 output=5\n'
WORKER = ("worker", "--once", "--beat", "0.5")
BATCH = ("batch", "p.jsonl", "--name", "b", "--max-deaths", "50")


class FleetRun:
    """A batch of many tasks, and what works on it: `cru batch` alone, or workers on the database at `url`. shared: every second worker has
    another home, and conversations are in the database."""

    def __init__(self, folder: Path, tasks: int, url: str = "", shared: bool = False, program: str = "") -> None:
        self._program = program or str(own_program())
        self.home: HomeDir = home(folder)
        self._url = url
        self._shared = ("--shared",) if shared else ()
        self._other = HomeDir(folder / "other", self.home.project) if shared else self.home
        self._other.path.mkdir(exist_ok=True)
        self._started = 0
        self.tasks = tasks
        self.count = folder / "count"
        self.deaths = 0
        self._env = {**self.home.env, **({"CRU_DATABASE_URL": url} if url else {})}
        (folder / "script.txt").write_text(SCRIPT.format(count=self.count))
        self.home.configure(f'model = "scripted:{folder / "script.txt"}"\nmode = "trust"\n')
        lines = (msgspec.json.encode({"prompt": f"task {n}", "id": f"t{n}"}) for n in range(tasks))
        (self.home.project / "p.jsonl").write_bytes(b"\n".join(lines))
        if shared:
            self._other.configure((self.home.cru / "config.toml").read_text())
        if url:
            self._cru(*BATCH, "--queue", *self._shared)

    def work(self, size: int, kills: int = 0, seed: int = 1) -> float:
        """Seconds until all tasks are finished, by `size` workers or a pool of that size. Between kills about as many tasks are done."""
        chance = random.Random(seed)
        begin = time.monotonic()
        running = [self._start(size) for _ in range(size if self._url else 1)]
        marks = sorted(chance.sample(range(1, self.tasks - size), kills), reverse=True)
        try:
            while any(worker.poll() is None for worker in running):
                if marks and self._finished() >= marks[-1]:
                    marks.pop()
                    alive = [worker for worker in running if worker.poll() is None]
                    if not alive:
                        break
                    victim = chance.choice(alive)
                    victim.kill()
                    victim.wait()
                    self.deaths += 1
                    running[running.index(victim)] = self._start(size)
                time.sleep(0.05)
        finally:
            for worker in running:
                if worker.poll() is None:
                    worker.send_signal(signal.SIGKILL)
                worker.wait()
        return time.monotonic() - begin

    def problems(self) -> list[str]:
        """What is not as it has to be: each result once, each answer paid once, no command run twice."""
        out = self.home.project / "r.jsonl"
        self._cru(*BATCH, "--out", str(out), *self._shared, status=1)
        if self._shared:
            self._cru("batch", "--name", "b", "--fetch")
        results = [msgspec.json.decode(line) for line in out.read_bytes().splitlines()]
        problems = [f"{r['id']}: {r['status']} {r.get('error', '')}" for r in results if r["status"] != "done"]
        if sorted(r["id"] for r in results) != sorted(f"t{n}" for n in range(self.tasks)):
            problems.append(f"{len(results)} results of {self.tasks} tasks")
        ran = Counter(self.count.read_text().split())
        problems += [f"{name}: its command ran {times} times" for name, times in ran.items() if times > 1]
        for number in range(self.tasks):
            log = self.home.log(f"b-t{number}")
            replies = sum("model" in e.get("metadata", {}) for e in log)
            asked = sum(e.get("role") == "user" for e in log)
            if (replies, asked) != (2, 1):
                problems.append(f"t{number}: {replies} replies to {asked} prompts")
        return problems

    def _finished(self) -> int:
        if not self._url:
            journal = self.home.cru / "fleet" / "batches" / "b.jsonl"
            return journal.read_bytes().count(b'"result":{') if journal.exists() else 0
        import psycopg

        with psycopg.connect(self._url) as server:
            row = server.execute("SELECT COUNT(*) FROM cru_items WHERE status <> ''").fetchone()
        return int(row[0]) if row else 0

    def _start(self, size: int) -> subprocess.Popen[bytes]:
        self._started += 1
        env = {**self._env, "HOME": str((self._other if self._started % 2 else self.home).path)}
        words = WORKER if self._url else (*BATCH, "--parallel", str(size))
        return subprocess.Popen(
            [self._program, *words], env=env, cwd=self.home.project, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _cru(self, *words: str, status: int = 0) -> None:
        """status: the largest that is no error of the command itself; 1: some tasks did not succeed."""
        done = subprocess.run(
            [self._program, *words], env=self._env, cwd=self.home.project, stdin=subprocess.DEVNULL,
            capture_output=True, text=True,
        )  # fmt: skip
        if not 0 <= done.returncode <= status:
            raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr[-2000:]}")


def measure(tasks: int, size: int, program: str, url: str = "") -> float:
    """Tasks a minute. Ends the process if a result is not there exactly once, or was paid twice."""
    with tempfile.TemporaryDirectory() as folder:
        run = FleetRun(Path(folder), tasks, url, program=program)
        rate = tasks * 60 / run.work(size)
        if problems := run.problems():
            raise SystemExit(f"{size} at once: {problems}")
        return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="?", type=int, default=1000)
    parser.add_argument("--program", default="", help="the cru to measure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.json:
        one, two = (measure(options.tasks, size, options.program) for size in (1, 2))
        print(json.dumps({"fleet-2": (one / two, f"{one:.0f} and {two:.0f} tasks a minute, two requests and a command each")}))
        return
    print(f"{options.tasks} tasks of two requests and a command each, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    for size in (1, 2, 4):
        rate = measure(options.tasks, size, options.program)
        print(f"cru batch --parallel {size}: {rate:.0f} tasks/min; no result lost, none twice", flush=True)
    if programs() is None:
        print("workers are not measured: Postgres is not installed")
        return
    with postgres() as server:
        databases = Databases(server)
        for size in (1, 2, 4):
            rate = measure(options.tasks, size, options.program, databases.new())
            print(f"{size} workers on Postgres: {rate:.0f} tasks/min; no result lost, none twice", flush=True)


if __name__ == "__main__":
    main()
