"""`cru plugin` and `cru lua`, as a person types them."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import Call, HomeDir, Reply, cru, server, start
from tests.kit.waiting import wait_until


def plugin(home: HomeDir, name: str, **files: str) -> Path:
    """A plugin out of its files: init, health, test."""
    folder = home.cru / "plugins" / name
    (folder / "tests").mkdir(parents=True)
    names = {"init": "init.lua", "health": "health.lua", "test": f"tests/{name}_test.lua", "python": "__init__.py"}
    for key, text in files.items():
        (folder / names[key]).write_text(text)
    return folder


def own(listed: str) -> list[dict[str, Any]]:
    """The rows of plugins that did not come with cru."""
    return [row for row in msgspec.json.decode(listed) if row["layer"] != "bundled"]


# list ---------------------------------------------------------------------------------------------------------------------------


def test_without_plugins_the_list_says_how_to_make_one(home: HomeDir) -> None:
    run = cru("plugin", "list", home=home)
    assert run.code == 0 and run.out.startswith("there are no plugins of your own; `cru plugin new NAME` makes one\n")


def test_the_list_tells_state_handlers_tools_and_errors(home: HomeDir) -> None:
    plugin(
        home,
        "good",
        init='cru.on("turn:complete", function() end)\n--- Adds.\n-- @tool\nfunction add(args) return 1 end\n',
    )
    plugin(home, "broken", init="local x = \n")
    plugin(home, "off", init="error('never run')")
    plugin(home, "snake", python="def setup(cru):\n    cru.on('turn:complete', lambda ctx, event: None)\n")
    home.configure("[plugins.off]\nenabled = false\n")
    run = cru("plugin", "list", "--json", home=home)
    rows = {row["name"]: row for row in msgspec.json.decode(run.out)}
    assert run.code == 0 and run.err == ""
    assert {name: (row["language"], row["state"]) for name, row in rows.items() if row["layer"] == "user"} == {
        "good": ("lua", "active"),
        "broken": ("lua", "error"),
        "off": ("lua", "disabled"),
        "snake": ("python", "active"),
    }
    assert [h["event"] for h in rows["good"]["handlers"]] == ["turn:complete"] and rows["good"]["tools"] == ["add"]
    assert rows["good"]["layer"] == "user" and rows["good"]["file"].endswith("good/init.lua")
    text = cru("plugin", home=home).out
    assert "broken" in text and "  error:" in text and "turn:complete" in text


def test_listing_runs_no_turn_and_logs_nothing(home: HomeDir) -> None:
    plugin(home, "loud", init='cru.on("session:started", function() cru.log("error", "started") end)')
    run = cru("plugin", "list", home=home)
    assert run.code == 0 and "started" not in run.err and home.log() == []


# new ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["demo", "my-plugin_2"])
def test_a_new_plugin_works_at_once(home: HomeDir, name: str) -> None:
    made = cru("plugin", "new", name, "--lua", home=home)
    assert made.code == 0 and str(home.cru / "plugins" / name / "init.lua") in made.out
    tests = cru("plugin", "test", name, home=home)
    assert (tests.code, tests.out) == (0, "2 passed, 0 failed, 0 pending\n"), tests
    (row,) = own(cru("plugin", "list", "--json", home=home).out)
    tool = f"{name.replace('-', '_')}_count"
    assert (row["state"], [h["event"] for h in row["handlers"]], row["tools"]) == ("active", ["tool:completed"], [tool])
    health = cru("plugin", "health", name, home=home)
    assert health.code == 0 and health.out.startswith(name)
    with server([Reply("", calls=[Call(tool, {"text": "a b"})]), Reply("two")]) as model:
        home.configure('mode = "trust"\n', url=model.url)
        assert cru("count", home=home).code == 0
    assert '{"words":2}' in model.requests[1].raw.decode().replace("\\", ""), model.requests[1].raw


def test_a_new_python_plugin_works_at_once(home: HomeDir) -> None:
    assert cru("plugin", "new", "snake", "--python", home=home).code == 0
    (row,) = own(cru("plugin", "list", "--json", home=home).out)
    assert (row["language"], row["state"], [h["event"] for h in row["handlers"]]) == (
        "python",
        "active",
        ["tool:completed"],
    )
    health = cru("plugin", "health", "snake", home=home)
    assert (health.code, health.out) == (0, "snake\n  ok     0 tool calls were seen\n")
    tests = cru("plugin", "test", "snake", home=home)
    assert (tests.code, tests.out) == (0, "1 passed, 0 failed, 0 pending\n")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "bash", "python"])
def test_a_new_program_works_at_once(home: HomeDir, kind: str) -> None:
    made = cru("plugin", "new", "my-own", "--executable", *filter(None, [kind]), home=home)
    assert made.code == 0 and 'try it: cru -P my_own_count \'{"text": "one two"}\'' in made.out
    source = (home.cru / "plugins" / "my-own").read_text()
    assert source.startswith("#!/usr/bin/env python3" if kind == "python" else "#!/usr/bin/env bash")
    (row,) = own(cru("plugin", "list", "--json", home=home).out)
    assert (row["language"], row["state"], row["tools"], row["errors"]) == (
        "executable",
        "active",
        ["my_own_count"],
        [],
    )
    assert cru("-P", "my_own_count", '{"text": "one two"}', home=home).out.strip() == "2"
    (home.project / "model.txt").write_text(
        'by: order\ncall: bash {"command": "git push --force"}\ncall: bash {"command": "ls"}\n---\ntext: done\n'
    )
    home.configure(f'model = "scripted:{home.project}/model.txt"\n')
    assert cru("-t", "go", home=home).code == 0
    results = [entry["content"] for entry in home.log() if entry["entry_type"] == "tool_result"]
    assert results == ["Blocked by my-own: nobody forces a push here", "model.txt"]
    again = cru("plugin", "new", "my-own", "--executable", home=home)
    assert again.code == 1 and "is there already" in again.err
    assert "nothing to report, it has no health check" in cru("plugin", "health", "my-own", home=home).out


def test_nothing_is_overwritten(home: HomeDir) -> None:
    cru("plugin", "new", "demo", home=home)
    file = home.cru / "plugins" / "demo" / "init.lua"
    file.write_text("-- mine")
    run = cru("plugin", "new", "demo", "--python", home=home)
    assert run.code == 1 and "is there already" in run.err and file.read_text() == "-- mine"
    (home.cru / "plugins" / "single.lua").write_text("")
    assert cru("plugin", "new", "single", home=home).code == 1


@pytest.mark.parametrize("name", ["Demo", "1st", "a b", "../up", "_x", "", "ä"])
def test_a_bad_name_is_refused(home: HomeDir, name: str) -> None:
    run = cru("plugin", "new", name, home=home)
    assert run.code == 2 and "is no name for a plugin" in run.err and not (home.cru / "plugins").exists()


# test ---------------------------------------------------------------------------------------------------------------------------

FAILING = """describe("sums", function()
  it("adds", function()
    assert.equal(3, 1 + 1)
  end)
  it("holds", function() print("printed") end)
  pending("later")
end)
"""


def test_failing_tests_are_told_with_their_place(home: HomeDir) -> None:
    folder = plugin(home, "demo", test=FAILING)
    run = cru("plugin", "test", "demo", home=home)
    assert run.code == 1
    assert run.out.splitlines() == [
        "printed",
        "failed: sums / adds",
        f"  {folder}/tests/demo_test.lua:3: Expected: 3 / Actual: 2",
        "1 passed, 1 failed, 1 pending",
    ]


def test_a_folder_is_tested_by_path_and_told_relative_to_it(home: HomeDir) -> None:
    folder = home.project / "mine"
    folder.mkdir()
    (folder / "root_test.lua").write_text(FAILING)
    (folder / "bad_test.lua").write_text("describe(")
    run = cru("plugin", "test", "./mine", home=home)
    assert run.code == 1 and "  mine/root_test.lua:3: " in run.out and "failed: the file itself" in run.out
    assert run.out.endswith("1 passed, 2 failed, 1 pending\n")
    assert "mine/root_test.lua:3" in cru("plugin", "test", ".", home=home, cwd=folder).out.replace("root", "mine/root")


def test_no_tests_found_is_a_failure(home: HomeDir) -> None:
    plugin(home, "empty", init="")
    run = cru("plugin", "test", "empty", home=home)
    assert run.code == 1 and "no tests found" in run.err and run.out == "0 passed, 0 failed, 0 pending\n"
    plugin(home, "hollow", test="-- nothing")
    assert "no tests found" in cru("plugin", "test", "hollow", home=home).err


def test_tests_leave_the_conversation_alone(home: HomeDir) -> None:
    body = 'cru.state.set("k", 1) cru.storage.set("a", "b", "c") assert.equal(1, cru.state.get("k"))'
    plugin(home, "demo", test=f'describe("s", function() it("t", function() {body} end) end)')
    run = cru("plugin", "test", "demo", home=home)
    assert run.code == 0, run
    assert not home.context().exists()


def test_those_of_every_place_are_tested_by_the_name_that_the_list_shows(home: HomeDir, tmp_path: Path) -> None:
    run = cru("plugin", "test", "ralph-loop", home=home)
    assert run.code == 0 and "0 failed" in run.out, run
    there = tmp_path / "more" / "far"
    (there / "tests").mkdir(parents=True)
    (there / "init.lua").write_text("return {}")
    (there / "tests" / "far_test.lua").write_text('describe("far", function() it("runs", function() end) end)')
    run = cru("plugin", "test", "far", home=home, env={"CRU_PLUGIN_PATH": str(tmp_path / "more")})
    assert (run.code, run.out) == (0, "1 passed, 0 failed, 0 pending\n"), run
    assert "did you mean `ralph-loop`?" in cru("plugin", "test", "ralf-loop", home=home).err


def test_a_new_plugin_with_the_name_of_another_is_told(home: HomeDir) -> None:
    run = cru("plugin", "new", "todo-enforcer", home=home)
    assert run.code == 0 and "there is another plugin todo-enforcer (bundled, " in run.err and "yours wins" in run.err


def test_an_unknown_plugin_is_named_with_the_closest(home: HomeDir) -> None:
    plugin(home, "demo", init="cru.log('debug', 'demo')", test=FAILING)
    for verb in ("test", "health"):
        run = cru("plugin", verb, "dmo", home=home)
        assert run.code == 1 and "there is no plugin dmo" in run.err and "demo" in run.err.splitlines()[1]


# health -------------------------------------------------------------------------------------------------------------------------

SICK = """local config = require("config")
return { check = function()
  cru.health.start("sick")
  cru.health.ok("key " .. tostring(cru.config.get("sick.key")) .. config.note)
  cru.health.warn("it is old", "update it")
  cru.health.error("no program", { "install it", "or another" })
end }
"""


def test_health_prints_levels_and_advice(home: HomeDir) -> None:
    folder = plugin(home, "sick", init="", health=SICK)
    (folder / "lua").mkdir()
    (folder / "lua" / "config.lua").write_text('return { note = "!" }')
    home.configure('[plugins.sick]\nkey = "k"\n')
    run = cru("plugin", "health", home=home)
    assert run.code == 1
    assert run.out.splitlines() == [
        "sick",
        "  ok     key k!",
        "  warn   it is old",
        "         update it",
        "  error  no program",
        "         install it",
        "         or another",
    ]


def test_warnings_are_healthy(home: HomeDir) -> None:
    plugin(home, "old", init='return { name = "old", health = function() cru.health.warn("old") end }')
    run = cru("plugin", "health", "old", home=home)
    assert (run.code, run.out) == (0, "old\n  warn   old\n")


def test_nothing_to_check_is_said_and_no_fault(home: HomeDir) -> None:
    plugin(home, "mute", init="")
    plugin(home, "off", init="", health="error('never')")
    home.configure("[plugins.off]\nenabled = false\n")
    run = cru("plugin", "health", home=home)
    assert run.code == 0
    assert run.out.splitlines() == [
        "mute: nothing to report, it has no health check",
        "off: nothing to report, it is disabled",
    ]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"init": "x ="}, "unexpected symbol"),
        ({"init": "", "health": "return { check = function() error('oh no') end }"}, "oh no"),
        ({"init": "", "health": "return {}"}, "returns no function `check`"),
        ({"init": "", "health": "return ("}, "unexpected symbol"),
        ({"python": "def health(cru):\n    raise KeyError('gone')\n"}, "KeyError: 'gone'"),
    ],
)
def test_a_plugin_or_check_that_breaks_is_an_error(home: HomeDir, files: dict[str, str], told: str) -> None:
    plugin(home, "bad", **files)
    run = cru("plugin", "health", "bad", home=home)
    assert run.code == 1 and "  error  " in run.out and told in run.out


# words that do not fit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("plugin", "tset", "x"), "did you mean: cru plugin test x"),
        (("plugin", "architectures", "of", "editors"), "cru -- plugin architectures of editors"),
        (("plugin", "list", "all"), "as a prompt: cru -- plugin list all"),
        (("plugin", "new"), "cru plugin new NAME"),
        (("plugin", "new", "a", "--lua", "--python"), "cru plugin new a --lua"),
        (("plugin", "new", "a", "--python", "--executable"), "cru plugin new a --python"),
        (
            ("plugin", "new", "a", "--executable", "cobol"),
            "cru plugin new a --executable bash (or python); then write it",
        ),
        (("plugin", "new", "a", "bash"), "cru -- plugin new a bash"),
        (("plugin", "test", "a", "--json"), "cru plugin --help says what it takes"),
        (("lua", "is", "a", "language"), "as a prompt: cru -- lua is a language"),
        (("lua", "missing.lua"), "as a prompt: cru -- lua missing.lua"),
        (("lua",), "cru lua '=1 + 1'"),
    ],
)
def test_words_that_do_not_fit_are_refused(home: HomeDir, words: tuple[str, ...], hint: str) -> None:
    run = cru(*words, home=home)
    assert run.code == 2 and hint in run.err, run


def test_help_is_there(home: HomeDir) -> None:
    for name in ("plugin", "lua"):
        assert f"cru {name} " in cru(name, "--help", home=home).out


# lua ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "out"),
    [
        ("=1 + 1", "2\n"),
        ("='a', nil, {1, 2}", '"a"\nnil\n{ 1, 2 }\n'),
        ("=cru.fmt('Hello {name}', {name = 'x'})", '"Hello x"\n'),
        ("=(function() end)()", "nil\n"),
        ("print('printed') return 7", "printed\n7\n"),
        ("local a = 1", ""),
        ("=cru.shell.exec('echo', {'hi'}).stdout", '"hi\\n"\n'),
    ],
)
def test_lua_evaluates_inside_a_session(home: HomeDir, word: str, out: str) -> None:
    run = cru("lua", word, home=home)
    assert (run.code, run.out, run.err) == (0, out, "")


def test_lua_runs_a_file_that_requires_its_neighbour(home: HomeDir) -> None:
    (home.project / "near.lua").write_text("return { value = 5 }")
    (home.project / "main.lua").write_text('print(require("near").value)\ncru.state.set("k", 5)')
    assert cru("lua", "main.lua", home=home).out == "5\n"
    assert cru("lua", "=cru.state.get('k')", home=home).out == "5\n"
    assert cru("-C", "other", "lua", "=cru.state.get('k')", home=home).out == "nil\n"


def test_lua_sees_the_tools_of_plugins(home: HomeDir) -> None:
    cru("plugin", "new", "demo", home=home)
    run = cru("lua", "=#cru.tools.list() > 1, require('demo').count({text = 'a b'}).words", home=home)
    assert (run.code, run.out) == (0, "true\n2\n")


@pytest.mark.parametrize(
    ("word", "told"),
    [("error('boom')", "(command line):1: boom"), ("=1 +", "(command line):1:"), ("=cru.fs.nothing()", "nil value")],
)
def test_an_error_of_lua_is_told_on_stderr(home: HomeDir, word: str, told: str) -> None:
    run = cru("lua", word, home=home)
    assert run.code == 1 and told in run.err and run.out == ""


def test_an_error_comes_with_its_traceback(home: HomeDir) -> None:
    (home.project / "deep.lua").write_text(
        "local function inner() error('deep') end\nlocal function outer() inner() end\nouter()"
    )
    run = cru("lua", "deep.lua", home=home)
    assert run.code == 1 and "deep.lua:1: deep" in run.err
    assert "stack traceback:" in run.err and "deep.lua:3: in main chunk" in run.err


READY = 'cru.fs.write("ready", "")'


def until_ready(home: HomeDir) -> None:
    wait_until((home.project / "ready").exists)


def test_a_signal_ends_what_waits(home: HomeDir) -> None:
    with start("lua", f"{READY} cru.timer.sleep(30)", home=home) as run:
        until_ready(home)
        run.interrupt()
        assert run.wait(20).code == 130


@pytest.mark.slow
def test_a_second_signal_ends_what_never_waits(home: HomeDir) -> None:
    with start("lua", f"{READY} while true do end", home=home) as run:
        until_ready(home)
        run.signal(signal.SIGINT)
        time.sleep(0.1)
        run.signal(signal.SIGINT)
        assert run.wait(20).code == 130
