"""A model that sends scouts: the fast one answers, the slow one never does."""

from __future__ import annotations

from tests.kit import Call, Hang, Received, Reply
from tests.programs.stage import Stage


def answer(request: Received) -> Reply | Hang:
    prompt = next(m["content"] for m in request.body["messages"] if m["role"] == "user")
    if prompt.startswith("fast: "):
        return Reply(f"{prompt.removeprefix('fast: ')} It is in the attic.")
    if prompt.startswith("slow: "):
        return Hang("I look")
    is_told = any(m["role"] == "tool" for m in request.body["messages"])
    return Reply("thank you") if is_told else Reply(calls=[Call("scouts", {"question": "Where?"})])


def play(stage: Stage) -> None:
    turn = stage.turn(answer)
    assert turn.done.out == "thank you\n"
    tasks = list(stage.home.context().glob("tasks/*/task.json"))
    assert len(tasks) == 2
    results = [entry["content"] for entry in stage.home.log() if entry["entry_type"] == "tool_result"]
    assert results == ["Where? It is in the attic.; 2 sent, cancelled true"]
