"""A model that has a question talked over, and answers for the advisers."""

from __future__ import annotations

from tests.kit import Call, Received, Reply
from tests.programs.stage import Stage


def answer(request: Received) -> Reply:
    said = [m["content"] for m in request.body["messages"] if m["role"] == "user"]
    if said[-1].startswith("Which? "):
        return Reply(f"The careful one of: {said[-1].removeprefix('Which? ')}")
    if said[0].startswith("We build a boat."):  # joined with what the person says next: roles take turns
        assert request.body["temperature"] == 0 or said[-1].endswith("Be bold.")
        return Reply("Steel." if said[-1].endswith("Be bold.") else "Wood.")
    is_told = any(m["role"] == "tool" for m in request.body["messages"])
    return Reply("thank you") if is_told else Reply(calls=[Call("consult", {"question": "What of?"})])


def play(stage: Stage) -> None:
    turn = stage.turn(answer)
    assert turn.done.out == "thank you\n", turn.done
    results = [entry["content"] for entry in stage.home.log() if entry["entry_type"] == "tool_result"]
    verdict = "The careful one of: Wood. Steel."
    assert results == [f"{verdict}; 1 turn; 3 messages; 1 request; ended; 3 sessions; false; 1 undone"]
