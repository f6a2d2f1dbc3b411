"""Views of plugins through the real command: on a terminal, in pipes, for the model and for programs."""

from __future__ import annotations

import msgspec
import pytest
from tests.faces.asks import plugin, scripted
from tests.kit import Call, HomeDir, Reply, cru, pty, server

NODE = 'cru.oil.row(cru.oil.text("left", {fg="red"}), cru.oil.spacer(), cru.oil.badge("\\27[31mend"))'
LUA = f"""
local function board(args, ctx)
  ctx.display({NODE})
  ctx:display_error(cru.oil.text("wrong", {{bold=true}}))
  cru.notify(cru.oil.kv("note", 7))
  return {{ message = cru.oil.progress(0.5, 4) }}
end
return {{ commands = {{ board = {{ fn = board }} }},
         tools = {{ draw = {{ desc = "draws", fn = function() return {NODE} end }} }} }}
"""
PYTHON = """
from cru import notify, oil

def node():
    return oil.row(oil.text("left", {"fg": "red"}), oil.spacer(), oil.badge("\\x1b[31mend"))

def board(args, ctx):
    ctx.display(node())
    ctx.display_error(oil.text("wrong", {"bold": True}))
    notify(oil.kv("note", 7))
    return {"message": oil.progress(0.5, 4)}

COMMANDS = {"board": {"fn": board}}
TOOLS = {"draw": {"desc": "draws", "fn": lambda args: node()}}
"""
PLUGINS = pytest.mark.parametrize(("name", "code"), [("board.lua", LUA), ("board.py", PYTHON)])
WIDE = f"left{' ' * 63}[\\x1b[31mend]"


@pytest.mark.sample(1)
@PLUGINS
def test_a_command_shows_views(home: HomeDir, name: str, code: str) -> None:
    scripted(home)
    plugin(home, code, name)
    run = cru("/board", home=home)
    assert run.out == f"{WIDE}\n██░░ 50%\n" and run.err == "cru: wrong\ncru: note: 7\n"
    with pty("/board", home=home) as terminal:
        assert terminal.wait() == 0
    assert terminal.text.splitlines() == [WIDE, "cru: wrong", "cru: note: 7", "██░░ 50%"]
    (line, *_) = [
        line
        for line in map(msgspec.json.decode, cru("--json", "/board", home=home).out.splitlines())
        if line["type"] == "command"
    ]
    assert line["payload"]["view"]["children"][0] == {"kind": "text", "style": {"fg": "red"}, "text": "left"}


@PLUGINS
def test_the_model_reads_a_result_as_text_and_the_person_sees_it_drawn(home: HomeDir, name: str, code: str) -> None:
    plugin(home, code, name)
    with server([Reply(calls=[Call("draw")]), Reply("done")]) as model:
        home.configure('mode = "trust"\n', url=model.url)
        with pty("go", home=home) as terminal:
            assert terminal.wait() == 0
        result = model.requests[1].body["messages"][-1]["content"]
    assert f"  left{' ' * 61}[\\x1b[31mend]" in terminal.text
    assert "left" in result and result.rstrip().endswith("[\\x1b[31mend]")


def test_a_result_that_a_handler_replaced_is_not_drawn(home: HomeDir) -> None:
    plugin(home, LUA)
    plugin(home, 'cru.on("tool:completed", function(ctx, e) return { result = "hidden" } end)', "rule.lua")
    with server([Reply(calls=[Call("draw")]), Reply("done")]) as model:
        home.configure('mode = "trust"\n', url=model.url)
        with pty("go", home=home) as terminal:
            assert terminal.wait() == 0
        assert "hidden" in model.requests[1].body["messages"][-1]["content"]
    assert "left" not in terminal.text
