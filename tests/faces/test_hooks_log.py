"""`cru hooks log`: what hooks did, newest last."""

from __future__ import annotations

import msgspec
from tests.faces.hooked import crush, hooks, ids, model
from tests.kit import HomeDir, cru


def turn(home: HomeDir) -> None:
    model(home, 'call: bash {"command": "echo one"}\n---\ncall: read {"file_path": "model.txt"}\n---\ntext: Done.\n')
    crush(
        home,
        {"name": "guard", "matcher": "^bash$", "command": "cat; echo no >&2; exit 2"},
        {"name": "quiet", "command": "true"},
    )
    assert cru("go", home=home).code == 0


def test_nothing_is_said_too(home: HomeDir) -> None:
    model(home)
    assert hooks(home, "log").out.startswith("no hook has run in the context default")
    assert hooks(home, "log", "--json").out == ""


def test_one_line_a_firing_newest_last(home: HomeDir) -> None:
    turn(home)
    lines = hooks(home, "log").out.splitlines()
    assert len(lines) == 3
    assert "quiet  PreToolUse read: " in lines[-1] and "exit 0: said nothing" in lines[-1]
    assert any("guard  PreToolUse bash: " in line and "exit 2: denied: no" in line for line in lines[:2])


def test_the_last_ones_and_those_of_one_hook(home: HomeDir) -> None:
    turn(home)
    assert hooks(home, "log", "-n", "1").out.count("\n") == 1 and "read" in hooks(home, "log", "-n", "1").out
    assert hooks(home, "log", "-n", "0").out.count("\n") == 3
    guard = ids(home)["guard"]
    assert hooks(home, "log", guard).out.count("\n") == 1 and "guard" in hooks(home, "log", guard[:-1]).out
    assert hooks(home, "log", "guard").out == hooks(home, "log", guard).out
    assert "there is no hook nosuch" in hooks(home, "log", "nosuch", code=1).err


def test_in_full_it_shows_what_went_in_and_came_out(home: HomeDir) -> None:
    turn(home)
    out = hooks(home, "log", ids(home)["guard"], "--full").out
    for text in ("  stdin:", '"tool_input":{"command":"echo one"}', "  stdout:", "  stderr:\n    no", "crush.json:"):
        assert text in out


def test_for_programs_it_is_json(home: HomeDir) -> None:
    turn(home)
    made = [msgspec.json.decode(line) for line in hooks(home, "log", "--json").out.splitlines()]
    assert [one["seq"] for one in made] == sorted(one["seq"] for one in made)
    assert {one["decision"] for one in made if "decision" in one} == {"deny"}


def test_bad_words_are_clear_errors(home: HomeDir) -> None:
    for words in (("-n", "x"), ("-n", "-1"), ("--ful",), ("a", "b")):
        run = hooks(home, "log", *words, code=2)
        assert run.err.startswith("cru: ") and run.out == ""


def test_a_torn_line_is_no_obstacle(home: HomeDir) -> None:
    turn(home)
    path = home.context() / "hooks.jsonl"
    path.write_bytes(path.read_bytes() + b'{"k":"fired","time":17')
    assert hooks(home, "log").out.count("\n") == 3 and "tool:before_call" in hooks(home, "why").out
