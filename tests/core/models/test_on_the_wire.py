"""What the real command sends in long turns: byte for byte what its trace can make again."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.kit.home import home
from tests.kit.run import cru
from tests.kit.server import server
from tests.kit.steps import Call, Received, Reply

from cru.core.models.encoding import BLOCK_BYTES

ROUNDS = 14
PLUGIN = """
from cru import on

def cut(context, event):
    if event["round"] in (8, 9, 12):
        event["messages"][0]["content"] = "cut for this request"
        return event
    if event["round"] == 5:
        return {"inject": "from a hook"}

on("message:before_send", cut)
"""


def answer(request: Received) -> Reply:
    """A call that reads the next file, as long as there is one."""
    results = str(request.body["messages"]).count("part of file ")
    return (
        Reply("done") if results >= ROUNDS else Reply(think="hm", calls=[Call("read", {"file_path": f"{results}.txt"})])
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mock", "anthropic_compatible:mock"])
def test_each_request_of_a_long_turn_is_sent_as_it_is_recorded(tmp_path: Path, model: str) -> None:
    with server(answer) as wire:
        here = home(tmp_path, url=wire.url, config=f'model = "{model}"')
        (here.cru / "plugins").mkdir()
        (here.cru / "plugins" / "cut.py").write_text(PLUGIN)
        for number in range(ROUNDS):
            text = f"part of file {number}\n" + "é “line”\n" * 1200
            (here.project / f"{number}.txt").write_text(text)
        (here.project / "notes.txt").write_text("an attachment")
        for _ in range(2):
            done = cru("--attach", "notes.txt", "go", home=here)
            assert (done.code, done.out.strip()) == (0, "done"), done
    lines = [line for line in here.lines("default", "trace.jsonl") if line["k"] == "request"]
    assert len(lines) == len(wire.requests) == ROUNDS + 2
    assert [line["sha"] for line in lines] == [hashlib.sha256(request.raw).hexdigest() for request in wire.requests]
    assert [line["n"] for line in lines if line.get("changed_by")] == [8, 9, 12], done.err
    assert all(b"cut for this request" in wire.requests[n - 1].raw for n in (8, 9, 12))
    assert b"from a hook" in wire.requests[5].raw and b"an attachment" in wire.requests[0].raw
    assert len(wire.requests[-1].raw) > 2 * BLOCK_BYTES
    for number in (1, 6, 9, 10, 15):
        run = cru("trace", "--turn", "1", "--request", str(number), "--json", home=here)
        assert run.code == 0 and run.out.encode() == wire.requests[number - 1].raw + b"\n"
