"""The roads that a prompt, or a call, may come on: each drives the real command once. And the rules of a test, in every dialect.

A rule is data, `{gate, verb, value}`: what is written for a dialect is a plugin, lines of the toy dialect's file, or a command hook.
"""

from __future__ import annotations

from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import Any

from msgspec import Struct
from tests.kit import Call, Done, HomeDir, Received, Reply, Status, cru, pty
from tests.kit.server import Server
from tests.roads import command_hooks

LAUNCHER = Path(__file__).with_name("cru_with_toy.py")
WORK = "do the WORK now"
DENIAL = "no entry"
TEXT = "do the BETTER thing"
DIALECTS = ("toy", "lua", "python", *command_hooks.PLACES)

LUA = 'cru.on("{gate}", function(ctx, event) return cru.json.decode([==[{answer}]==]) end, {{ {options} }})\n'
PYTHON = 'on("{gate}", lambda ctx, event: json.loads({answer!r}), {{{options}}})\n'
HEADS = {"lua": "", "python": "import json\n\nfrom cru import on\n\n"}
CALLER = """
cru.on("message:received", function()
  local result, err = cru.tools.call("{name}", cru.json.decode([==[{args}]==]))
  cru.fs.write("said.txt", tostring(err or result))
end)
"""
COMMAND = (
    'return {{ commands = {{ work = {{ desc = "works", fn = function() return {{ inject = "{text}" }} end }} }} }}\n'
)


class Gate(Struct, frozen=True):
    """call: what the model asks for (`times` times) when it reads WORK; config and flags: what makes the gate open; held: asserts
    that it did what the rule says."""

    held: Callable[[HomeDir, Server], None]
    call: Call | None = None
    config: str = ""
    flags: tuple[str, ...] = ("-t",)
    code: int = 0
    pattern: str = ""
    times: int = 1


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


# roads ----------------------------------------------------------------------------------------------------------------------------


def _argv(here: HomeDir, model: Server, gate: Gate) -> None:
    run(here, gate, WORK)


def _pipe(here: HomeDir, model: Server, gate: Gate) -> None:
    run(here, gate, input=WORK)


def _attached(here: HomeDir, model: Server, gate: Gate) -> None:
    (here.project / "work.txt").write_text(WORK)
    run(here, gate, "--attach", "work.txt", "read this")


def _json(here: HomeDir, model: Server, gate: Gate) -> None:
    run(here, gate, "--json", WORK)


def _chat(here: HomeDir, model: Server, gate: Gate) -> None:
    with pty(str(rules(here)), *gate.flags, home=here, script=LAUNCHER) as terminal:
        terminal.expect("> ")
        terminal.line(WORK)
        terminal.expect("done" if gate.code == 0 else DENIAL)
        terminal.expect("> ")
        terminal.eof()
        terminal.wait()


def _continuation(here: HomeDir, model: Server, gate: Gate) -> None:
    add_rule(here, "turn:complete", {"inject": WORK})
    run(here, gate, "hello", code=3)  # the rule wants another one each time: the limit halts the run
    assert any(e["id"].startswith("msg-") for e in here.log())


def _recurse(here: HomeDir, model: Server, gate: Gate) -> None:
    run(here, gate, "please recurse")
    assert "recurse" in sources(here)


def _resume(here: HomeDir, model: Server, gate: Gate) -> None:
    here.configure('base_url = "http://127.0.0.1:9/v1"\nmodel = "mock"\n' + gate.config)
    failed = cru("-x", "hello", home=here)
    assert failed.code == 0
    log = here.context() / "context.jsonl"
    here.context().mkdir(parents=True, exist_ok=True)
    log.write_text(
        '{"id":"p1","timestamp":1,"from":"user","to":"default","content":"' + WORK + '","entry_type":"message",'
        '"role":"user","metadata":{"source":"user"}}\n'
    )
    here.configure(gate.config, url=model.url)
    run(here, gate, "--resume")


