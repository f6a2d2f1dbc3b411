"""The vault against its bars: python bench/vault.py [--notes 100000] [--json]

10 MB of notes indexed ≤ 2 s · one change ≤ 20 ms · text search, p95 at 100,000 notes ≤ 10 ms · neighbours to depth 2 ≤ 5 ms.
Times are wall clock of one process, and its CPU time, which a busy machine disturbs less. Beside each stands a fixed loop of Python that
ran just before and after it, so that figures of two machines, or of one at two times, compare: divide by it. Notes are made by a fixed
seed, in a temporary folder. CRU_BENCH_FOLDER chooses another one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cru.vault import VaultSettings
from cru.vault.vault import find_vault

WORDS = 5_000
SMALL = 300
"""Bytes of a note of the large vault."""


def vocabulary() -> list[str]:
    chance = random.Random(1)
    letters = "abcdefghijklmnoprstuvwz"
    return ["".join(chance.choices(letters, k=chance.randint(3, 10))) for _ in range(WORDS)]


def write_notes(root: Path, count: int, size: int, chance: random.Random) -> int:
    """Notes of about that many bytes, in folders of 200; returns the bytes of all. Words are as uneven as in a language."""
    words, weights = vocabulary(), [1 / rank for rank in range(1, WORDS + 1)]
    total = 0
    for number in range(count):
        folder = root / f"f{number // 200}"
        if number % 200 == 0:
            folder.mkdir(parents=True)
        text = " ".join(chance.choices(words, weights, k=size // 8))
        links = " ".join(f"[[n{chance.randrange(count)}]]" for _ in range(3))
        lines = f"---\nstatus: {chance.choice(['open', 'done'])}\n---\n# {chance.choice(words)}\n\n{text}\n\n{links} #{chance.choice(words[:50])}\n"
        (folder / f"n{number}.md").write_text(lines)
        total += len(lines)
    return total


class Times(NamedTuple):
    """Milliseconds of several runs. loop: of the fixed loop meanwhile"""

    wall: list[float]
    cpu: list[float]
    loop: float


def measure(works: Iterable[Callable[[], object]]) -> Times:
    wall, cpu, loops = [], [], [fixed_loop()]
    for work in works:
        began, used = time.perf_counter(), time.process_time()
        work()
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - used) * 1000)
    loops.append(fixed_loop())
    return Times(wall, cpu, statistics.mean(loops))


def fixed_loop() -> float:
    """What this processor takes now for work that never changes; of five times the median."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        total = 0
        for number in range(500_000):
            total += number
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def percentile(times: list[float], part: float) -> float:
    return sorted(times)[min(int(len(times) * part), len(times) - 1)]


class Report:
    """Prints rows, and keeps those with a name for docs/performance.md: {name: (figure, what it is made of)}."""

    def __init__(self, *, is_quiet: bool) -> None:
        self.figures: dict[str, tuple[float, str]] = {}
        self._is_quiet = is_quiet

    def add(self, what: str, times: Times, bar: float, name: str = "") -> None:
        p50, p95 = percentile(times.wall, 0.5), percentile(times.wall, 0.95)
        cpu = percentile(times.cpu, 0.95)
        if name:
            is_one = len(times.wall) == 1
            made_of = f"CPU {cpu:.1f} ms; {'' if is_one else f'p50 {p50:.1f} ms; '}the fixed loop {times.loop:.0f} ms"
            self.figures[name] = p95, made_of
        if not self._is_quiet:
            verdict = "" if not bar else f"bar {bar:.0f}  {'ok' if p95 <= bar else 'MISSED'}"
            print(
                f"{what:<44} p50 {p50:9.2f}  p95 {p95:9.2f} ms  CPU p95 {cpu:9.2f}  loop {times.loop:5.1f}  {verdict}",
                flush=True,
            )


def measure_index(folder: Path, chance: random.Random, report: Report) -> None:
    root = folder / "ten"
    total = write_notes(root, 7_440, 1_300, chance)
    vault = find_vault(VaultSettings(str(root)), folder / "home")
    report.add(f"index {total / 1e6:.1f} MB, 7,440 notes", measure([vault.update]), 2000, "vault-index")
    report.add("look at the folder again, nothing changed", measure([vault.update] * 5), 0)

    def change(number: int) -> Callable[[], object]:
        path = f"f{number % 30}/n{200 * (number % 30) + number}.md"
        (root / path).write_text(f"# changed {number}\n[[n{number}]]\n")
        return lambda: vault.update_notes((path,))

    report.add("one change", measure(change(number) for number in range(100)), 20, "vault-change")
    vault.close()


def measure_answers(folder: Path, count: int, chance: random.Random, report: Report) -> None:
    root = folder / "many"
    write_notes(root, count, SMALL, chance)
    vault = find_vault(VaultSettings(str(root)), folder / "home")
    report.add(f"index {count:,} notes", measure([vault.update]), 0)
    words = vocabulary()
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    drawn = {
        "two words drawn as in the notes": [" ".join(chance.choices(words, weights, k=2)) for _ in range(400)],
        "one word drawn as in the notes": chance.choices(words, weights, k=200),
        "the two commonest words": [f"{words[0]} {words[1]}"] * 20,
        "one word, drawn evenly": chance.choices(words, k=200),
        "two words, drawn evenly": [" ".join(chance.choices(words, k=2)) for _ in range(200)],
        "one of eight words (notes beside a prompt)": [" OR ".join(chance.choices(words, weights, k=8)) for _ in range(50)],
        "two words and a tag": [" ".join([*chance.choices(words, weights, k=2), f"#{chance.choice(words[:50])}"]) for _ in range(50)],
        "the beginning of a word": [f"{word[:3]}*" for word in chance.choices(words, k=50)],
    }  # fmt: skip
    for number, (what, queries) in enumerate(drawn.items()):
        times = measure(partial(vault.search, query) for query in queries)
        report.add(f"search: {what}", times, 10, "" if number else "vault-search")
    notes = [vault.find(f"n{chance.randrange(count)}") for _ in range(200)]
    times = measure(partial(vault.neighbors, note.id, 2) for note in notes)
    report.add("neighbours to depth 2", times, 5, "vault-neighbours")
    vault.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=100_000, help="of the large vault")
    parser.add_argument("--json", action="store_true", help="only what docs/performance.md shows")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("CRU_BENCH_FOLDER")) as name:
        chance = random.Random(1)
        report = Report(is_quiet=options.json)
        measure_index(Path(name), chance, report)
        measure_answers(Path(name), options.notes, chance, report)
        if options.json:
            print(json.dumps(report.figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
