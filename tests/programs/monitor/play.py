"""A turn with one tool call: everything beside the conversation begins, is seen, and ends."""

from __future__ import annotations

from tests.kit import Call, Reply
from tests.programs.stage import Stage

HEALTH = ["session false", "ok the pulse beats", "info 1 service", "warn no such luck", "error only a test"]
STATUS = [
    ("status", "monitor", "watching", 0.5), ("statusline", "pulse", "on", None),
    ("status", "monitor", "", None), ("statusline", "pulse", "", None),
]  # fmt: skip


def play(stage: Stage) -> None:
    calls = [Reply(calls=[Call("how_is_it")]), Reply(calls=[Call("bash", {"command": "true"})]), Reply("fine")]
    turn = stage.turn(calls, "--json")
    assert turn.results[0].splitlines() == HEALTH
    said = [notice["text"] for notice in turn.events("notice")]
    for text in ("tools are used", "be careful", "a tool runs", "the pulse stops", "ticking true, pulse true"):
        assert said.count(text) == 1, text
    assert "tick 1" in said
    status = turn.events("status:changed")
    assert [(one["place"], one["key"], one["text"], one["progress"]) for one in status[:4]] == STATUS
    facts = turn.events("fact:published")
    assert (facts[0]["key"], facts[0]["value"]) == ("targets", [str(stage.folder)])
    assert (stage.folder / "end.txt").read_text().endswith(" true")
