"""`cru hooks why`: every hook that could have fired is accounted for, in words."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from tests.faces.hooked import claude, crush, hooks, ids, model
from tests.faces.hooks_home import trust
from tests.kit import HomeDir, cru, start
from tests.kit.waiting import wait_until

DENY = "echo nothing is deleted here >&2; exit 2"
ASK = """echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}'"""


def why(home: HomeDir, *words: str, code: int = 0) -> str:
    return hooks(home, "why", *words, code=code).out


def turn(home: HomeDir, *flags: str) -> None:
    assert cru(*flags, "clean up", home=home).code == 0


def test_nothing_recorded_is_said(home: HomeDir) -> None:
    model(home)
    assert why(home).startswith("no turn is recorded in the context default")


def test_what_is_left_out_of_a_file_is_said(home: HomeDir) -> None:
    model(home)
    crush(home, {"command": "true"}, event="PreToolUsee")
    turn(home)
    assert "left out: " in why(home) and "(did you mean `PreToolUse`?)" in why(home)


def test_a_denied_call_names_who_denied_it_and_what_the_others_said(home: HomeDir) -> None:
    model(home)
    crush(
        home,
        {"name": "guard", "matcher": "^bash$", "command": DENY},
        {"name": "allows", "command": 'echo \'{"decision":"allow"}\''},
        {"name": "fails", "command": "echo oh >&2; exit 1"},
    )
    turn(home)
    known = ids(home)
    out = why(home)
    assert out.splitlines()[0].endswith("“clean up”: done")
    assert "tool:before_call bash" in out
    assert f"denied by guard ({known['guard']}): nothing is deleted here" in out
    assert f"allows ({known['allows']}) allowed in vain" in out
    assert "the call: not run: a hook denied it: Blocked by hook" in out
    assert "exit 2: denied: nothing is deleted here" in out
    assert "exit 1: failed (exit status 1: oh), so it has no say" in out


def test_a_matcher_in_the_wrong_words_names_the_closest_tool(home: HomeDir) -> None:
    model(home)
    claude(home, {"command": "true"}, matcher="Bsah")
    turn(home)
    out = why(home)
    assert "did not fire:" in out
    assert "its matcher `Bsah` does not fit bash (claude: Bash); did you mean `Bash`?" in out


def test_an_event_and_a_tool_in_anybodys_words_narrow_it(home: HomeDir) -> None:
    model(home, 'call: bash {"command": "true"}\ncall: read {"file_path": "nothing"}\n---\ntext: Done.\n')
    crush(home, {"name": "all", "command": "true"}, UserPromptSubmit=[{"name": "prompt", "command": "true"}])
    turn(home)
    everything, one = why(home), why(home, "pre_tool_use", "view")
    assert "tool:before_call bash" in everything and "message:received" in everything
    assert "tool:before_call read" in one and "bash {" not in one and "message:received" not in one
    assert "the call: ran and failed" in one
    assert "prompt" in why(home, "UserPromptSubmit") and "tool:before_call" not in why(home, "UserPromptSubmit")


def test_a_tool_that_was_not_called_is_said(home: HomeDir) -> None:
    model(home)
    crush(home, {"matcher": "^write$", "command": "true"})
    turn(home)
    assert "the model did not call write in this turn; it called: bash" in why(home, "PreToolUse", "Write")


def test_an_event_that_did_not_happen_is_said(home: HomeDir) -> None:
    model(home, "text: Done.\n")
    crush(home, {"command": "true"})
    turn(home)
    assert "no tool was called in this turn" in why(home)


def test_states_that_keep_a_hook_from_firing_are_said(home: HomeDir) -> None:
    model(home, hooks="")
    crush(home, {"name": "foreign", "command": "true"})
    (home.project / "crush.json").write_text('{"hooks": {"PreToolUse": [{"name": "theirs", "command": "true"}]}}')
    turn(home)
    out = why(home)
    assert "hooks of other programs are off until you accept them" in out
    assert "nobody has accepted it yet: `cru hooks review`" in out


