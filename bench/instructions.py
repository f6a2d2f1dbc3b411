"""What cru's own process costs in instructions, Python calls and system calls: figures that do not depend on the machine's load.

usage: python -m bench.instructions [--python PROGRAM] [--source FOLDER] [--git] [--sandbox] [--only instructions,calls,system,modules]
       python -m bench.instructions --floor      of bench/floor_harness.py

The model is bench/mockllm.py, and each round calls the shell tool. Instructions are those of user space in cru's own process (valgrind's
cachegrind, PYTHONHASHSEED=0); Python and system calls are those of its main thread. A round is a twentieth of what 25 rounds cost beyond 5.
The first call is what one round costs beyond none, less a round. `--source` imports cru from a folder instead of the environment's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SETTINGS = 'model = "mock"\nbase_url = "{url}/v1"\napi_key = "bench"\nmode = "trust"\nsandbox.mode = "{sandbox}"\n'
RUN = "import sys; sys.argv = ['cru', 'go']; from cru.faces.cli.main import main; main()"
# Runs before cru: on its way out the process says on standard error how many functions were called and which modules are loaded.
COUNTER = """
import os, sys
count = 0
def profile(frame, event, argument):
    global count
    count += event == "call"
exit_now = os._exit
def report(code):
    sys.setprofile(None)
    names = [name for name, module in sys.modules.items() if type(module).__name__ != "DeferredModule"]
    os.write(2, f"CALLS {count} MODULES {' '.join(names)}\\n".encode())
    exit_now(code)
os._exit = report
sys.setprofile(profile)
"""


class Bench:
    """A home and a project, in which a program runs against the server at `port`."""

    def __init__(self, options: argparse.Namespace, port: int) -> None:
        self.options, self.port = options, port
        self.folder = Path(tempfile.mkdtemp(prefix="cru-instructions-"))
        self.home, self.project = self.folder / "home", self.folder / "project"
        self.project.mkdir()
        (self.project / "a.txt").write_text("a\n")
        if options.git:
            author = ("-c", "user.name=b", "-c", "user.email=b@b")
            for words in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "a")):
                subprocess.run(["git", *words], cwd=self.project, check=True)

    def run(self, words: list[str], rounds: int) -> str:
        """Return what a run with so many rounds in a fresh home prints on standard error."""
        url = f"http://127.0.0.1:{self.port}/n/{rounds}"
        shutil.rmtree(self.home, ignore_errors=True)
        (self.home / ".cru").mkdir(parents=True)
        sandbox = "auto" if self.options.sandbox else "off"
        (self.home / ".cru" / "config.toml").write_text(SETTINGS.format(url=url, sandbox=sandbox))
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
        env |= {"FLOOR_URL": url, "PYTHONUNBUFFERED": "1"} if self.options.floor else {}
        env |= {"PYTHONPATH": self.options.source} if self.options.source else {}
        done = subprocess.run(
            words, env=env, cwd=self.project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
        )
        if done.returncode or "DONE" not in done.stdout:
            raise SystemExit(f"{words[0]} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stderr

    def command(self, before: str = "") -> list[str]:
        python = self.options.python
        return [python, str(HERE / "floor_harness.py")] if self.options.floor else [python, "-c", before + RUN]

    def instructions(self, rounds: int) -> float:
        """Return the millions of a run: the least of three, since valgrind makes some steps so slow that cru reports them."""
        words = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={self.folder}/out"]
        taken = []
        for _ in range(3):
            found = re.search(r"I\s+refs:\s+([\d,]+)", self.run([*words, *self.command()], rounds))
            assert found
            taken.append(int(found[1].replace(",", "")) / 1e6)
        return min(taken)

    def counts(self, rounds: int) -> tuple[int, set[str]]:
        """Return how many Python functions the main thread calls, and the modules that are loaded at the end."""
        found = re.search(r"CALLS (\d+) MODULES (.*)", self.run(self.command(COUNTER), rounds))
        assert found
        return int(found[1]), set(found[2].split())

    def system_calls(self, rounds: int) -> int:
        """Return how many the main thread makes, but for futexes: how often threads wait for one another depends on the load."""
        for old in self.folder.glob("strace.*"):
            old.unlink()
        self.run(["strace", "-ff", "-qq", "-e", "trace=!futex", "-e", "signal=none", "-o", f"{self.folder}/strace", *self.command()], rounds)
        main = min(self.folder.glob("strace.*"), key=lambda path: int(path.suffix[1:]))
        return len(main.read_text().splitlines())


def measure(bench: Bench, only: list[str]) -> dict[str, object]:
    """Return the figures by name."""
    result: dict[str, object] = {}
    bench.run(bench.command(), 1)  # what is compiled at the first run
    if "instructions" in only:
        start, first, few, many = (bench.instructions(rounds) for rounds in (0, 1, 5, 25))
        a_round = (many - few) / 20
        result |= {"start": start, "first call": first - start - a_round, "round": a_round}
    if "calls" in only and not bench.options.floor:
        result["Python calls"] = (bench.counts(25)[0] - bench.counts(5)[0]) / 20
    if "system" in only:
        result["system calls"] = (bench.system_calls(25) - bench.system_calls(5)) / 20
    if "modules" in only and not bench.options.floor:
        start, called = bench.counts(0)[1], bench.counts(1)[1]
        result["modules at start"] = len(start)
        result["own modules at start"] = sum(name.split(".")[0] == "cru" for name in start)
        result["modules of the first call"] = sorted(called - start)
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in result.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--source", default="")
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--git", action="store_true", help="the project is a git work tree")
    parser.add_argument("--sandbox", action="store_true", help="commands are confined, as they are by default")
    parser.add_argument("--only", default="instructions,calls,system,modules")
    options = parser.parse_args()
    port = 18000 + os.getpid() % 1000
    server = subprocess.Popen([sys.executable, str(HERE / "mockllm.py"), "--port", str(port)], stdout=subprocess.DEVNULL)
    bench = Bench(options, port)
    try:
        time.sleep(1)
        print(json.dumps(measure(bench, options.only.split(",")), indent=1))
    finally:
        shutil.rmtree(bench.folder)
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
