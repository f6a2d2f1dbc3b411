"""Commands of plugins, in both languages, and plugins that come, change and go while cru runs: the real command."""

from __future__ import annotations

import msgspec
import pytest
from tests.kit import HomeDir, Reply, cru, pty, server

LUA = """
--- Says what it was given.
-- @command name="say" desc="says it"
-- @param what string what to say
-- @param how string? loudly or not
function say(args, ctx)
  ctx.display_info("dot " .. args.input)
  ctx:display_error("colon " .. args._raw)
  return ctx.handler_name .. ": " .. table.concat(args._args, "|") .. " / " .. table.concat(args._positional, "|") .. " / "
    .. tostring(args.key) .. " / " .. #ctx.session.transcript
end
return { commands = {
  ask = { desc = "asks", hint = "words", fn = function(args) return { inject = "please " .. args.input, message = "asked" } end },
  fail = { desc = "fails", fn = function() return { error = "not today" } end },
  crash = { desc = "crashes", fn = function() error("no way") end },
  hang = { desc = "hangs", fn = function() while true do end end },
  empty = { desc = "injects nothing", fn = function() return { inject = {} } end },
  ["bad name"] = { desc = "cannot be typed", fn = function() end },
  help = { desc = "taken", fn = function() end },
  nothing = { desc = "no function" },
} }
"""
PYTHON = """
def say(args, ctx):
    ctx.display_info("dot " + args["input"])
    ctx.display_error("colon " + args["_raw"])
    return {"message": f"{ctx.handler_name}: " + "|".join(args["_args"]) + " / " + "|".join(args["_positional"]) + " / "
            + str(args.get("key", "nil")) + " / " + str(len(ctx.session.transcript))}
async def ask(args, ctx):
    return {"inject": {"content": "please " + args["input"]}, "message": "asked"}
def fail(args, ctx):
    return {"error": "not today"}
def crash(args, ctx):
    raise ValueError("no way")
def empty(args, ctx):
    return {"inject": {}}
COMMANDS = {name: {"desc": name, "fn": function} for name, function in
            dict(say=say, ask=ask, fail=fail, crash=crash, empty=empty, help=say).items()}
COMMANDS["bad name"] = {"fn": say}
COMMANDS["nothing"] = {}
"""
BOTH = pytest.mark.parametrize("file, text", [("mine.lua", LUA), ("mine.py", PYTHON)], ids=["lua", "python"])


def put(home: HomeDir, file: str, text: str) -> None:
    path = home.cru / "plugins" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.sample(1)
@BOTH
def test_a_command_gets_its_words_and_shows_what_it_says(home: HomeDir, file: str, text: str) -> None:
    put(home, file, text)
    run = cru("/say one 'two words' key=v it\\'s", home=home)
    assert run.code == 0, run
    assert run.out.splitlines() == [
        "dot one 'two words' key=v it\\'s",
        "say: one|two words|key=v|it's / one|two words|it's / v / 0",
    ]
    assert "colon one 'two words' key=v it\\'s" in run.err
    assert cru("/say don't", home=home).out.splitlines()[1] == "say: don't / don't / nil / 0"
    assert cru("/say", home=home).out.splitlines() == ["dot", "say:  /  / nil / 0"]


@BOTH
def test_a_command_gives_a_prompt(home: HomeDir, file: str, text: str) -> None:
    put(home, file, text)
    with server([Reply("here")]) as model:
        home.configure(url=model.url)
        run = cru("/ask for it", home=home)
    assert (run.code, run.out.splitlines()) == (0, ["asked", "here"]), run
    assert model.requests[0].body["messages"][-1]["content"] == "please for it"


@pytest.mark.sample(1)
@BOTH
def test_a_failing_command_names_plugin_and_place(home: HomeDir, file: str, text: str) -> None:
    put(home, file, text)
    said = cru("/fail", home=home)
    assert said.code == 1 and "cru: not today" in said.err
    crashed = cru("/crash", home=home)
    assert (
        crashed.code == 1
        and "/crash of mine: " in crashed.err
        and f"{file}:" in crashed.err
        and "no way" in crashed.err
    )
    assert "Traceback" not in crashed.err
    assert "inject without content" in cru("/empty", home=home).err


