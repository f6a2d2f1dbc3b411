"""The vault against its bars: python bench/vault.py [--notes 100000] [--json] [--meaning]

10 MB of notes indexed ≤ 2 s · one change ≤ 20 ms · text search, p95 at 100,000 notes ≤ 10 ms · neighbours to depth 2 ≤ 5 ms.
--meaning measures search by meaning alone (the extra `semantic`): a query compared with 100,000 passages ≤ 20 ms.
Times are wall clock of one process, and its CPU time, which a busy machine disturbs less. Beside each stands a fixed loop of Python that
ran just before and after it, so that figures of two machines, or of one at two times, compare: divide by it. Notes are made by a fixed
seed, in a temporary folder. CRU_BENCH_FOLDER chooses another one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cru.features.vault import VaultSettings
from cru.features.vault.semantic.model import load_embedder
from cru.features.vault.vault import find_vault

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


class RandomPassages:
    """Vectors of passages are drawn, since 10,000 would take a minute; a query goes through the model."""

    def __init__(self) -> None:
        import numpy as np

        self.model = load_embedder()
        self.name = f"{self.model.name} drawn"
        self._chance = np.random.default_rng(1)

    def embed(self, texts):
        if len(texts) == 1:
            return self.model.embed(texts)
        vectors = self._chance.standard_normal((len(texts), 512)).astype("f4") + 0.05
        return vectors / abs((vectors**2).sum(axis=1, keepdims=True)) ** 0.5


def measure_meaning(folder: Path, chance: random.Random, report: Report) -> None:
    import numpy as np

    from cru.features.vault.semantic.store import _TABLES
    from cru.features.vault.semantic.vectors import VectorTable
    from cru.features.vault.search.modes import SearchMode
    from cru.features.vault.vault import Vault

    report.add("load the model", measure([load_embedder]), 0)
    count = 100
    texts = (Path(__file__).parent.parent / "tests/data/search/notes.txt").read_text().split("\n# ")
    (folder / "few").mkdir()
    for number in range(count):  # words of a language: those that are drawn have three times as many tokens
        (folder / "few" / f"n{number}.md").write_text("\n\n".join(chance.choices(texts, k=8)))
    vault = find_vault(VaultSettings(str(folder / "few")), folder / "home")
    vault.update()
    vault.embed(0)
    report.add(f"embed {count} notes of 1.3 kB in English", measure([vault.embed]), 0)
    vault.close()
    write_notes(folder / "many", 10_000, SMALL, chance)
    model = RandomPassages()
    vault = Vault(folder / "many", folder / "home", VaultSettings(), lambda: model)
    vault.update()
    report.add("keep the vectors of 10,000 notes", measure([vault.embed]), 0)
    queries = [" ".join(chance.choices(vocabulary()[:500], k=5)) for _ in range(100)]
    vault.search_notes("first", 10, SearchMode.SEMANTIC)
    for mode in (SearchMode.SEMANTIC, SearchMode.HYBRID):
        report.add(f"search, {mode}, 10,000 notes", measure(partial(vault.search_notes, each, 10, mode) for each in queries), 0)
    vault.close()
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(_TABLES)
    vectors = np.random.default_rng(1).integers(-127, 128, (100_000, 512), np.int8)
    rows = ((note, 0, 0, vector.tobytes()) for note, vector in enumerate(vectors))
    connection.executemany("INSERT INTO passages (note, start, end, vector) VALUES (?, ?, ?, ?)", rows)
    table = VectorTable(512)
    report.add("read 100,000 vectors", measure([lambda: table.refresh(connection)]), 0)
    [vector] = model.model.embed(["how do we try again after an error"])
    report.add("the nearest of 100,000", measure([lambda: next(table.nearest(vector, 0.1, None))] * 50), 20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=100_000, help="of the large vault")
    parser.add_argument("--json", action="store_true", help="only what docs/performance.md shows")
    parser.add_argument("--meaning", action="store_true", help="search by meaning, and nothing else")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("CRU_BENCH_FOLDER")) as name:
        chance = random.Random(1)
        report = Report(is_quiet=options.json)
        if options.meaning:
            measure_meaning(Path(name), chance, report)
            return 0
        measure_index(Path(name), chance, report)
        measure_answers(Path(name), options.notes, chance, report)
        if options.json:
            print(json.dumps(report.figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