def _queue(here: HomeDir, model: Server, gate: Gate) -> None:
    """No face of the command takes a prompt while a turn runs; the launcher stands in for one."""
    rules(here).with_suffix(".queue").write_text(WORK)
    run(here, gate, "hello")
    assert sources(here) == ["user", "queue"]


def _command(here: HomeDir, model: Server, gate: Gate) -> None:
    add_plugin(here, "commands.lua", COMMAND.format(text=WORK))
    run(here, gate, "/work")
    assert sources(here) == ["command"]


def _script(here: HomeDir, model: Server, gate: Gate) -> None:
    assert gate.call is not None
    add_plugin(here, "caller.lua", CALLER.format(name=gate.call.name, args=dumps(gate.call.args)))
    run(here, gate, "hello")


SCRIPT = "cru.tools.call"
ROADS: dict[str, Callable[[HomeDir, Server, Gate], None]] = {
    "argv": _argv, "pipe": _pipe, "attached file": _attached, "--json": _json, "chat": _chat,
    "continuation": _continuation, "recurse": _recurse, "--resume": _resume, "queue": _queue, "command": _command,
    SCRIPT: _script,
}  # fmt: skip


def run(here: HomeDir, gate: Gate, *argv: str, input: str | None = None, code: int = 0) -> Done:
    done = cru(str(rules(here)), *gate.flags, *argv, home=here, input=input, script=LAUNCHER)
    assert done.code == (code or gate.code), done
    assert "is not loaded" not in done.err, done
    return done


def sources(here: HomeDir) -> list[str]:
    """Where the prompts of the log came from, in order."""
    return [
        e["metadata"]["source"]
        for e in here.log()
        if "source" in e.get("metadata", {}) and e["entry_type"] == "message"
    ]


# rules ----------------------------------------------------------------------------------------------------------------------------


def rules(here: HomeDir) -> Path:
    return here.path / "rules.toy"


def add_plugin(here: HomeDir, name: str, source: str) -> None:
    plugins = here.cru / "plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / name).write_text(source)


def write_rule(here: HomeDir, dialect: str, gate: str, says: dict[str, Any], pattern: str = "") -> None:
    """The first rule of a test. `says` is what the handler of a script returns."""
    rules(here).write_text("")
    if dialect in command_hooks.PLACES:
        command_hooks.write(here, dialect, gate, says)
        return
    if dialect != "toy":
        add_plugin(here, f"rules.{'lua' if dialect == 'lua' else 'py'}", HEADS[dialect])
    add_rule(here, gate, says, pattern)


def add_rule(here: HomeDir, gate: str, says: dict[str, Any], pattern: str = "") -> None:
    """One more rule, in the language that is there (beside command hooks the toy dialect's)."""
    found = sorted((here.cru / "plugins").glob("rules.*")) if (here.cru / "plugins").is_dir() else []
    file = found[0] if found else rules(here)
    options = {"priority": 10 if "inject" in says else 50, **({"pattern": pattern} if pattern else {})}
    if file.suffix == ".toy":
        line = _toy(gate, says, pattern)
    elif file.suffix == ".lua":
        line = LUA.format(
            gate=gate, answer=dumps(says), options=", ".join(f"{k} = {dumps(v)}" for k, v in options.items())
        )
    else:
        line = PYTHON.format(
            gate=gate, answer=dumps(says), options=", ".join(f"{k!r}: {v!r}" for k, v in options.items())
        )
    file.write_text(file.read_text() + line)


def _toy(gate: str, says: dict[str, Any], pattern: str) -> str:
    if "inject" in says:
        return f"inject {gate}: {says['inject']}\n"
    if "reason" in says:
        verb = "halt" if says.get("halt") else "deny"
        return f"{verb} {gate}{f' {pattern}' if pattern else ''}: {says['reason']}\n"
    [(field, value)] = says.items()
    return f"rewrite {gate} {field} {dumps(value)}\n"
