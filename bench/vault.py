"""The vault against its bars: python bench/vault.py [--notes 100000]

10 MB of notes indexed ≤ 2 s · one change ≤ 20 ms · text search, p95 at 100,000 notes ≤ 10 ms · neighbours to depth 2 ≤ 5 ms.
Times are wall clock of one process (and its CPU time, which a busy machine disturbs less); notes are made by a fixed seed, in a
temporary folder. CRU_BENCH_FOLDER chooses another one.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

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


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """(wall clock, CPU) in milliseconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


def row(what: str, wall: float, cpu: float, bar: float) -> None:
    print(f"{what:<48} {wall:10.2f} ms  (CPU {cpu:9.2f} ms)  bar {bar:6.0f} ms  {'ok' if wall <= bar else 'MISSED'}", flush=True)


def percentile(times: list[float], part: float) -> float:
    return sorted(times)[min(int(len(times) * part), len(times) - 1)]


def measure_index(folder: Path, chance: random.Random) -> None:
    root = folder / "ten"
    total = write_notes(root, 6_700, 1_300, chance)
    vault = find_vault(VaultSettings(str(root)), folder / "home")
    row(f"index {total / 1e6:.1f} MB, 6,700 notes", *timed(vault.update), 2000)
    row("look at the folder again, nothing changed", *timed(vault.update), 2000)
    changes = []
    for number in range(50):
        path = f"f{number % 30}/n{200 * (number % 30) + number}.md"
        (root / path).write_text(f"# changed {number}\n[[n{number}]]\n")
        changes.append(timed(lambda path=path: vault.update_notes((path,))))
    row("one change (median of 50)", *(statistics.median(times) for times in zip(*changes, strict=True)), 20)
    vault.close()


def measure_answers(folder: Path, count: int, chance: random.Random) -> None:
    root = folder / "many"
    write_notes(root, count, SMALL, chance)
    vault = find_vault(VaultSettings(str(root)), folder / "home")
    row(f"index {count:,} notes", *timed(vault.update), 1e6)
    words = vocabulary()
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    for what, queries in (
        ("words drawn as in the notes, two", [" ".join(chance.choices(words, weights, k=2)) for _ in range(200)]),
        ("one word, drawn evenly", [chance.choice(words) for _ in range(200)]),
        ("two words, drawn evenly", [" ".join(chance.choices(words, k=2)) for _ in range(200)]),
    ):
        times = [timed(lambda query=query: vault.search(query)) for query in queries]
        row(f"search p95: {what}", *(percentile(list(each), 0.95) for each in zip(*times, strict=True)), 10)
    notes = [vault.find(f"n{chance.randrange(count)}") for _ in range(200)]
    times = [timed(lambda note=note: vault.neighbors(note.id, 2)) for note in notes]
    row("neighbours to depth 2 (p95)", *(percentile(list(each), 0.95) for each in zip(*times, strict=True)), 5)
    vault.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=100_000, help="of the large vault")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("CRU_BENCH_FOLDER")) as name:
        chance = random.Random(1)
        measure_index(Path(name), chance)
        measure_answers(Path(name), options.notes, chance)
    return 0


if __name__ == "__main__":
    sys.exit(main())
