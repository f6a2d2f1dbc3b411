"""Coverage-guided fuzzing: `python -m tests.fuzz [TARGET…] --seconds 60 --seed 1` (make soak; needs the extra `fuzz`).

Each target runs in a process of its own, one after another, so long; its seed is printed, and the same seed begins with the same
inputs. What breaks a promise is saved in tests/data/fuzz/TARGET: mend it, and the file stays as a test.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SLOW = 1.5
"""Seconds of the processor that a text of LARGEST bytes may take."""
MEMORY_MB = 3000
LAST_LINES = 40


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=60, help="of each target")
    parser.add_argument("--seed", type=int, default=0, help="0: a random one")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.one:
        return fuzz(options.one, [*options.targets, *rest])
    from tests.fuzz.targets import TARGETS

    broken = [name for name in options.targets or TARGETS if not run(name, options.seconds, options.seed)]
    print(f"fuzzing: promises broken: {', '.join(broken)}" if broken else "fuzzing: all promises held")
    return 1 if broken else 0


def run(target: str, seconds: int, seed: int) -> bool:
    """Whether the target's promises held so long."""
    from tests.fuzz.seeds import LARGEST, seeds

    seed = seed or random.SystemRandom().randrange(1, 1 << 31)
    print(f"fuzzing: {target} for {seconds} s, --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="cru-fuzz-") as folder:
        corpus = Path(folder)
        for number, text in enumerate(seeds(target)):
            (corpus / str(number)).write_bytes(text)
        limits = (f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={LARGEST}", f"-rss_limit_mb={MEMORY_MB}")
        quiet = ("-print_final_stats=1", "-verbosity=0", "-timeout=20", f"-artifact_prefix={folder}/")
        words = [sys.executable, "-m", "tests.fuzz", "--one", target, str(corpus), *limits, *quiet]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        print(report(done.stdout, done.returncode == 0), flush=True)
    return done.returncode == 0


def report(output: str, is_whole: bool) -> str:
    """How many inputs there were, or how it ended."""
    lines = [line for line in output.splitlines() if not line.startswith(("INFO", "WARNING", '"', "#"))]
    return "\n".join(line for line in lines if "executed_units" in line) if is_whole else "\n".join(lines[-LAST_LINES:])


def fuzz(target: str, arguments: list[str]) -> int:
    try:
        import atheris
    except ImportError:
        print("fuzzing needs atheris: pip install -e '.[fuzz]' (Linux)")
        return 2
    with atheris.instrument_imports(include=["cru", "json", "tomllib", "yaml"]):
        from tests.fuzz.targets import TARGETS
    atheris.Setup([sys.argv[0], *arguments], watched(target, TARGETS[target]))
    atheris.Fuzz()
    return 0


def watched(target: str, read: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The target; a text that breaks its promise is saved before the error goes on."""

    def read_in_time(data: bytes) -> None:
        begin = time.process_time()
        try:
            read(data)
            spent = time.process_time() - begin
            assert spent < SLOW, f"{len(data)} bytes took {spent:.1f} s"
        except BaseException:
            print(f"fuzzing: {target}: saved in {save(target, data)}", file=sys.stderr, flush=True)
            raise

    return read_in_time


def save(target: str, data: bytes) -> Path:
    from tests.fuzz.seeds import FOUND

    path = FOUND / target / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


if __name__ == "__main__":
    sys.exit(main())
