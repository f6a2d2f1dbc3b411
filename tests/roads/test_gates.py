"""The road table: whatever way a prompt comes in, a gate that is shut stays shut. Rows are roads, columns are gates.

Every cell drives the real command with `deny GATE: no entry` in it. An empty cell carries its reason. Later dialects add
themselves to DIALECTS, later roads to ROADS.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct
from tests.kit import Call, Done, HomeDir, Received, Reply, Status, conformance, cru, home, pty, server
from tests.kit.server import Server

LAUNCHER = Path(__file__).with_name("cru_with_toy.py")
WORK = "do the WORK now"
DENIAL = "no entry"

LUA = """
cru.on("{gate}", function(ctx, event) return {{ {verb} = true, reason = "no entry" }} end, {{ priority = 50{pattern} }})
"""
PYTHON = """
from cru import on

on("{gate}", lambda ctx, event: {{"{verb}": True, "reason": "no entry"}}, {{"priority": 50{pattern}}})
"""
INJECT = {
    "toy": "inject turn:complete: {text}\n",
    "lua": 'cru.on("turn:complete", function() return {{ inject = "{text}" }} end, {{ priority = 10 }})\n',
    "python": 'on("turn:complete", lambda ctx, event: {{"inject": "{text}"}}, {{"priority": 10}})\n',
}
DIALECTS = ("toy", "lua", "python")


class Gate(Struct, frozen=True):
    """call: what the model asks for (`times` times) when it reads WORK; config and flags: what makes the gate open; held: asserts
    that it was shut."""

    held: Callable[[HomeDir, Server], None]
    call: Call | None = None
    config: str = ""
    flags: tuple[str, ...] = ("-t",)
    code: int = 0
    pattern: str = ""
    times: int = 1


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


GATES: dict[str, Gate] = {
    "message:received": Gate(_no_request, code=3),
    "message:before_send": Gate(_no_request, code=3),
    "tool:before_call": Gate(_no_file, Call("bash", {"command": "touch done.txt"}), pattern=" bash"),
    "permission:requested": Gate(_no_file, Call("bash", {"command": "touch done.txt"}), flags=()),
    "output:cached": Gate(_in_full, Call("bash", {"command": "head -c 40000 /dev/zero | tr '\\0' x"})),
    "context:overflow": Gate(
        _no_anchor,
        Call("read", {"file_path": "big.txt"}),
        config="context_window_limit = 100\nauto_compact = true\nauto_compact_threshold = 1.0\n",
        times=5,
    ),
    "inbox:sending": Gate(_nothing_sent, Call("send_message", {"to": "other", "content": "hi"})),
    "turn:complete": Gate(_ended),
}


def answer(gate: Gate) -> Callable[[Received], Reply | Status]:
    """The model: does the gate's work when it is told to, recurses when it is told to, else just answers."""

    def rule(request: Received) -> Reply | Status:
        last = request.body["messages"][-1]
        text = str(last["content"])
        if last["role"] == "user" and "recurse" in text and WORK not in text:
            return Reply(calls=[Call("recurse", {"note": WORK})])
        done = sum(m["role"] == "tool" for m in request.body["messages"])
        if gate.call is not None and ((last["role"] == "user" and WORK in text) or 0 < done < gate.times):
            return Reply(calls=[gate.call])
        return Reply("done")

    return rule


def _argv(here: HomeDir, model: Server, gate: Gate) -> None:
    done = run(here, gate, WORK)
    assert done.code == gate.code, done


def _pipe(here: HomeDir, model: Server, gate: Gate) -> None:
    done = run(here, gate, input=WORK)
    assert done.code == gate.code, done


def _attached(here: HomeDir, model: Server, gate: Gate) -> None:
    (here.project / "work.txt").write_text(WORK)
    done = run(here, gate, "--attach", "work.txt", "read this")
    assert done.code == gate.code, done


def _json(here: HomeDir, model: Server, gate: Gate) -> None:
    done = run(here, gate, "--json", WORK)
    assert done.code == gate.code, done


def _chat(here: HomeDir, model: Server, gate: Gate) -> None:
    with pty(str(rules(here)), *gate.flags, home=here, script=LAUNCHER) as terminal:
        terminal.expect("> ")
        terminal.line(WORK)
        terminal.expect("done" if gate.code == 0 else DENIAL)
        terminal.expect("> ")
        terminal.eof()
        terminal.wait()


def _continuation(here: HomeDir, model: Server, gate: Gate) -> None:
    add_inject(here, WORK)
    done = run(here, gate, "hello")
    assert done.code == gate.code, done
    assert any(e["id"].startswith("msg-") for e in here.log())


