"""Ways around rules on commands (tests/data/permissions/commands.json), and options that no rule writes out (options.json, unknown.json),
through the real command: nothing of them runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.attacks.playing import REFUSED, play, rules, table
from tests.kit import Call, HomeDir

WAYS = [row for row in table("permissions/commands.json") if row["decision"] != "allow"]
UNKNOWN = [{"allow": [f"bash:{row['rule']}"], "command": row["command"]} for row in table("permissions/unknown.json")]
DANGEROUS = [
    {"allow": [f"bash:{row['program']} *"], "command": f"{row['program']} {option} v"}
    for row in table("permissions/options.json")
    for effect in ("runs", "writes", "sends")
    for option in row.get(effect, ())
]
ROWS = [*WAYS, *UNKNOWN, *DANGEROUS]
GROUPS: dict[str, list[dict[str, Any]]] = {
    "denied": [row for row in WAYS if "deny" in row],
    "an allow rule for git": [row for row in WAYS if row.get("allow") == ["bash:git *"]],
    "an allow rule for another program": [row for row in WAYS if row.get("allow") not in (None, ["bash:git *"])],
    "an option that nobody knows": UNKNOWN,
    "an option that does more": DANGEROUS,
}
"""Rules of one group stand in one file: no row needs the absence of another's."""


def _plant(here: HomeDir) -> None:
    (here.project / "v").write_text("x")
    (here.project / "V").write_text("x")


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_no_spelling_of_a_command_gets_around_a_rule(tmp_path: Path, name: str) -> None:
    rows = GROUPS[name]
    config = rules(
        deny=[rule for row in rows for rule in row.get("deny", ())],
        allow=[rule for row in rows for rule in row.get("allow", ())],
    )
    calls = [Call("bash", {"command": row["command"]}) for row in rows]
    played = play(tmp_path, calls, mode="trust" if name == "denied" else "ask", config=config, plant=_plant)
    assert [
        row["command"] for row, text in zip(rows, played.results, strict=True) if not text.startswith(REFUSED)
    ] == []
    assert sorted(path.name for path in played.here.project.iterdir()) == ["V", "v"]
