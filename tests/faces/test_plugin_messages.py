"""What is told about plugins, as sentences that a person can read."""

from __future__ import annotations

import msgspec
import pytest
from tests.faces.asks import plugin, scripted
from tests.kit import HomeDir, cru


@pytest.mark.parametrize(("source", "says"), [("x x", "syntax error near 'x'"), ('error("oh")', "oh")])
def test_a_test_file_that_cannot_be_run_is_told_with_its_place_once(home: HomeDir, source: str, says: str) -> None:
    folder = home.cru / "plugins" / "demo"
    (folder / "tests").mkdir(parents=True)
    (folder / "init.lua").write_text("")
    (folder / "tests" / "demo_test.lua").write_text(source)
    run = cru("plugin", "test", "demo", home=home)
    assert run.code == 1 and f"  {folder}/tests/demo_test.lua:1: {says}\n" in run.out


def test_an_event_that_nobody_raises_is_told_in_whole_sentences(home: HomeDir) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    file = home.cru / "plugins" / "odd.lua"
    file.write_text('cru.on("turn:complet", function() end)\ncru.on("zzqqxx", function() end)\n')
    said = cru("plugin", "list", home=home).out
    only = "It is heard only if a script emits it."
    assert f"odd.lua:1: `turn:complet` is no event of cru; did you mean `turn:complete`? {only}" in said
    assert f"odd.lua:2: `zzqqxx` is no event of cru. {only}" in said


def test_an_error_and_its_hint_do_not_run_together_in_the_list(home: HomeDir) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "odd.lua").write_text(
        '--- x\n-- @handler event="turn:complete" priorty=1\nfunction f() end\n'
    )
    assert "@handler has no field `priorty`; did you mean `priority`?\n" in cru("plugin", "list", home=home).out


def test_a_traceback_that_names_no_line_is_left_out(home: HomeDir) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    file = home.cru / "plugins" / "odd.lua"
    file.write_text("x x\n")
    run = cru("/plugin reload odd", home=home)
    assert run.code == 1 and run.err.endswith("odd.lua:1: syntax error near 'x'\n")
    file.write_text('local function deep() error("boom") end\ndeep()\n')
    run = cru("/plugin reload odd", home=home)
    assert "stack traceback:" in run.err and "odd.lua:2: in " in run.err


STORM = """cru.on("own:storm", function() error("no") end)
cru.on("turn:complete", function(ctx)
  for _ = 1, 1500 do ctx:emit("own:storm") end
  cru.log("warn", "something else")
  cru.log("warn", "something else")
end)"""


@pytest.mark.slow
def test_a_storm_of_the_same_warning_is_counted(home: HomeDir) -> None:
    scripted(home)
    plugin(home, STORM)
    told = cru("hi", home=home).err.splitlines()
    assert len(told) == 4 and "failed on custom" in told[0], told
    assert told[1:] == [
        "cru: last warning repeated 1,499 times",
        "cru: something else",
        "cru: last warning repeated once",
    ]
    lines = [msgspec.json.decode(line) for line in cru("--json", "hi", home=home).out.splitlines()]
    assert sum("failed on custom" in line["payload"]["text"] for line in lines if line["type"] == "notice") == 1500


def test_what_does_not_wait_and_is_awaited_is_told_with_the_way_on(home: HomeDir) -> None:
    scripted(home)
    (home.cru / "plugins").mkdir(parents=True, exist_ok=True)
    (home.cru / "plugins" / "eager.py").write_text(
        'from cru import on, sessions\n\n\n@on("turn:complete")\nasync def ask(ctx, event):\n    await sessions.messages(None)\n'
    )
    err = cru("go", home=home).err
    assert "eager.py:6: TypeError: object Values can't be used in 'await' expression" in err
    assert "does not wait returns is not awaited; docs/namespace.md marks those that wait" in err
