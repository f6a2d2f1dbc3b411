"""Ways around rules that were tried, by the spelling of a command or of a path. The cases are in tests/data/permissions."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.core.guard.rules.test_commands import bash, gate
from tests.core.guard.rules.world import World, touch

DATA = Path(__file__).parents[3] / "data/permissions"


def by_class(file: str) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in json.loads((DATA / file).read_text()):
        rows[row["class"]].append(row)
    return rows


COMMANDS = by_class("commands.json")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_spelling_of_a_command_gets_around_a_rule(name: str) -> None:
    failed = []
    for row in COMMANDS[name]:
        judge = gate(
            mode="trust" if "deny" in row else "ask", allow=tuple(row.get("allow", ())), deny=tuple(row.get("deny", ()))
        )
        if bash(judge, row["command"]).decision != row["decision"]:
            failed.append(row["command"])
    assert failed == []


PATHS = by_class("paths.json")


def _plant(world: World) -> None:
    for name in (".env", "secret/key", "kept/real", "keys/x", "deep/x"):
        (world.root / name).parent.mkdir(parents=True, exist_ok=True)
        (world.root / name).touch()
    for link, target in (
        ("alias", ".env"), ("chain", "alias"), ("deep/alias", "../.env"), ("deep/link", "../secret"), ("way", "secret"),
        ("linked", "kept/real"), ("keys/a.pem", "../kept/real"),
    ):  # fmt: skip
        (world.root / link).symlink_to(target)
    (world.root / "hard").hardlink_to(world.root / ".env")


@pytest.mark.parametrize("name", PATHS)
def test_no_spelling_of_a_path_gets_around_a_rule_or_a_protected_place(world: World, name: str) -> None:
    _plant(world)
    places = {"{root}": str(world.root), "{user}": str(world.user), "{outside}": str(world.outside), "{etc}": "/etc"}

    def filled(text: str) -> str:
        for place, path in places.items():
            text = text.replace(place, path)
        return text

    failed = []
    for row in PATHS[name]:
        allow, deny = (tuple(map(filled, row.get(kind, ()))) for kind in ("allow", "deny"))
        decision = touch(world.gate("auto", allow=allow, deny=deny), row["access"], filled(row["path"])).decision
        if decision != row["decision"]:
            failed.append((row["path"], decision))
    assert failed == []