def _recurse(here: HomeDir, model: Server, gate: Gate) -> None:
    done = run(here, gate, "please recurse")
    assert done.code == gate.code, done
    assert any(e.get("metadata", {}).get("source") == "recurse" for e in here.log())


def _resume(here: HomeDir, model: Server, gate: Gate) -> None:
    here.configure(gate.config + 'base_url = "http://127.0.0.1:9/v1"\nmodel = "mock"\n')
    failed = cru("-x", "hello", home=here)
    assert failed.code == 0
    log = here.context() / "context.jsonl"
    here.context().mkdir(parents=True, exist_ok=True)
    log.write_text(
        '{"id":"p1","timestamp":1,"from":"user","to":"default","content":"' + WORK + '","entry_type":"message",'
        '"role":"user","metadata":{"source":"user"}}\n'
    )
    here.configure(gate.config, url=model.url)
    done = run(here, gate, "--resume")
    assert done.code == gate.code, done


ROADS: dict[str, Callable[[HomeDir, Server, Gate], None]] = {
    "argv": _argv, "pipe": _pipe, "attached file": _attached, "--json": _json, "chat": _chat,
    "continuation": _continuation, "recurse": _recurse, "--resume": _resume,
}  # fmt: skip

# Why a cell is empty.
EMPTY = {
    ("continuation", "message:received"): "the leg before it is blocked already",
    ("continuation", "message:before_send"): "the leg before it is blocked already",
    ("continuation", "turn:complete"): "the gate is what prevents the road",
    ("recurse", "message:received"): "the leg before it is blocked already",
    ("recurse", "message:before_send"): "the leg before it is blocked already",
    ("recurse", "turn:complete"): "the gate is what prevents the road",
    ("queue", "*"): "the line chat reads a prompt only when idle; queued prompts are driven in tests/engine",
    ("sub-agent", "*"): "there are no sub-agents yet",
}
CELLS = [(road, gate, dialect) for road in ROADS for gate in GATES for dialect in DIALECTS if (road, gate) not in EMPTY]


def rules(here: HomeDir) -> Path:
    return here.path / "rules.toy"


def shut(here: HomeDir, dialect: str, gate: str, row: Gate) -> None:
    """Write the rule that shuts a gate, in a dialect. A script's cancel on turn:complete only stops the handlers after it."""
    rules(here).write_text(f"deny {gate}{row.pattern}: {DENIAL}\n" if dialect == "toy" else "")
    if dialect == "toy":
        return
    verb = "halt" if gate == "turn:complete" else "cancel"
    plugins = here.cru / "plugins"
    plugins.mkdir()
    pattern = row.pattern.strip()
    if dialect == "lua":
        given = f', pattern = "{pattern}"' if pattern else ""
        (plugins / "rules.lua").write_text(LUA.format(gate=gate, verb=verb, pattern=given))
    else:
        given = f', "pattern": "{pattern}"' if pattern else ""
        (plugins / "rules.py").write_text(PYTHON.format(gate=gate, verb=verb, pattern=given))


def add_inject(here: HomeDir, text: str) -> None:
    """One more rule, in the dialect that is there: go on after each leg."""
    found = [p for p in (here.cru / "plugins").glob("rules.*")] if (here.cru / "plugins").is_dir() else []
    file = found[0] if found else rules(here)
    file.write_text(
        file.read_text() + INJECT[{".lua": "lua", ".py": "python"}.get(file.suffix, "toy")].format(text=text)
    )


def run(here: HomeDir, gate: Gate, *argv: str, input: str | None = None) -> Done:
    return cru(str(rules(here)), *gate.flags, *argv, home=here, input=input, script=LAUNCHER)


@pytest.mark.parametrize(("road", "gate", "dialect"), CELLS)
def test_a_shut_gate_stays_shut(tmp_path: Path, road: str, gate: str, dialect: str) -> None:
    row = GATES[gate]
    with server(answer(row)) as model:
        here = home(tmp_path, config="max_continuations = 1\n" + row.config, url=model.url)
        (here.project / "big.txt").write_text("words " * 1000)
        shut(here, dialect, gate, row)
        if gate == "turn:complete":
            add_inject(here, "once more")
        ROADS[road](here, model, row)
        row.held(here, model)


def test_every_live_gate_of_the_catalog_is_a_column() -> None:
    empty = sum(len(DIALECTS) * (len(GATES) if gate == "*" else 1) for _, gate in EMPTY)
    conformance(len(CELLS), len(CELLS) + empty)
    from cru.events.catalog import CATALOG

    assert set(GATES) == {row.name for row in CATALOG if row.kind == "gate" and row.live}