ANSWERS = {
    "both": ('{ message = "half of it", error = "not all" }', 1, "half of it\n", "cru: not all"),
    "empty": (
        '{ inject = "", message = "made" }',
        1,
        "made\n",
        "/it of mine: `inject` is empty: there is no prompt to send",
    ),
    "blank": ("{ inject = { content = ' ' } }", 1, "", "`inject` is empty"),
    "function": ("{ message = print }", 1, "", "/it of mine: `message` must be a text, not a function"),
    "table": ("{ error = { 1 } }", 1, "", "/it of mine: `error` must be a text, not a table"),
    "number": ("{ message = 5 }", 0, "5\n", ""),
    "boolean": ("true", 0, "", "mine: /it returned a boolean; a text, a table or nil is understood"),
    "a slip": ("{ mesage = 'x' }", 0, "", "mine: /it returned `mesage`, which means nothing; did you mean `message`?"),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_what_a_command_may_answer(home: HomeDir, what: str) -> None:
    answer, code, out, err = ANSWERS[what]
    put(home, "mine.lua", f"return {{ commands = {{ it = {{ fn = function() return {answer} end }} }} }}")
    run = cru("/it", home=home)
    assert (run.code, run.out) == (code, out) and err in run.err and bool(err) == bool(run.err)


@BOTH
def test_names_that_are_taken_or_cannot_be_typed_are_told(home: HomeDir, file: str, text: str) -> None:
    put(home, file, text)
    run = cru("/plugin list", home=home)
    assert "/help of mine can only be called as /mine:help: cru has a command of that name" in run.err
    assert "/bad name of mine is left out" in run.err and "nothing is left out: it has no function" in run.err
    assert (
        "commands:  /ask, /crash, /empty, /fail, " in run.out
        and "error:     /help of mine can only be called as" in run.out
    )


@pytest.mark.parametrize(("name", "typed"), [("help", "/mine:help"), ("to.do", "/mine:to.do"), ("plain", "/plain")])
def test_a_name_that_is_taken_or_has_a_dot_is_called_with_the_plugins_name(
    home: HomeDir, name: str, typed: str
) -> None:
    put(
        home,
        "mine.lua",
        f'return {{ commands = {{ ["{name}"] = {{ fn = function(args) return "ran " .. args.input end }} }} }}',
    )
    run = cru(f"{typed} it", home=home)
    assert run.out == "ran it\n" and ("can only be called as" in run.err) == (":" in typed)


def test_a_function_stands_for_a_table_with_only_a_function(home: HomeDir) -> None:
    code = (
        "return { commands = { it = function() return 'ran' end },\n"
        "         views = { mine = function(ctx) return cru.oil.text('drawn') end },\n"
        "         tools = { mine_tool = function() return 'called' end } }"
    )
    put(home, "mine.lua", code)
    run = cru("/it", home=home)
    assert (run.out, run.err) == ("ran\n", "")
    listed = cru("plugin", "list", home=home).out
    assert "/it" in listed and "mine_tool" in listed and "error:" not in listed
    assert cru("-P", "mine_tool", home=home).out.strip() == "called"
    assert "drawn" in cru("/view mine", home=home).out


@pytest.mark.slow
def test_a_command_that_never_ends_is_ended(home: HomeDir) -> None:
    put(home, "mine.lua", LUA)
    run = cru("/hang", home=home)
    assert run.code == 1 and "ran longer than 1 s" in run.err and "mine.lua:" in run.err


def test_the_first_plugin_keeps_a_name_and_help_shows_the_hint(home: HomeDir) -> None:
    put(home, "mine.lua", LUA)
    put(
        home,
        "zeta.lua",
        "return { commands = { say = { fn = function() end } }, tools = { bash = { fn = function() end } } }",
    )
    run = cru("/help", home=home)
    assert "/say what [how]" in run.out and "/ask words" in run.out
    assert "/say of zeta can only be called as /zeta:say: mine has a command of that name" in run.err
    assert "the tool bash of zeta is left out: cru itself has one of that name" in run.err


def test_two_plugins_have_a_module_of_the_same_name_also_late(home: HomeDir) -> None:
    for name in ("one", "two"):
        put(home, f"{name}/lua/config.lua", f"return {{ value = '{name}' }}")
        put(
            home,
            f"{name}/init.lua",
            f"""local early = require("helper").value()
            return {{ commands = {{ {name} = {{ fn = function() return early .. require("config").value end }} }} }}""",
        )
        put(
            home,
            f"{name}/lua/helper.lua",
            "return { value = function() return 'by helper ' .. require('config').value .. ', late ' end }",
        )
    assert cru("/one", home=home).out == "by helper one, late one\n"
    assert cru("/two", home=home).out == "by helper two, late two\n"


STAYS = "return { commands = { mine = { fn = function() return 'still here' end } } }"


def test_switching_at_run_time(home: HomeDir) -> None:
    put(home, "mine.lua", STAYS)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("/mine")
        terminal.expect("still here")
        terminal.line("/plugin disable mine")
        terminal.expect("mine is disabled for this session")
        terminal.line("/mine")
        terminal.expect("unknown command")
        terminal.line("/plugin enable mine")
        terminal.expect("mine is active")
        terminal.line("/mine")
        terminal.expect("still here")
        assert terminal.eof() == 0


def test_switching_for_good(home: HomeDir) -> None:
    put(home, "mine.lua", STAYS)
    home.configure("# keep me\n[plugins.other] # and me\nkey = 1\n")
    run = cru("plugin", "disable", "mine", home=home)
    assert run.code == 0 and "is disabled from the next session on" in run.out
    config = (home.cru / "config.toml").read_text()
    assert (
        "# keep me" in config and "[plugins.other] # and me" in config and "[plugins.mine]\nenabled = false" in config
    )
    rows = {row["name"]: row for row in msgspec.json.decode(cru("plugin", "list", "--json", home=home).out)}
    assert rows["mine"]["state"] == "disabled" and rows["mine"]["commands"] == []
    assert cru("/mine", home=home).code == 2
    assert cru("plugin", "enable", "mine", home=home).code == 0 and cru("/mine", home=home).out == "still here\n"
    unknown = cru("plugin", "disable", "mime", home=home)
    assert unknown.code == 1 and "did you mean `mine`?" in unknown.err


def test_a_changed_plugin_is_loaded_anew_before_the_next_prompt(home: HomeDir) -> None:
    put(home, "mine.lua", 'cru.on("turn:complete", function() cru.notify("first edition") end)')
    with server([Reply("one"), Reply("two"), Reply("three")]) as model:
        home.configure("[plugins]\nwatch = true\n", url=model.url)
        with pty("-v", home=home) as terminal:
            terminal.expect("> ")
            terminal.line("a")
            terminal.expect("first edition")
            terminal.expect("> ")
            put(home, "mine.lua", 'cru.on("turn:complete", function() cru.notify("other edition") end)')
            put(home, "late.lua", 'cru.on("turn:complete", function() cru.notify("late one") end)')
            terminal.line("b")
            terminal.expect("the plugin mine has changed and is loaded anew")
            terminal.expect("the plugin late is new and is loaded")
            terminal.expect("late one")
            terminal.expect("> ")
            (home.cru / "plugins" / "late.lua").unlink()
            terminal.line("c")
            terminal.expect("the plugin late is gone and is unloaded")
            terminal.expect("three")
            assert terminal.eof() == 0
            assert terminal.text.count("first edition") == 1 and terminal.text.count("late one") == 1
            assert terminal.text.count("other edition") == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("relod", "did you mean `reload`?"),
        ("disable", "/plugin disable name"),
        ("reload a b", "/plugin reload [name]"),
        ("reload mime", "did you mean `mine`?"),
    ],
)
def test_wrong_words_name_the_next_step(home: HomeDir, words: str, told: str) -> None:
    put(home, "mine.lua", "")
    run = cru(f"/plugin {words}", home=home)
    assert run.code in (1, 2) and told in run.err and "Traceback" not in run.err


def test_a_reload_that_fails_shows_the_way_to_the_error(home: HomeDir) -> None:
    put(home, "mine.py", "def setup(cru):\n    deep()\ndef deep():\n    raise KeyError('gone')\n")
    run = cru("/plugin reload mine", home=home)
    assert (
        run.code == 1
        and "the plugin mine is not loaded" in run.err
        and "in deep" in run.err
        and "importlib" not in run.err
    )


def test_without_plugins_it_says_how_to_make_one(home: HomeDir) -> None:
    run = cru("/plugin", home=home)
    assert run.code == 0 and "cru plugin new NAME" in run.out
