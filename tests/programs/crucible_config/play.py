"""Looks are accepted, the token goes with each request, and what would have to be isolated does not run."""

from __future__ import annotations

from tests.kit import Call, Received, Reply
from tests.programs.stage import Stage

CALLS = [
    Call("links", {"note": "sea"}),
    Call("links", {"note": "fog"}),
    Call("write", {"path": "a.txt", "content": "x"}),
    Call("bash", {"command": "echo on the shell"}),
]


def answer(request: Received) -> Reply:
    done = [m for m in request.body["messages"] if m["role"] == "tool"]
    return Reply(calls=[CALLS[len(done)]]) if len(done) < len(CALLS) else Reply("All is in order.")


def play(stage: Stage) -> None:
    names = stage.home.cru / "plugins" / "names.lua"
    names.write_text('return { team = "harbour", harmless = { "bash" } }\n')
    turn = stage.turn(answer)
    assert turn.done.out == "All is in order.\n"
    sea, fog, written, shell = turn.results
    assert (sea, fog) == ("ship < ship", "no note")
    assert "requires isolation" in written and not (stage.folder / "a.txt").exists()
    assert "on the shell" in shell
    assert {request.headers["x-team"].split()[0] for request in turn.requests} == {"harbour"}
