"""What cru's own process costs in instructions, Python calls and system calls: figures that do not depend on the machine's load.

usage: python -m bench.instructions [--source SRC] [--floor] [--git] [--command 'true {i}'] [--json]

The model is bench/mockllm.py, each turn calls the shell tool. Instructions are those of user space (valgrind's cachegrind,
PYTHONHASHSEED=0), of cru's process alone. `--source` is a folder to import cru from instead of the installed one, `--floor` measures
bench/floor_harness.py. A round is the difference between 25 and 5 rounds, divided by 20.
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
CONFIG = """model = "mock"
base_url = "{url}/v1"
api_key = "bench"
mode = "trust"
[sandbox]
mode = "{sandbox}"
"""
RUN = "import sys; sys.argv = ['cru', 'go']; from cru.faces.cli.main import main; main()"
CALLS = """
import atexit, os, sys, threading
counts = [0]
def profile(frame, event, arg):
    if event == "call" or event == "c_call":
        counts[0] += event == "call"
real = os._exit
def leave(code):
    sys.setprofile(None)
    os.write(2, b"CALLS %d MODULES %d\\n" % (counts[0], len(sys.modules)))
    real(code)
os._exit = leave
sys.setprofile(profile)
"""
MODULES = """
import os, sys
real = os._exit
def leave(code):
    ran = [name for name, module in sys.modules.items() if type(module).__name__ != "DeferredModule"]
    os.write(2, ("MODULES " + " ".join(ran) + "\\n").encode())
    real(code)
os._exit = leave
"""


class Bench:
    def __init__(self, options: argparse.Namespace, port: int) -> None:
        self.options, self.port = options, port
        self.folder = Path(tempfile.mkdtemp(prefix="cru-instructions-"))
        self.home, self.project = self.folder / "home", self.folder / "project"
        (self.home / ".cru").mkdir(parents=True)
        self.project.mkdir()
        (self.project / "a.txt").write_text("a\n")
        if options.git:
            for words in (["init", "-q"], ["add", "."], ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "a"]):
                subprocess.run(["git", *words], cwd=self.project, check=True)

    def environment(self, rounds: int) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.port}/n/{rounds}"
        shutil.rmtree(self.home / ".cru", ignore_errors=True)
        (self.home / ".cru").mkdir(parents=True)
        sandbox = "auto" if self.options.sandbox else "off"
        (self.home / ".cru" / "config.toml").write_text(CONFIG.format(url=url, sandbox=sandbox))
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "FLOOR_URL": url}
        if self.options.source:
            env["PYTHONPATH"] = self.options.source
        return env

    def command(self, prefix: str = "") -> list[str]:
        if self.options.floor:
            return [sys.executable, str(HERE / "floor_harness.py")]
        return [sys.executable, "-c", prefix + RUN]

    def run(self, words: list[str], rounds: int, **more: str) -> str:
        run = subprocess.run(
            words, env={**self.environment(rounds), **more}, cwd=self.project, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert run.returncode == 0 and "DONE" in run.stdout, run.stdout + run.stderr
        return run.stderr

    def instructions(self, rounds: int) -> float:
        """Millions of a run with so many rounds."""
        out = self.folder / "cachegrind.out"
        words = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={out}", *self.command()]
        found = re.search(r"I\s+refs:\s+([\d,]+)", self.run(words, rounds))
        assert found
        return int(found[1].replace(",", "")) / 1e6

    def calls(self, rounds: int) -> tuple[int, int]:
        """Calls of Python functions by the main thread."""
        err = self.run(self.command(CALLS), rounds)
        found = re.search(r"CALLS (\d+) MODULES (\d+)", err)
        assert found, err
        return int(found[1]), int(found[2])

    def modules(self, rounds: int) -> set[str]:
        return set(self.run(self.command(MODULES), rounds).rpartition("MODULES ")[2].split())

    def system_calls(self, rounds: int) -> tuple[int, int]:
        """Those of the main thread, and of the others of that process."""
        trace = self.folder / "strace"
        for old in self.folder.glob("strace*"):
            old.unlink()
        self.run(["strace", "-ff", "-qq", "-o", str(trace), *self.command()], rounds)
        files = {int(path.suffix[1:]): path.read_text().splitlines() for path in self.folder.glob("strace.*")}
        main = min(files)
        threads = set()
        for lines in files.values():
            for line in lines:
                if "CLONE_THREAD" in line:
                    threads.add(int(line.rpartition("=")[2].split()[0]))
        known = {pid for pid in threads if pid in files and pid != main and _is_of(main, pid, files)}
        return len(files[main]), sum(len(files[pid]) for pid in known)


def _is_of(main: int, pid: int, files: dict[int, list[str]]) -> bool:
    return any(
        "CLONE_THREAD" in line and line.rstrip().endswith(f"= {pid}") for line in files[main]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", default="")
    parser.add_argument("--floor", action="store_true")
    parser.add_argument("--git", action="store_true")
    parser.add_argument("--sandbox", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--command", default="true {i}")
    options = parser.parse_args()
    port = 18000 + os.getpid() % 1000
    server = subprocess.Popen([sys.executable, str(HERE / "mockllm.py"), "--port", str(port)], stdout=subprocess.DEVNULL,
                              env={**os.environ, "MOCK_COMMAND": options.command})
    try:
        time.sleep(1)
        bench = Bench(options, port)
        result: dict[str, object] = {}
        only = options.only.split(",") if options.only else ["instructions", "calls", "system", "modules"]
        if "instructions" in only:
            bench.run(bench.command(), 1)  # bytecode is compiled
            start, one, five, many = (bench.instructions(rounds) for rounds in (0, 1, 5, 25))
            round_ = (many - five) / 20
            result |= {"start": round(start, 1), "first call beyond": round(one - start - round_, 2), "round": round(round_, 3)}
        if not options.floor:
            if "calls" in only:
                result["calls per round"] = (bench.calls(25)[0] - bench.calls(5)[0]) / 20
                result["calls at start"] = bench.calls(0)[0]
            if "modules" in only:
                first = bench.modules(0)
                result["modules at start"] = len(first)
                result["own modules at start"] = sum(m.split(".")[0] == "cru" for m in first)
                new = sorted(bench.modules(1) - first)
                result["modules of the first call"] = len(new)
                result["names"] = " ".join(new)
        if "system" in only:
            few, more = bench.system_calls(5), bench.system_calls(25)
            result["system calls per round"] = [(b - a) / 20 for a, b in zip(few, more)]
        print(json.dumps(result, indent=1))
        shutil.rmtree(bench.folder)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
