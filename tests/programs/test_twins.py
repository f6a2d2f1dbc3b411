"""One program written twice, in Lua and in Python: the same behaviour through the command.

It denies `rm`, adds context to prompts, brings a tool, counts its runs in the context's state, and raises an event of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.kit import Call, Done, HomeDir, Received, Reply, cru, home, server

LUA = """
cru.on("tool:before_call", function(ctx, event)
  if event.args.command and event.args.command:match("%f[%w]rm%f[%W]") then
    return { cancel = true, reason = "no rm here" }
  end
end, { pattern = "bash" })

cru.on("message:received", function(ctx, event)
  local runs = (cru.state.get("runs") or 0) + 1
  cru.state.set("runs", runs)
  ctx:emit("twins:counted", { runs = runs })
  return { context = cru.fmt("This is run {runs}.", { runs = runs }) }
end)

cru.on("twins:counted", function(ctx, event)
  cru.toast("counted " .. event.payload.runs .. " on " .. event.name)
end)

--- Say a word backwards.
-- @tool name="backwards"
-- @param word string The word
function backwards(args)
  return args.word:reverse()
end
"""

PYTHON = """
import re

from cru import fmt, state, toast
TOOLS = {
    "backwards": {
        "desc": "Say a word backwards.",
        "params": [{"name": "word", "type": "string", "desc": "The word"}],
        "fn": lambda args: args["word"][::-1],
    }
}


def guard(ctx, event):
    if re.search(r"\\brm\\b", event["args"].get("command", "")):
        return {"cancel": True, "reason": "no rm here"}


async def count(ctx, event):
    runs = (state.get("runs") or 0) + 1
    state.set("runs", runs)
    await ctx.emit("twins:counted", {"runs": runs})
    return {"context": fmt("This is run {runs}.", {"runs": runs})}


def setup(cru):
    cru.on("tool:before_call", guard, {"pattern": "bash"})
    cru.on("message:received", count)
    cru.on("twins:counted", lambda ctx, event: toast(f"counted {event['payload']['runs']} on {event['name']}"))
"""

PROGRAMS = {"lua": LUA, "py": PYTHON}


def run(here: HomeDir, *replies: Reply) -> tuple[Done, list[Received]]:
    with server(replies) as model:
        here.configure('mode = "trust"\n', model.url)
        done = cru("go on", home=here)
    assert done.code == 0, done
    return done, model.requests


@pytest.fixture(params=PROGRAMS)
def installed(tmp_path: Path, request: pytest.FixtureRequest) -> HomeDir:
    here = home(tmp_path)
    plugins = here.cru / "plugins"
    plugins.mkdir(parents=True)
    (plugins / f"twin.{request.param}").write_text(PROGRAMS[request.param])
    return here


def test_a_command_with_rm_is_denied_and_any_other_runs(installed: HomeDir) -> None:
    _, requests = run(
        installed,
        Reply(calls=(Call("bash", {"command": "rm -f x"}), Call("bash", {"command": "echo farm"}))),
        Reply("well"),
    )
    denied, ran = requests[1].body["messages"][-2:]
    assert "no rm here" in denied["content"]
    assert "farm" in ran["content"]


@pytest.mark.sample(1)
def test_context_stands_beside_the_prompt_and_counts_the_runs(installed: HomeDir) -> None:
    said = []
    for _ in range(3):
        done, requests = run(installed, Reply("well"))
        said.append(requests[0].body["messages"][-1]["content"])
        assert done.out == "well\n"
    assert [re.findall(r"This is run \d\.", text) for text in said] == [
        ["This is run 1."],
        ["This is run 2."],
        ["This is run 3."],
    ]


def test_an_event_of_its_own_is_heard_by_those_that_listen(installed: HomeDir) -> None:
    done, _ = run(installed, Reply("well"))
    assert "counted 1 on twins:counted" in done.err


def test_its_tool_is_offered_and_runs(installed: HomeDir) -> None:
    _, requests = run(installed, Reply(calls=(Call("backwards", {"word": "abc"}),)), Reply("well"))
    [offered] = [t["function"] for t in requests[0].body["tools"] if t["function"]["name"] == "backwards"]
    assert offered["description"] == "Say a word backwards."
    assert offered["parameters"]["properties"]["word"]["type"] == "string"
    assert offered["parameters"]["required"] == ["word"]
    assert requests[1].body["messages"][-1]["content"] == "cba"