def test_one_that_was_accepted_after_the_turn_is_told_so(home: HomeDir) -> None:
    model(home)
    (home.project / "crush.json").write_text('{"hooks": {"PreToolUse": [{"name": "theirs", "command": "true"}]}}')
    turn(home)
    trust(home, ids(home)["theirs"])
    assert "it was untrusted when this turn's session read its file; it is active now" in why(home)


def test_one_that_came_after_the_turn_is_told_so(home: HomeDir) -> None:
    model(home)
    turn(home)
    crush(home, {"command": "true"})
    out = why(home)
    assert "the session of this turn knew no hooks" in out and "it was not there yet" in out


def test_a_continuation_is_not_a_prompt(home: HomeDir) -> None:
    model(home, 'call: recurse {"note": "more"}\n---\ntext: Done.\n---\ntext: All done.\n')
    crush(home, {"name": "prompt", "command": "true"}, event="UserPromptSubmit")
    turn(home)
    out = why(home, "UserPromptSubmit")
    assert out.count("exit 0: said nothing") == 1
    assert "the prompt was not typed by a person: it came from a continuation" in out


def test_two_alike_run_once(home: HomeDir) -> None:
    model(home)
    crush(home, {"name": "one", "command": "true"}, {"name": "two", "command": "true"})
    turn(home)
    assert f"it does the same as one ({ids(home)['one']}), which ran in its place" in why(home)


def test_a_slow_hook_is_named_once_and_in_why(home: HomeDir) -> None:
    model(home, 'call: bash {"command": "true"}\n---\ncall: bash {"command": "true"}\n---\ntext: Done.\n')
    crush(home, {"name": "sleepy", "command": "sleep 0.3"})
    run = cru("clean up", home=home)
    assert run.err.count("ms on PreToolUse; every tool call waits for it") == 1
    assert why(home).count("slow: the call waited for it") == 2


def test_one_that_was_interrupted_is_accounted_for(home: HomeDir) -> None:
    model(home)
    crush(home, {"name": "sleepy", "command": "touch begun; sleep 30"})
    with start("clean up", home=home) as run:
        wait_until((home.project / "begun").exists)
        run.interrupt()
        run.wait()
    out = why(home)
    assert "tool:before_call bash" in out and "the run was interrupted before this was decided" in out
    assert "was running when the run was interrupted" in out and "did not fire" not in out


def test_an_earlier_turn_and_one_that_is_not_there(home: HomeDir) -> None:
    model(home, "text: One.\n---\ntext: Two.\n")
    crush(home, {"command": "true"}, event="UserPromptSubmit")
    assert cru("first", home=home).code == 0 and cru("second", home=home).code == 0
    assert why(home).startswith("turn 2 of 2") and "“second”" in why(home)
    assert "“first”" in why(home, "--turn", "1") and "message:received  (#1)" in why(home, "--turn", "1")
    assert "there is no turn 7" in hooks(home, "why", "--turn", "7", code=1).err


def test_an_unknown_word_is_a_clear_error(home: HomeDir) -> None:
    model(home)
    crush(home, {"command": "true"})
    turn(home)
    run = hooks(home, "why", "PreTolUse", code=1)
    assert run.err == "cru: there is no event and no tool PreTolUse\n  did you mean `PreToolUse`?\n"


def test_secrets_are_not_shown(home: HomeDir) -> None:
    model(home, 'call: bash {"command": "curl -H \\"Authorization: Bearer abcdefgh12345\\""}\n---\ntext: Done.\n')
    crush(home, {"command": "echo password=hunter22 >&2; exit 2"})
    turn(home)
    for out in (why(home), why(home, "--json"), hooks(home, "log", "--full").out, hooks(home, "log", "--json").out):
        assert "hunter22" not in out and "abcdefgh12345" not in out and "[hidden]" in out


