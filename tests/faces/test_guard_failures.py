"""A guard that fails denies, whatever it says of it: through the real command."""

from __future__ import annotations

import pytest
from tests.faces.hooks_home import model
from tests.kit import HomeDir, cru

CALL = 'by: order\ncall: bash {"command": "touch made"}\n---\ntext: Done.\n'
PIECE = "local piece = ('x'):rep(1 << 16) "
HOARD = (
    PIECE + "t = {} for step = 8, 0, -1 do pcall(function() while true do t[#t + 1] = piece:rep(1 << step) end end) end"
)
FAILING = "local text = ('x'):rep(1 << 30)"
GUARD = 'cru.on("tool:before_call", function(ctx, event) %s end)\n'


def plugins(home: HomeDir, **sources: str) -> None:
    folder = home.cru / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        (folder / f"{name}.lua").write_text(source)


@pytest.mark.parametrize("body", ['error({message = ""})', 'error("", 0)', FAILING], ids=["table", "text", "memory"])
def test_a_guard_that_fails_without_a_word_denies(home: HomeDir, body: str) -> None:
    model(home, CALL)
    plugins(home, guard=GUARD % body)
    run = cru("work", home=home)
    assert not (home.project / "made").exists()
    assert "guard" in run.err and "failed on tool:before_call" in run.err
    (line,) = [line for line in home.lines("default", "journal.jsonl") if line["event"] == "tool:before_call"]
    assert line["decision"] == "deny" and line["heard"][0]["failed"]


def test_a_hook_in_lua_that_fails_without_a_word_denies(home: HomeDir) -> None:
    model(home, CALL)
    (home.cru / "hooks.json").write_text(
        '{"hooks": [{"event": "tool:before_call", "lua": "error({message = \\"\\"})"}]}'
    )
    run = cru("work", home=home)
    assert not (home.project / "made").exists() and "an error without a message" in run.err


@pytest.mark.slow
def test_a_plugin_that_fills_its_memory_takes_no_guard_its_own(home: HomeDir) -> None:
    model(home, CALL)
    guard = (
        GUARD % 'if event.args.command:find("made") then return {cancel = true, reason = "no " .. #("x"):rep(1e6)} end'
    )
    plugins(home, a_greedy=f'cru.on("message:received", function() {HOARD} end)', guard=guard)
    run = cru("work", home=home)
    assert not (home.project / "made").exists()
    assert "no 1000000" in run.err, run
    assert "guard.lua" not in run.err and "not loaded" not in run.err


def test_a_plugin_whose_set_up_runs_out_of_memory_is_told(home: HomeDir) -> None:
    model(home, "text: hi\n")
    plugins(home, hungry=f"return {{ setup = function() {FAILING} end }}", empty='error({message = ""})')
    run = cru("work", home=home)
    assert "plugin hungry is not loaded: " in run.err and "not enough memory" in run.err
    assert "plugin empty is not loaded: " in run.err and "an error without a message" in run.err
