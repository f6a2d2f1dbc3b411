"""Nobody is there: dialogs are cancelled at once, the model's opinion is asked beside the conversation."""

from __future__ import annotations

from tests.kit import Call, Received, Reply
from tests.programs.stage import Stage

CANCELLED = ("sure", "way", "same", "ways", "note", "ask", "batch", "edit", "show", "popup", "leave")
SAID = [
    *(f"{name} cancelled" for name in CANCELLED),
    "free true", "other neither none", "none true", "words as you like", "told that is all",
]  # fmt: skip
CALLS = [Call("interview"), Call("all_dialogs"), Call("second_opinion", {"question": "Is it good?"})]


def model(request: Received) -> Reply:
    last = request.body["messages"][-1]
    if "Is it good?" in str(last["content"]):
        return Reply('```json\n{"answers": [{"selected": [1]}]}\n```')
    return Reply("well") if last["role"] == "tool" else Reply(calls=CALLS)


def play(stage: Stage) -> None:
    turn = stage.turn(model)
    interview, dialogs, opinion = turn.results
    assert interview == "in a branch, Ada, long/40"
    assert dialogs.splitlines() == SAID
    assert opinion == "no"
    assert [m["role"] for m in turn.requests[-1].body["messages"]].count("user") == 1
