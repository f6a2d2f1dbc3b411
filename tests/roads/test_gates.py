"""The road table: whatever way a prompt comes in, a gate that is shut stays shut. Rows are roads, columns are gates.

Every cell drives the real command with a rule that denies in it. An empty cell carries its reason. Later dialects add themselves to
DIALECTS, later roads to ROADS (roads.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.kit import Call, HomeDir, conformance, home, server
from tests.kit.server import Server
from tests.roads import command_hooks
from tests.roads.roads import DENIAL, DIALECTS, ROADS, SCRIPT, WORK, Gate, add_rule, answer, write_rule


def _no_request(here: HomeDir, model: Server) -> None:
    assert not [r for r in model.requests if WORK in r.raw.decode() and r.body["messages"][-1]["role"] == "user"]


def _no_file(here: HomeDir, model: Server) -> None:
    assert not (here.project / "done.txt").exists()
    failed = [e for e in here.log() if e["entry_type"] == "tool_result" and e.get("metadata", {}).get("is_error")]
    assert failed and DENIAL in failed[-1]["content"]
    assert DENIAL in model.requests[-1].raw.decode()


def _in_full(here: HomeDir, model: Server) -> None:
    results = [m["content"] for m in model.requests[-1].body["messages"] if m["role"] == "tool"]
    assert len(results[-1]) > 39_000
    assert not (here.context() / "tool_cache").exists()


def _no_anchor(here: HomeDir, model: Server) -> None:
    assert "anchor" not in {e["entry_type"] for e in here.log()}
    journal = [x for x in here.lines("default", "journal.jsonl") if x["event"] == "context:overflow"]
    assert journal and journal[-1]["decision"] == "deny"


def _nothing_sent(here: HomeDir, model: Server) -> None:
    assert not (here.context("other") / "inbox.jsonl").exists()
    assert DENIAL in model.requests[-1].raw.decode()


def _ended(here: HomeDir, model: Server) -> None:
    assert not [r for r in model.requests if "once more" in r.raw.decode()]


def _script_refused(here: HomeDir, model: Server) -> None:
    """The call of a script is no part of the conversation: the script itself is told."""
    assert not (here.project / "done.txt").exists()
    assert not (here.context("other") / "inbox.jsonl").exists()
    assert DENIAL in (here.project / "said.txt").read_text()


GATES: dict[str, Gate] = {
    "message:received": Gate(_no_request, code=3),
    "message:before_send": Gate(_no_request, code=3),
    "tool:before_call": Gate(_no_file, Call("bash", {"command": "touch done.txt"}), pattern="bash"),
    "permission:requested": Gate(_no_file, Call("bash", {"command": "touch done.txt"}), flags=()),
    "output:cached": Gate(_in_full, Call("bash", {"command": "head -c 40000 /dev/zero | tr '\\0' x"})),
    "context:overflow": Gate(
        _no_anchor,
        Call("read", {"file_path": "big.txt"}),
        config="context_window_limit = 100\nauto_compact = true\nauto_compact_threshold = 1.0\n",
        times=5,
    ),
    "inbox:sending": Gate(_nothing_sent, Call("send_message", {"to": "other", "content": "hi"})),
    "turn:complete": Gate(_ended, code=3),
}

# Why a cell is empty.
EMPTY = {
    ("continuation", "message:received"): "the leg before it is blocked already",
    ("continuation", "message:before_send"): "the leg before it is blocked already",
    ("continuation", "turn:complete"): "the gate is what prevents the road",
    ("recurse", "message:received"): "the leg before it is blocked already",
    ("recurse", "message:before_send"): "the leg before it is blocked already",
    ("recurse", "turn:complete"): "the gate is what prevents the road",
    ("queue", "turn:complete"): "a halt empties the queue: the gate is what prevents the road",
    (SCRIPT, "message:received"): "a script's call is no prompt",
    (SCRIPT, "message:before_send"): "a script's call makes no request",
    (SCRIPT, "output:cached"): "a script is given results whole",
    (SCRIPT, "context:overflow"): "a script's call is no part of the conversation",
    (SCRIPT, "turn:complete"): "a script's call ends no leg",
    ("sub-agent", "*"): "there are no sub-agents yet",
    ("-p, -P", "*"): "the flags are not available yet",
}
ALL = [
    (road, gate, dialect)
    for road in ROADS
    for gate in GATES
    for dialect in DIALECTS
    if command_hooks.knows(dialect, gate, command_hooks.DENIALS)
]


def why_empty(road: str, gate: str, dialect: str) -> str:
    return EMPTY.get((road, gate)) or command_hooks.untried(dialect, road)


CELLS = [cell for cell in ALL if not why_empty(*cell)]


STARTED = [
    pytest.param(*cell, marks=pytest.mark.real_start) if cell[1:] == ("tool:before_call", "lua") else cell
    for cell in CELLS
]
"""One of each road is started, the others are forked."""


@pytest.mark.slow
@pytest.mark.pairwise("road", "gate", "dialect")
@pytest.mark.parametrize(("road", "gate", "dialect"), STARTED)
def test_a_shut_gate_stays_shut(tmp_path: Path, road: str, gate: str, dialect: str) -> None:
    row = replace(GATES[gate], config=GATES[gate].config + command_hooks.HOOKS)
    # A script's cancel on turn:complete only stops the handlers after it.
    verb = "halt" if gate == "turn:complete" else "cancel"
    with server(answer(row)) as model:
        here = home(tmp_path, config="max_continuations = 1\n" + row.config, url=model.url)
        (here.project / "big.txt").write_text("words " * 1000)
        write_rule(here, dialect, gate, {verb: True, "reason": DENIAL}, row.pattern)
        if gate == "turn:complete":
            add_rule(here, "turn:complete", {"inject": "once more"})
        ROADS[road](here, model, row)
        (_script_refused if road == SCRIPT else row.held)(here, model)


def test_no_hook_of_a_dialect_is_left_out() -> None:
    tried = {(dialect, gate) for _, gate, dialect in CELLS}
    assert tried >= {(dialect, gate) for dialect, table in command_hooks.DENIALS.items() for gate in table}


def test_every_live_gate_of_the_catalog_is_a_column() -> None:
    later = [road for road, gate in EMPTY if gate == "*"]
    conformance(len(CELLS), len(ALL) + len(later) * len(GATES) * len(DIALECTS))
    from cru.core.events.catalog import CATALOG

    # task:spawned: tests/core/agents and tests/roads/test_sub_agents.py; turn:ending: tests/core/turn/test_outcomes.py
    assert {*GATES, "task:spawned", "turn:ending"} == {row.name for row in CATALOG if row.kind == "gate" and row.live}
