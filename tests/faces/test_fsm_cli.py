"""`cru fsm`: list, status and show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.kit import Done, HomeDir, cru, home, pty

SOURCE = """
cru.fsm.define { name = "ship", initial = "work", about = "work, then check", limits = { legs = 50, rounds = 900 }, states = {
  work = { tools = { "read", "ba*" }, to = { "code-check" }, limits = { legs = 1, on_limit = "code-check" } },
  ["code-check"] = { about = "nobody touches anything", to = { "end" }, back = { "work" },
    exit = { shell = "make test; true", about = "make test: it must pass" } },
  ["end"] = { final = true } } }
"""
DRAWN = """\
ship: work, then check
at most 50 legs or 900 rounds in all

{0} work (initial)                tools: read, ba*
    --> code-check
    ..> code-check              after 1 leg
{1} code-check                    nobody touches anything
    --[make test: it must pass]--> end
    --> work                    back, without a check
  end (final)
"""


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    made = home(tmp_path)
    (made.cru / "plugins").mkdir(parents=True)
    (made.cru / "plugins" / "ships.lua").write_text(SOURCE)
    (made.path / "model.txt").write_text('call: call_user {"message": "ok"}\n')
    made.configure(f'model = "scripted:{made.path}/model.txt"\n')
    return made


def ran(here: HomeDir, *words: str) -> Done:
    done = cru(*words, home=here)
    assert (done.code, done.err) == (0, ""), done
    return done


def begin(here: HomeDir, words: str) -> None:
    """Start the workflow; its agent asks the user, who sits at the terminal."""
    with pty(words, home=here) as terminal:
        assert terminal.wait() == 3


def test_it_is_drawn_with_the_current_state(here: HomeDir) -> None:
    assert ran(here, "fsm", "show", "ship").out == DRAWN.format(" ", " ")
    begin(here, "/ship x")
    assert ran(here, "fsm", "show", "ship").out == DRAWN.format("*", " ")
    cru("/ship to code-check", home=here)
    assert ran(here, "fsm", "show", "ship").out == DRAWN.format(" ", "*")


def test_it_is_drawn_as_mermaid(here: HomeDir) -> None:
    begin(here, "/ship x")
    assert (
        ran(here, "fsm", "show", "ship", "--mermaid").out
        == """\
stateDiagram-v2
    state "code-check" as s2
    state "end" as s3
    [*] --> work
    work --> s2
    work --> s2: after 1 leg
    s2 --> s3: make test#58; it must pass
    s2 --> work: back
    s3 --> [*]
    classDef current font-weight:bold,stroke-width:3px
    class work current
"""
    )


def test_the_definition_as_json(here: HomeDir) -> None:
    found = json.loads(ran(here, "fsm", "show", "ship", "--json").out)
    assert list(found["states"]) == ["work", "code-check", "end"]
    assert found["states"]["code-check"]["exit"] == {
        "shell": "make test; true", "timeout": 600.0, "about": "make test: it must pass",
    }  # fmt: skip
    assert (found["plugin"], found["initial"], found["current"]) == (
        "ships", "work", {"status": "not started", "state": None},
    )  # fmt: skip


def test_list_and_status_say_where_it_stands(here: HomeDir) -> None:
    assert ran(here, "fsm").out == ran(here, "fsm", "list").out
    assert ran(here, "fsm", "list").out.split() == ["/ship", "not", "started", "work,", "then", "check"]
    assert ran(here, "fsm", "status").out == "ship: not started; `/ship TEXT` starts it\n"


def test_of_a_run_state_task_counts_and_moves_are_told(here: HomeDir) -> None:
    begin(here, "/ship build a boat")
    assert ran(here, "fsm", "list").out.split()[:3] == ["/ship", "running,", "work"]
    assert ran(here, "fsm", "status").out == (
        "ship: running in the state work\n  task: build a boat\n  in this state: 1 leg, 1 round; in all: 1 leg\n"
        "  (start) -> work, by user: build a boat\n"
    )
    assert ran(here, "-C", "other", "fsm", "status").out == "ship: not started; `/ship TEXT` starts it\n"
    [row] = json.loads(ran(here, "fsm", "list", "--json").out)
    assert (row["name"], row["status"], row["state"]) == ("ship", "running", "work")


def test_what_nobody_defines_any_more_is_told(here: HomeDir) -> None:
    begin(here, "/ship x")
    (here.cru / "plugins" / "ships.lua").unlink()
    assert (
        ran(here, "fsm", "status").out
        == "ship: running in the state work; no plugin that is loaded defines it; until it is back, or `cru fsm reset ship`, the "
        "model's tools are denied\n"
    )
    assert json.loads(ran(here, "fsm", "status", "--json").out)["ship"]["state"] == "work"
    assert "there are no workflows" in ran(here, "fsm", "list").out


def test_nothing_is_there(tmp_path: Path) -> None:
    here = home(tmp_path)
    assert "there are no workflows; a plugin defines one" in ran(here, "fsm", "list").out
    assert ran(here, "fsm", "status").out == "there are no workflows in this context\n"


WRONG: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "no name": (("show",), 2, ("needs a name",)),
    "an unknown name": (("show", "shp"), 1, ("there is no workflow shp", "did you mean `ship`?")),
    "an unknown word": (("shwo", "ship"), 2, ("does not take shwo", "cru fsm show ship")),
    "a name too many": (("list", "ship"), 2, ("does not take ship",)),
    "both forms": (("show", "ship", "--json", "--mermaid"), 2, ("do not go together",)),
    "an unknown switch": (("show", "ship", "--mermad"), 2, ("--mermaid",)),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_line_says_what_would_do(here: HomeDir, what: str) -> None:
    words, code, told = WRONG[what]
    done = cru("fsm", *words, home=here)
    assert (done.code, done.out) == (code, ""), done
    assert [one for one in told if one not in done.err] == []


def test_a_broken_plugin_and_a_corrupt_file_are_told(here: HomeDir) -> None:
    begin(here, "/ship x")
    (here.context() / "plugin-state.json").write_text("{")
    (here.cru / "plugins" / "bad.lua").write_text("cru.fsm.define { name = 'x' }")
    done = cru("fsm", "list", home=here)
    assert done.code == 0 and "not started" in done.out
    assert "bad.lua:1" in done.err and "states must be a table" in done.err
    assert "plugin-state.json" in done.err and "kept as" in done.err
