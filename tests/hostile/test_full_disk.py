"""Guests that print more than may be written: a real limit on the size of files, which holds for cru and for all that it starts."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.hostile import checks, roads
from tests.hostile.programs import BEHAVIOURS, Behaviour
from tests.hostile.roads import ROADS
from tests.hostile.test_programs import rule
from tests.kit import HomeDir, cru, server
from tests.kit.scripts import cru_word

FILLS = Behaviour(
    """
signal.signal(25, signal.SIG_IGN)
try:
    with open(project + '/large', 'wb') as file:
        while True: file.write(bytes(65536)); file.flush()
except OSError as error:
    os._exit(0 if error.errno == 27 else 1)
"""
)
GUESTS = {"an answer of 3 MB": BEHAVIOURS["an answer of 3 MB"], "fills the disk": FILLS}
LIMITS = (8, 64, 512)
"""Units of 512 bytes."""
ROWS = [(road, name, limit) for road in ROADS if ROADS[road].moment != "schema" for name in GUESTS for limit in LIMITS]
SHORT = ("a plugin's tool", "an answer of 3 MB", 64)


def check(home: HomeDir, road_name: str, name: str, limit: int) -> None:
    road = ROADS[road_name]
    limited = Path(home.path.parent / "cru-limited")
    limited.write_text(f'#!/bin/sh\nulimit -f {limit}\nexec {cru_word()} "$@"\n')
    limited.chmod(0o755)
    with server(rule(road.tool)) as model:
        file = roads.install(home, road, name, GUESTS[name], model.url)
        done = cru("hello", home=home, script=limited)
        checks.check_messages(done, (0, 1, 3), passed_on=1 << 20)
        roads.uninstall(home, road, file, model.url)
        checks.check_next_run(home)
    lines = (home.context() / "context.jsonl").read_bytes().splitlines()
    whole = [entry for line in lines if (entry := _entry(line))]
    assert len(whole) >= len(lines) - 1, "at most the line at which it was full is torn"
    assert [e["content"] for e in whole if e["entry_type"] == "message" and e.get("role") == "user"][-1] == "again"
    checks.check_files(home)


def _entry(line: bytes) -> dict[str, str]:
    try:
        entry: dict[str, str] = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return {}
    return entry


def test_a_result_that_cannot_be_saved_ends_no_run(home: HomeDir) -> None:
    check(home, *SHORT)


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize(("road", "name", "limit"), ROWS)
def test_all(home: HomeDir, road: str, name: str, limit: int) -> None:
    check(home, road, name, limit)
