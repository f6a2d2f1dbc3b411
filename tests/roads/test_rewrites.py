"""What a handler rewrites stays rewritten, whatever way the prompt or the call comes in. Rows are roads, columns are events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.kit import Call, HomeDir, conformance, home, server
from tests.kit.server import Server
from tests.roads import command_hooks
from tests.roads.roads import DIALECTS, ROADS, SCRIPT, TEXT, WORK, Gate, answer, write_rule

TOUCH = Call("bash", {"command": "touch done.txt"})
WELL = "all is well"
SUMMARY = "many noughts"
# What a person typed; it must not reach the model.
TYPED = {"attached file": "read this"}


class Rewrite(Struct, frozen=True):
    """What a handler returns, and what must be so afterwards."""

    says: dict[str, Any]
    held: Callable[[HomeDir, Server, str], None]
    call: Call | None = None
    pattern: str = ""


def _other_prompt(here: HomeDir, model: Server, road: str) -> None:
    said = [str(m["content"]) for r in model.requests for m in r.body["messages"] if m["role"] == "user"]
    assert TEXT in said[-1]
    assert not [text for text in said if TYPED.get(road, WORK) in text]


def _other_call(here: HomeDir, model: Server, road: str) -> None:
    assert (here.project / "other.txt").exists()
    assert not (here.project / "done.txt").exists()


def _result(text: str) -> Callable[[HomeDir, Server, str], None]:
    def held(here: HomeDir, model: Server, road: str) -> None:
        if road == SCRIPT:
            assert (here.project / "said.txt").read_text() == text
            return
        sent = [str(m["content"]) for m in model.requests[-1].body["messages"] if m["role"] == "tool"]
        logged = [e["content"] for e in here.log() if e["entry_type"] == "tool_result"]
        assert text in sent[-1] and text in logged[-1]
        assert "0000" not in sent[-1]

    return held


REWRITES = {
    "message:received": Rewrite({"content": TEXT}, _other_prompt),
    "message:before_send": Rewrite({"prompt": TEXT}, _other_prompt),
    "tool:before_call": Rewrite({"args": {"command": "touch other.txt"}}, _other_call, TOUCH, "bash"),
    "tool:completed": Rewrite({"result": WELL}, _result(WELL), Call("bash", {"command": "printf 0000"})),
    "output:cached": Rewrite(
        {"summary": SUMMARY}, _result(SUMMARY), Call("bash", {"command": "yes 0000 | head -n 9000"})
    ),
}
# Why a cell is empty; "*" is every dialect.
EMPTY = {
    ("recurse", "message:received", "*"): "the prompt before it is rewritten already",
    ("recurse", "message:before_send", "*"): "the prompt before it is rewritten already",
    ("recurse", "tool:before_call", "toy"): "a rewrite of the toy dialect has no pattern: it fits no call of recurse",
    (SCRIPT, "message:received", "*"): "a script's call is no prompt",
    (SCRIPT, "message:before_send", "*"): "a script's call makes no request",
    (SCRIPT, "output:cached", "*"): "a script is given results whole",
}
ALL = [
    (road, event, dialect)
    for road in ROADS
    for event in REWRITES
    for dialect in DIALECTS
    if command_hooks.knows(dialect, event, command_hooks.REWRITES)
]


def why_empty(road: str, event: str, dialect: str) -> str:
    if road == "continuation" and event == "message:received" and dialect in command_hooks.TYPED:
        return f"{dialect}'s {command_hooks.TYPED[dialect]} hears only what a person typed"
    known = EMPTY.get((road, event, "*")) or EMPTY.get((road, event, dialect))
    return known or command_hooks.untried(dialect, road)


CELLS = [cell for cell in ALL if not why_empty(*cell)]


@pytest.mark.sample(40)
@pytest.mark.pairwise("road", "event", "dialect")
@pytest.mark.parametrize(("road", "event", "dialect"), CELLS)
def test_what_is_rewritten_stays_so(tmp_path: Path, road: str, event: str, dialect: str) -> None:
    row = REWRITES[event]
    gate = Gate(lambda here, model: row.held(here, model, road), row.call, command_hooks.HOOKS)
    with server(answer(gate)) as model:
        here = home(tmp_path, config="max_continuations = 1\n" + gate.config, url=model.url)
        write_rule(here, dialect, event, row.says, row.pattern)
        ROADS[road](here, model, gate)
        gate.held(here, model)


def test_no_hook_of_a_dialect_is_left_out() -> None:
    conformance(len(CELLS), len(ALL))
    tried = {(dialect, event) for _, event, dialect in CELLS}
    assert tried >= {(dialect, event) for dialect, table in command_hooks.REWRITES.items() for event in table}
