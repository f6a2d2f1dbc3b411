"""A letter from its first line into the box; and one that stays."""

from __future__ import annotations

from tests.kit import Call, Reply
from tests.programs.stage import Stage

RESULTS = [
    "letter running writing 1", "letter running reading 2", "nobody has read it", "letter running reading 2", "letter done sent 3",
    "letter running writing 1", "letter stopped writing 1",
]  # fmt: skip
ACTIONS = ("begin", "hand_over", "send", "read", "send", "begin", "stop")


def play(stage: Stage) -> None:
    calls = [Reply(calls=[Call("post", {"action": action})]) for action in ACTIONS]
    turn = stage.turn([*calls, Reply("posted")])
    said = [result.splitlines()[0] for result in turn.results]
    for one, wanted in zip(said, RESULTS, strict=True):
        assert wanted in one
