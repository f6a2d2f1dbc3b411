"""What the build of the interpreter gives: start → first request with cru installed for each of $BENCH_PYTHONS ("label=path …")."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
from pathlib import Path

from bench import runners
from bench.run_peer import B as HOME, Cru


class CruOf(Cru):
    """cru installed for another interpreter."""

    def __init__(self, label: str) -> None:
        self.name = f"cru-{label}"
        self.bin = f"{HOME}/py/{self.name}/bin/cru"


def install(label: str, python: str) -> None:
    """Anew, as run.sh does it for its own."""
    folder = Path(HOME, "py", f"cru-{label}")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    source = os.environ.get("BENCH_SOURCE", str(runners.ROOT))
    pip = [
        str(folder / "bin" / "pip"),
        "install",
        "-q",
        "--disable-pip-version-check",
        "-c",
        str(runners.ROOT / "constraints.txt"),
    ]
    subprocess.run([*pip, source], check=True)


def measure(reps: int) -> None:
    """Into performance.json, the first of them as the base of the ratios."""
    choices = dict(word.split("=", 1) for word in os.environ.get("BENCH_PYTHONS", "").split())
    builds: dict[str, list[float]] = {label: [] for label in choices}
    for _ in range(reps):
        for label, taken in builds.items():
            run, _ = runners.one(CruOf(label), runners._mock, 1)
            taken.append(run["ttfr_ms"])
    base = statistics.median(builds[next(iter(builds))]) if builds else 1.0
    file = Path(HOME, "performance.json")
    known = json.loads(file.read_text())
    known["interpreters"] = {
        label: {
            "ratio": statistics.median(taken) / base,
            "ms": statistics.median(taken),
            "version": subprocess.run([choices[label], "-VV"], capture_output=True, text=True).stdout.strip(),
        }
        for label, taken in builds.items()
    }
    file.write_text(json.dumps(known, indent=1))


if __name__ == "__main__":  # run.sh installs before the network is cut off
    for pair in os.environ.get("BENCH_PYTHONS", "").split():
        install(*pair.split("=", 1))
