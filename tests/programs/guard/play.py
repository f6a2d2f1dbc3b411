"""A turn that is watched, and one after which the context is tidied up."""

from __future__ import annotations

from tests.kit import Call, Received, Reply
from tests.programs.stage import Stage

CALLS = [*(Call("bash", {"command": c}) for c in ("make it", "curl x", "rm -rf it")), Call("survey")]
SURVEY = [
    "ONE TWO string", "active bash survey read, of more", "room true 12", "budget 500", "mode careful",
]  # fmt: skip


def model(request: Received) -> Reply:
    last = request.body["messages"][-1]
    if last["role"] == "tool" or "tools" not in request.body:
        return Reply("well")
    return Reply("tidied") if "tidy" in last["content"] else Reply(calls=CALLS)


def play(stage: Stage) -> None:
    for number in ("one", "two"):
        (stage.folder / f"{number}.txt").write_text(number.upper())
    (stage.folder / "Makefile").write_text("it:\n\t@echo made > made.txt\n")
    saved = stage.home.cru / "plugin-state" / "guard" / "options.json"
    saved.parent.mkdir(parents=True)
    saved.write_text('{"strict": true}')
    turn = stage.turn(model, mode="ask", own='allowed = "make"', prompt="begin")
    first = turn.requests[0].body
    assert first["temperature"] == 0.25
    assert {t["function"]["name"] for t in first["tools"]} == {"bash", "survey", "read"}
    assert first["messages"][-1]["content"].endswith("begin\n\nThe guard is on: nothing is thrown away.")
    _, unknown, thrown, survey = turn.results
    assert (stage.folder / "made.txt").read_text() == "made\n"
    assert "does not know `curl x`" in unknown
    assert "careful mode refuses" in thrown
    assert survey.splitlines() == SURVEY
    turn = stage.turn(model, mode="ask", own='allowed = "make"', prompt="tidy up")
    assert turn.done.out == "tidied\n"
    assert "removed 1, compacted true" in turn.done.err
    assert [e["content"] for e in stage.home.log() if e["entry_type"] == "anchor"] == ["well"]
