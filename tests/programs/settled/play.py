"""Somebody's configuration from elsewhere: it is taken as it is, and what it forbids stays forbidden."""

from __future__ import annotations

from tests.kit import Call, Received, Reply
from tests.programs.stage import Stage

CALLS = [
    Call("about", {"title": "sky"}), Call("about", {"title": "sea"}), Call("about", {"title": "moon"}),
    Call("bash", {"command": "touch made"}),
]  # fmt: skip


def model(request: Received) -> Reply:
    return Reply("well") if request.body["messages"][-1]["role"] == "tool" else Reply(calls=CALLS)


def play(stage: Stage) -> None:
    (stage.home.cru / "plugins" / "settled.conf").write_text('return { team = "core" }')
    turn = stage.turn(model)
    assert turn.done.out == "well\n"
    *known, refused = turn.results
    assert known == [" < sea+rain", "sky < ", "no such note"]
    assert "requires isolation" in refused and not (stage.folder / "made").exists()
    assert {request.headers["x-team"] for request in turn.requests} == {"core mock"}
