"""Batches in a fresh home: their files, their results, where their items stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.kit import HomeDir, Started, wait_until

from cru.features.fleet.local_batch import LocalBatch

FINE = "loop: yes\ntext: fine\nusage: input=10 output=2 cost=0.5\n"


def write_items(home: HomeDir, *items: dict[str, Any], name: str = "p.jsonl") -> Path:
    path = home.project / name
    path.write_bytes(b"".join(msgspec.json.encode(item) + b"\n" for item in items))
    return path


def scripted(home: HomeDir, script: str = FINE) -> None:
    (home.path / "script.txt").write_text(script)
    home.configure(f'model = "scripted:{home.path / "script.txt"}"\n')


def results(home: HomeDir, name: str = "r.jsonl") -> dict[str, dict[str, Any]]:
    lines = [msgspec.json.decode(line) for line in (home.project / name).read_bytes().splitlines()]
    assert len({line["id"] for line in lines}) == len(lines), "a result is there twice"
    return {line["id"]: line for line in lines}


def prompts(home: HomeDir, context: str) -> list[str]:
    return [entry["content"] for entry in home.log(context) if entry.get("role") == "user"]


def states(home: HomeDir, name: str = "n") -> dict[str, str]:
    """Where the items of a batch of this machine stand."""
    return {row.id: row.state.value for row in LocalBatch(home.cru / "fleet" / "batches", name).rows()}


def begun(home: HomeDir, run: Started, requests: list[Any], count: int = 1) -> None:
    wait_until(lambda: len(requests) >= count or not run.alive)
    assert run.alive, run.err
