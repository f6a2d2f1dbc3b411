"""What hooks of each kind can do about a compaction, through the real command. (Claude's: tests/programs/test_claude_hooks.py.)"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.core.turn.test_compaction_runs import CHOICE, LONG, SUMMARY, filled, kind, rule
from tests.kit import HomeDir, cru, server

LUA = """
cru.on("context:overflow", function(ctx, event)
  cru.fs.append(cru.paths.session() .. "/heard", event.trigger .. " " .. event.messages .. " " .. event.strategy .. "\\n")
  return %s
end)
cru.on("session:compacted", function(ctx, event)
  cru.fs.append(cru.paths.session() .. "/heard", "after " .. event.trigger .. " " .. event.archived .. " " .. event.messages .. "\\n")
end)
"""
PYTHON = """
from cru import fs, on, paths


@on("context:overflow")
def before(ctx, event):
    fs.append(paths.session() + "/heard", f"{event['trigger']} {event['messages']} {event['strategy']}\\n")
    return %s


@on("session:compacted")
def after(ctx, event):
    fs.append(paths.session() + "/heard", f"after {event['trigger']} {event['archived']} {event['messages']}\\n")
"""
SHELL = """#!/bin/sh
exec python3 -c '
import json, os, sys
event = json.load(sys.stdin)
data = event.get("payload", event)
with open(os.environ["HOME"] + "/.cru/contexts/default/heard", "a") as file:
    if "archived" in data:
        file.write("after %s %s %s\\n" % (data["trigger"], data["archived"], data["messages"]))
    else:
        file.write("%s %s %s\\n" % (data["trigger"], data["messages"], data["strategy"]))
        print(json.dumps(ANSWER))
'
"""
# What the handler answers, in each language.
ANSWERS = {
    "veto": ('{ cancel = true, reason = "not now" }', {"cancel": True, "reason": "not now"}, {"decision": "deny", "reason": "not now"}),
    "prompt": ('{ summary_prompt = "Summarise in verse." }', {"summary_prompt": "Summarise in verse."}, None),
    "summary": ('{ handled = true, result = "by hand" }', {"handled": True, "result": "by hand"}, {"result": "by hand"}),
}  # fmt: skip


def install(home: HomeDir, language: str, verb: str) -> None:
    lua, python, native = ANSWERS[verb]
    plugins = home.cru / "plugins"
    if language != "command":
        plugins.mkdir()
        name, text = ("h.lua", LUA % lua) if language == "lua" else ("h.py", PYTHON % python)
        (plugins / name).write_text(text)
        return
    script = home.path / "hook.sh"
    script.write_text(SHELL.replace("ANSWER", json.dumps(native).replace("'", "")))
    hooks = [{"event": name, "command": f"sh {script}"} for name in ("context:overflow", "session:compacted")]
    (home.cru / "hooks.json").write_text(json.dumps({"hooks": hooks}))


@pytest.mark.sample(1)
@pytest.mark.parametrize("words", [("-t", f"4 look {LONG}"), ("-z",)], ids=["auto", "manual"])
@pytest.mark.parametrize(
    ("language", "verb"),
    [
        (name, verb)
        for name in ("lua", "python", "command")
        for verb in ANSWERS
        if (name, verb) != ("command", "prompt")
    ],
)
def test_a_hook_may_refuse_say_how_or_do_it(home: HomeDir, language: str, verb: str, words: tuple[str, ...]) -> None:
    with server(rule()) as model:
        filled(home, model)
        install(home, language, verb)
        before = len(model.requests)
        done = cru(*words, home=home)
    manual = words == ("-z",)
    assert done.code == (1 if manual and verb == "veto" else 0), done
    asked = [kind(r) for r in model.requests[before:]]
    anchors = [e for e in home.log() if e["entry_type"] == "anchor"]
    heard = Path(home.context() / "heard").read_text().splitlines()
    assert heard[0] == ("manual 8 full" if manual else "auto 9 rolling")
    after = "after manual 8 0" if manual else "after auto 4 5"
    assert [line for line in heard if line.startswith("after")][:1] == ([] if verb == "veto" else [after])
    if verb == "veto":
        assert anchors == [] and CHOICE not in asked and SUMMARY not in asked
    else:
        assert anchors[0]["content"] == ("by hand" if verb == "summary" else "they talked")
    if verb == "summary":
        assert CHOICE not in asked and SUMMARY not in asked
    if verb == "prompt":
        assert any("Summarise in verse." in str(r.body["messages"][0]) for r in model.requests[before:])
