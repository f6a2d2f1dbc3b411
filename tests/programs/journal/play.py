"""Two runs: what the first one kept is there in the second."""

from __future__ import annotations

from tests.kit import Call, Reply
from tests.programs.stage import Stage


def fact(who: str, key: str, value: str) -> Call:
    return Call("remember", {"who": who, "key": key, "value": value})


def play(stage: Stage) -> None:
    first = [
        fact("ada", "town", "London"),
        fact("ada", "age", "36"),
        fact("charles", "town", "London"),
        fact("mary", "town", "Bath"),
    ]
    turn = stage.turn([Reply(calls=first), Reply("noted")], prompt="who is who")
    assert turn.results == ["ada town is London", "ada age is 36", "charles town is London", "mary town is Bath"]
    second = [
        Call("forget", {"who": "charles", "key": "town"}), Call("forget", {"who": "charles", "key": "town"}),
        Call("who", {"key": "town", "value": "London"}), Call("close_page"),
    ]  # fmt: skip
    turn = stage.turn([Reply(calls=second), Reply("closed")], prompt="and now")
    forgotten, never, found, page = turn.results[-4:]
    assert (forgotten, never, found) == ("forgotten", "never known", "ada (2 facts)")
    assert page.startswith("page 2 nil: ") and "kiln path not configured" in page
    kept = stage.home.cru / "plugin-state" / "journal" / "page.md"
    assert kept.read_text() == f"asked who is who, and now\nin {stage.folder}\n"
    assert (stage.home.context() / "page.txt").read_text() == str(kept)