def test_the_same_for_programs(home: HomeDir) -> None:
    model(home)
    crush(home, {"name": "guard", "command": DENY})
    turn(home)
    told = msgspec.json.decode(why(home, "--json"))
    (one,) = told["occasions"]
    assert (one["event"], one["hooks"][0]["decision"], one["hooks"][0]["exit"]) == ("tool:before_call", "deny", 2)
    assert told["prompt"] == "clean up" and told["silent"] == []


def test_a_lua_rewrite_a_crush_deny_and_a_claude_ask_in_one_call(home: HomeDir) -> None:
    """The golden journal: what each answered, and how it was composed."""
    model(home)
    plugins = home.cru / "plugins"
    plugins.mkdir()
    (plugins / "nice.lua").write_text(
        'cru.on("tool:before_call", function(ctx, event) return { args = { command = "nice " .. event.args.command } } end)'
    )
    crush(home, {"name": "guard", "command": DENY})
    claude(home, {"command": ASK}, matcher="Bash")
    turn(home)
    known = ids(home)
    lines = home.lines("default", "journal.jsonl")
    (line,) = [one for one in lines if one["event"] == "tool:before_call"]
    heard = [(one["owner"], one.get("answer", {})) for one in line["heard"]]
    change = {"field": "args", "op": "set", "value": {"command": "nice echo hi"}}
    assert heard[0][0] == "nice" and heard[0][1]["changes"][0]["value"]["command"] == change["value"]["command"]  # type: ignore[index]
    assert heard[1:] == [
        (f"hook {known['guard']}", {"decision": "deny", "reason": "nothing is deleted here"}),
        (f"hook {known[ASK]}", {"decision": "ask"}),
    ]
    assert (line["decision"], line["reason"]) == ("deny", "nothing is deleted here")
    assert line["changed"]["args"]["command"] == "nice echo hi"
    fired = [one for one in home.lines("default", "hooks.jsonl") if one["k"] == "fired"]
    assert sorted(one["id"] for one in fired) == sorted((known["guard"], known[ASK]))
    assert all("nice echo hi" in one["stdin"] for one in fired)
    out = why(home)
    assert f"denied by guard ({known['guard']}): nothing is deleted here" in out
    assert "wanted a person to be asked in vain" in out and "args changed by nice" in out


def test_a_plugin_that_denied_is_named(home: HomeDir) -> None:
    model(home)
    plugin = home.cru / "plugins" / "strict.lua"
    plugin.parent.mkdir()
    plugin.write_text(
        'cru.on("pre_tool_call", function(ctx, event) return { cancel = true, reason = "not today" } end)\n'
    )
    turn(home)
    for out in (why(home), why(home, "PreToolUse"), why(home, "bash")):
        assert "denied by strict: not today" in out and "there is no hook for this" not in out, out


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("more", "shown", "said"),
    [
        ({}, "[tool bash error: ", "failed (boom), so it denied"),
        ({"on_error": "deny"}, "[tool bash hook: ", "failed (boom), so it denied"),
        ({"on_error": "allow"}, "", "failed (boom), so it has no say"),
    ],
)
def test_a_function_that_fails_is_told_with_what_it_means(
    home: HomeDir, more: dict[str, str], shown: str, said: str
) -> None:
    model(home)
    entry = {"event": "PreToolUse", "lua": 'error("boom", 0)', **more}
    (home.cru / "hooks.json").write_bytes(msgspec.json.encode({"hooks": [entry]}))
    run = cru("clean up", home=home)
    assert run.code == 0 and "boom" in run.err and ("[tool bash" in run.err) == bool(shown) and shown in run.err
    assert said in why(home), why(home)
    assert said in hooks(home, "test", "PreToolUse", code=3 if shown else 0).out


def program(home: HomeDir, name: str, **answers: str) -> None:
    """A plugin that is a program, with these hooks and what each does."""
    cases = "\n".join(f"{hook}) {does} ;;" for hook, does in answers.items())
    schema = msgspec.json.encode({"name": name, "description": "d", "hooks": list(answers)}).decode()
    path = home.cru / "plugins" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"#!/bin/sh\n[ \"$1\" = --schema ] && echo '{schema}' && exit\ncase $CHIBI_HOOK in\n{cases}\nesac\n"
    )
    path.chmod(0o755)


def test_what_hooks_of_programs_did_is_told(home: HomeDir) -> None:
    model(home)
    program(
        home,
        "guard",
        pre_shell_exec="""echo '{"denied": true, "reason": "not here"}'""",
        pre_file_write="exit",
        pre_tool="exit 3",
    )
    turn(home)
    whole = why(home)
    place = home.cru / "plugins" / "guard"
    assert "denied by guard: not here" in whole and "the call: not run: a hook denied it" in whole
    for out in (whole, why(home, "PreToolUse"), why(home, "bash")):
        assert f"    guard (program pre_shell_exec, {place}): ran " in out and " ms: denied: not here\n" in out
        assert "failed (exit code 3), so it has no say" in out
        assert f"  guard (program pre_file_write, {place}): this tool:before_call is none of its moments (bash)" in out
    one = why(home, "pre_shell_exec", "bash")
    assert "denied: not here" in one and "pre_tool" not in one and "pre_file_write" not in one
    none = why(home, "pre_file_write")
    assert "this tool:before_call is none of its moments (bash)" in none and "pre_shell_exec" not in none
    told = msgspec.json.decode(why(home, "pre_tool", "--json"))
    assert [(one["dialect"], one["event"], one["fired"]) for one in told["occasions"][0]["hooks"]] == [
        ("program", "pre_tool", True)
    ]


def test_every_name_of_a_programs_hook_may_be_asked_about(home: HomeDir) -> None:
    from cru.core.plugins.executables.executable import HOOKS

    model(home)
    turn(home)
    for name in ("pre_tool", "PreShellExec", "on_start"):
        assert "no plugin's was called in this turn" in why(home, name)
    assert "never called: cru has no virtual file system" in why(home, "pre_vfs_write")
    known = spoken()
    assert all(known(name) == name for name in HOOKS)
    assert "did you mean `pre_shell_exec`?" in hooks(home, "why", "pre_shel_exec", code=1).err
    assert "pre_tool" in hooks(home, "--help").out and "pre_tool" in hooks(home, "why", "--help").out


def spoken() -> Callable[[str], str]:
    from cru.core.hooks.report.query import parse_query

    return lambda name: parse_query([name], {}).program


HANDLERS = """
cru.on("tool:before_call", function() end)
cru.on("tool:before_call", function() return {cancel = true} end, { pattern = "bsh" })
cru.on("tool:before_call", function() return {cancel = true} end, { pattern = "read|bash" })
cru.on("tool:completed", function() error("oh") end)
cru.on("tool:called", function() end)
"""


def test_handlers_of_plugins_are_explained_as_hooks_are(home: HomeDir) -> None:
    model(home)
    file = home.cru / "plugins" / "guard.lua"
    file.parent.mkdir()
    file.write_text(HANDLERS.lstrip())
    assert cru("go", home=home).code == 0
    told = why(home)
    for text in (
        f"guard (handler tool:before_call, {file}:1): ran ",
        ": said nothing\n",
        f"guard (handler tool:before_call, {file}:2): its pattern `bsh` does not fit bash; did you mean `bash`?\n",
        f"guard (handler tool:before_call, {file}:3): its pattern `read|bash` does not fit bash; patterns are globs: {{a,b}}\n",
        f"guard (handler tool:completed, {file}:4): ran ",
        ": failed: ",
    ):
        assert text in told, told
    assert "tool:called" not in told
    assert f"guard (handler tool:called, {file}:5): ran " in why(home, "tool:called")
    by_tool = why(home, "tool:before_call", "read")
    assert "the model did not call read in this turn" in by_tool and "guard (" not in by_tool
