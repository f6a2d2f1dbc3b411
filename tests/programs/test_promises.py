"""Sentences of the seeds and of crucible's and chibi's contracts, each by the command as a user runs it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.core.plugins.executables.programs import program, results, script
from tests.faces.asks import plugin, scripted
from tests.kit import Call, Done, HomeDir, Reply, cru, server

GO = "loop: yes\ntext: hello\n"
CALL = 'call: bash {"command": "true"}\n---\ntext: done\n'


def run(home: HomeDir, code: str, *argv: str, replies: str = GO, config: str = "") -> Done:
    """One run with this plugin in Lua."""
    scripted(home, replies, f'mode = "trust"\n{config}')
    plugin(home, code, "probe.lua")
    return cru(*(argv or ("hi",)), home=home)


def told(done: Done) -> list[str]:
    """What the plugin told with `cru.toast`."""
    return [line.removeprefix("cru: ") for line in done.err.splitlines()]


def state(home: HomeDir) -> object:
    return msgspec.json.decode((home.cru / "state.json").read_bytes())


# contexts and files ---------------------------------------------------------------------------------------------------------------


def test_state_json_is_there_from_the_start(home: HomeDir) -> None:
    scripted(home, GO)
    cru("hi", home=home)
    assert state(home) == {"contexts": ["default"], "current_context": "default"}
    cru("-C", "side", "hi", home=home)
    assert state(home) == {"contexts": ["default", "side"], "current_context": "default"}


@pytest.mark.parametrize("made", ["", "folder", "run"])
def test_an_implicit_default_that_is_renamed_stays_the_current_context(home: HomeDir, made: str) -> None:
    scripted(home, GO)
    if made == "folder":
        home.context().mkdir(parents=True)
    elif made == "run":
        cru("before", home=home)
        (home.cru / "state.json").unlink()
    assert cru("-r", "work", "hi", home=home).code == 0
    assert cru("again", home=home).code == 0
    assert cru("-L", home=home).out == "* work\n"
    assert [e["content"] for e in home.log("work") if e.get("role") == "user"][-2:] == ["hi", "again"]


def test_a_broken_state_json_is_told_and_left_alone(home: HomeDir) -> None:
    scripted(home, GO)
    (home.cru / "state.json").write_text("{")
    assert "state.json: not valid" in cru("hi", home=home).err
    assert (home.cru / "state.json").read_text() == "{"


def test_a_compaction_writes_summary_md_and_the_next_prompt_has_continuation_md(home: HomeDir) -> None:
    with server(lambda request: Reply("in short")) as model:
        home.configure(url=model.url)
        (home.cru / "prompts").mkdir()
        (home.cru / "prompts" / "continuation.md").write_text("Go on from here.\n")
        for words in ("one", "two"):
            cru(words, home=home)
        assert not (home.context() / "summary.md").exists()
        cru("-z", home=home)
        assert (home.context() / "summary.md").read_text() == "in short"
        cru("three", home=home)
        system = model.requests[-1].body["messages"][0]["content"]
        assert "--- SUMMARY ---\nGo on from here.\n\nin short" in system
        assert "Go on from here." not in model.requests[0].body["messages"][0]["content"]
        cru("-a", home=home)
    assert not (home.context() / "summary.md").exists()


def test_an_overflow_is_heard_with_automatic_compaction_off(home: HomeDir) -> None:
    code = (
        'cru.on("context:overflow", function(ctx, event) cru.toast(event.trigger .. " " .. event.max_tokens) end)\n'
        'cru.on("PreCompact", function() cru.toast("never") end)'
    )
    small = "context_window_limit = 400\n"
    assert told(run(home, code, config=f"{small}auto_compact = false\n"))[-1] == "none 400"
    program(home, "compacts", HEARS.format(hook="pre_rolling_compact"))
    off = run(home, code, config=f"{small}auto_compact = false\n")
    assert not (home.project / "heard").exists() and told(off)[-1] == "none 400"
    assert not (home.context() / "summary.md").exists()
    long = run(home, code, config=f"{small}auto_compact = false\nauto_compact_threshold = 100\n", replies=CALL)
    assert [line for line in told(long) if line.startswith("none")] == [
        "none 400"
    ]  # once for a prompt, not for each request


def test_a_handler_may_give_the_summary_where_nothing_is_compacted_by_itself(home: HomeDir) -> None:
    code = 'cru.on("context:overflow", function(ctx, event) return { handled = true, result = "mine" } end)'
    for _ in range(3):
        done = run(home, code, config="context_window_limit = 400\nauto_compact = false\n")
    assert done.code == 0 and (home.context() / "summary.md").read_text() == "mine"


HEARS = """#!/bin/sh
if [ "$1" = --schema ]; then echo '{{"name": "hears", "description": "d", "hooks": ["{hook}"]}}'; exit; fi
cat >> heard; echo >> heard
"""


# standard output ------------------------------------------------------------------------------------------------------------------

LOUD = """
import os, subprocess, sys
import cru
print("loading")
@cru.on("turn:complete")
def loud(ctx, event):
    print("handling")
    sys.stdout.buffer.write(b"bytes\\n")
    os.write(1, b"descriptor\\n")
    subprocess.run(["echo", "child"])
"""
PRINTED = ["loading", "handling", "bytes", "descriptor", "child"]
WHERE = "the plugin loud prints: that goes to standard error, since standard output is the answer's"


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_standard_output_is_the_answer_whatever_a_python_plugin_prints(home: HomeDir, flags: tuple[str, ...]) -> None:
    scripted(home, GO)
    plugin(home, LOUD, "loud.py")
    done = cru(*flags, "hi", home=home)
    assert [line for line in done.err.splitlines() if line in PRINTED] == PRINTED
    if not flags:
        assert done.out == "hello\n" and told(done).count(WHERE) == 1
    else:
        lines = [msgspec.json.decode(line) for line in done.out.splitlines()]
        assert [line["payload"]["text"] for line in lines if line["type"] == "notice"] == [WHERE]


@pytest.mark.parametrize("argv", [("plugin", "list"), ("-p", "shout"), ("lua", "=1 + 1"), ("/say",)])
def test_results_of_commands_stay_apart_from_what_plugins_print(home: HomeDir, argv: tuple[str, ...]) -> None:
    scripted(home, GO)
    plugin(home, LOUD + 'TOOLS = {"shout": {"desc": "d", "fn": lambda args: print("tool") or "result"}}\n'
           'COMMANDS = {"say": {"desc": "d", "fn": lambda args, ctx: print("command") or "result"}}\n', "loud.py")  # fmt: skip
    done = cru(*argv, home=home)
    expected = {"lua": "2\n", "-p": "result", "/say": "result\n"}.get(argv[0])
    assert done.code == 0 and (done.out == expected if expected else "\nloud " in done.out)
    assert "loading" in done.err.splitlines() and "loading" not in done.out


def test_what_lua_prints_is_seen(home: HomeDir) -> None:
    done = run(home, 'cru.once("session:started", function() print("Session", 1, nil) io.write("written\\n") end)')
    assert done.out == "hello\n" and told(done) == ["Session\t1\tnil", "written"]


# answers of handlers --------------------------------------------------------------------------------------------------------------


def test_a_result_beside_terminate_is_kept_and_the_turn_is_done(home: HomeDir) -> None:
    code = 'cru.on("pre_tool_call", function() return { handled = true, result = "HERE", terminate = true } end)'
    done = run(home, code, replies=CALL)
    assert (done.code, done.out, done.err) == (0, "", "") and results(home) == ["HERE"]


def test_a_batch_of_which_one_call_goes_on_goes_on(home: HomeDir) -> None:
    code = (
        'cru.on("pre_tool_call", function(ctx, event)\n'
        '  return { handled = true, result = "x", terminate = event.args.command == "a" }\nend)'
    )
    calls = 'call: bash {"command": "a"}\ncall: bash {"command": "b"}\n---\ntext: done\n'
    assert run(home, code, replies=calls).out == "done\n" and results(home) == ["x", "x"]


def test_what_a_handler_adds_to_an_event_reaches_the_later_ones_in_both_languages(home: HomeDir) -> None:
    scripted(home, GO)
    code = (
        'cru.on("turn:complete", function(ctx, event)\n'
        "  event.modified = true\n  event.payload.deep = { n = 5 }\n  return event\nend, { priority = 10 })\n"
        'cru.on("turn:complete", function(ctx, event)\n'
        "  cru.toast(tostring(event.modified) .. event.deep.n .. event.payload.deep.n .. tostring(event.more))\n"
        "end, { priority = 30 })\n"
    )
    plugin(
        home,
        "import cru\n"
        "@cru.on('turn:complete', priority=20)\n"
        "def middle(ctx, event):\n"
        "    cru.toast(f'{event.modified} {event.deep} {event.payload.modified}')\n"
        "    event.more = 'text'\n"
        "    return event\n"
        "@cru.on('message:received')\n"
        "def other(ctx, event):\n"
        "    cru.toast(str('modified' in event))\n",
        "middle.py",
    )
    assert told(run(home, code)) == ["False", "True {'n': 5} True", "true55text"]


def test_an_inject_beside_a_cancel_is_an_inject_and_later_handlers_run(home: HomeDir) -> None:
    code = (
        'cru.on("turn:complete", function(ctx) if not ctx.is_continuation then\n'
        '  return { inject = { content = "first" }, cancel = true } end end, { priority = 10 })\n'
        'cru.on("turn:complete", function(ctx) if not ctx.is_continuation then\n'
        '  return { inject = { content = "second" } } end end, { priority = 20 })\n'
        'cru.on("injection_pending", function(ctx, event)\n'
        "  cru.toast(event.content .. tostring(event.is_continuation) .. tostring(event.payload.is_continuation))\nend)"
    )
    assert "secondtruetrue" in told(run(home, code))


def test_a_guard_that_cancels_and_injects_still_forbids(home: HomeDir) -> None:
    code = 'cru.on("pre_tool_call", function() return { cancel = true, reason = "tests first", inject = "run the tests" } end)'
    done = run(home, code, replies='call: bash {"command": "touch pushed"}\n---\ntext: done\n')
    assert not (home.project / "pushed").exists() and "tests first" in results(home)[0]
    assert "`inject` beside `cancel` is left out" in done.err


def test_a_scalar_is_told_in_the_words_of_lua(home: HomeDir) -> None:
    done = run(home, 'cru.on("turn:complete", function() return false end)')
    assert "returned false; a table or nil is understood" in done.err


def test_an_unknown_annotation_is_told_and_the_file_counts(home: HomeDir) -> None:
    code = (
        '--- Keeps watch.\n-- @handler event="turn:complete"\n-- @author me\n-- @nosuch x\n'
        'function watch() cru.toast("watching") end\n\n'
        '-- @hndler event="turn:complete"\nfunction lost() end\n'
    )
    done = run(home, code)
    where = home.cru / "plugins" / "probe.lua"
    assert told(done) == [
        f"probe: {where}:4: unknown annotation @nosuch, which has no effect",
        f"probe: {where}:7: unknown annotation @hndler, which has no effect; did you mean `handler`?",
        "watching",
    ]


def test_the_transcript_names_the_calls_of_tools(home: HomeDir) -> None:
    code = (
        'cru.on("turn:complete", function(ctx)\n'
        "  for _, line in ipairs(ctx.session.transcript) do cru.toast(cru.json.encode(line)) end\nend)"
    )
    lines = [msgspec.json.decode(line) for line in told(run(home, code, replies=CALL))]
    assert [line["role"] for line in lines] == ["user", "assistant", "tool", "assistant"]
    (made,) = lines[1]["tool_calls"]
    assert (made["name"], msgspec.json.decode(made["arguments"])) == ("bash", {"command": "true"})
    assert (lines[2]["name"], lines[2]["tool_call_id"], lines[2]["is_error"]) == ("bash", made["id"], False)


# programs -------------------------------------------------------------------------------------------------------------------------

WARM = """#!/bin/sh
if [ "$1" = --schema ]; then echo '{"name": "warm", "description": "d", "hooks": ["pre_api_request"]}'; exit; fi
echo >> called
echo '{"request_body": {"temperature": 0.25}}'
"""


def test_parameters_of_pre_api_request_hold_for_all_requests_of_the_prompt(home: HomeDir) -> None:
    replies = iter([Reply(calls=[Call("bash", {"command": "true"})]), Reply("one"), Reply("two")])
    with server(lambda request: next(replies)) as model:
        home.configure('mode = "trust"\n', url=model.url)
        program(home, "warm", WARM)
        assert cru("go", home=home).out == "one\n"
        (home.cru / "plugins" / "warm").unlink()
        assert cru("go", home=home).out == "two\n"
    assert [request.body.get("temperature") for request in model.requests] == [0.25, 0.25, None]
    assert (home.project / "called").read_text() == "\n"  # it is asked once


def test_post_send_message_has_the_sentence_that_the_model_reads(home: HomeDir) -> None:
    program(
        home,
        "post",
        '#!/bin/sh\nif [ "$1" = --schema ]; then echo \'{"name": "post", "description": "d", "hooks": ["post_send_message", '
        '"pre_send_message"]}\'; exit; fi\n'
        'if [ "$CHIBI_HOOK" = post_send_message ]; then cat >> heard; echo >> heard; exit; fi\n'
        "if grep -q refuse; then echo '{\"block\": true}'; fi\n",
    )
    plugin(
        home,
        'cru.on("inbox:sending", function(c, e) if e.content == "no" then return { cancel = true, reason = "quiet" } end end)',
    )
    script(
        home,
        'call: send_message {"to": "other", "content": "yes"}',
        'call: send_message {"to": "other", "content": "no"}',
        "x",
    )
    assert cru("-t", "go", home=home).code == 0
    sentences = [
        msgspec.json.decode(line)["delivery_result"] for line in (home.project / "heard").read_text().splitlines()
    ]
    assert sentences == results(home) == ["Message sent to other (a new context was made for it)", "Not sent: quiet"]


ASKS = """#!/bin/bash
if [[ $1 == --schema ]]; then echo '{"name": "asks", "description": "d"}'; exit; fi
read -rp "Sure? " first; read -r second; echo "$CHIBI_TOOL_ARGS $first $second"
"""


@pytest.mark.parametrize(("input", "answers"), [("y\nmore\n", "y more"), ("", " "), (None, " ")])
def test_answers_may_be_piped_to_a_program_that_reads_its_arguments_from_the_environment(
    home: HomeDir, input: str | None, answers: str
) -> None:
    scripted(home, GO)
    program(home, "asks", ASKS)
    assert cru("-p", "asks", "x", home=home, input=input).out == f'{{"args":["x"]}} {answers}\n'


def test_what_was_the_prompt_answers_nothing(home: HomeDir) -> None:
    program(home, "asks", ASKS)
    script(home, "call: asks {}", "done")
    assert cru("-t", "go", home=home, input="y\n").out == "done\n" and results(home) == ["{}  \n"]


# names ----------------------------------------------------------------------------------------------------------------------------

OWN_STATE = Path(__file__).with_name("discipline") / "own_state.lua"


def test_the_state_of_the_api_notes_may_be_made_anew_and_stays_the_plugins_own(home: HomeDir) -> None:
    """The implementation that the notes print, as it stands there."""
    scripted(home, GO)
    plugin(
        home,
        'cru.on("turn:complete", function() cru.toast(tostring(cru.state.get("x"))) end, { priority = 200 })',
        "other.lua",
    )
    use = 'function() cru.state.set("x", { n = 1 }) cru.toast("n" .. cru.state.get("x").n) end'
    code = f'{OWN_STATE.read_text()}\ncru.on("turn:complete", {use})'
    assert told(run(home, code)) == ["n1", "nil"]
    assert msgspec.json.decode((home.project / ".crucible" / "plugin-state.json").read_bytes()) == {"x": {"n": 1}}
    done = run(home, "cru.state.mine = 5")
    assert "cru.state.mine cannot be assigned" in done.err


def test_how_crucibles_terminal_looks_is_accepted_in_silence(home: HomeDir) -> None:
    code = (
        "local s = cru.statusline\n"
        's.setup { top = { s.mode(), s.model { max = 20 }:hl("Title") },\n'
        '          bottom = { s.when(true, s.text("x")), s.any(s.status(), s.expr("k")) } }\n'
        'cru.hl.set("Title", { fg = "cyan", bold = true }) cru.hl.link("Mode", "Title")\n'
        'cru.colorscheme.setup { name = "dark" } cru.syntax.setup {} cru.ui.setup { border = "rounded" }'
    )
    done = run(home, code)
    assert (done.code, done.out, done.err) == (0, "hello\n", "")


def test_a_plugin_that_looks_for_what_is_not_there_lives_and_is_told_once(home: HomeDir) -> None:
    code = (
        'local sessions, why = cru.sessions.review_list_hunks("x")\n'
        'cru.toast(#cru.vault.search("x") + #crucible.search("x") + #cru.mcp.servers() .. tostring(sessions) .. type(why))\n'
        'cru.toast(tostring(cru.mcp.call("a", "b", {}).success) .. tostring(cru.mcp.has_tool("a", "b")) .. tostring(cru.kiln.active))'
    )
    lines = told(run(home, code))
    assert [line for line in lines if not line.startswith("probe: ")] == ["0nilstring", "falsefalsenil"]
    reasons = [line for line in lines if "no vault is configured (`cru vault init FOLDER`)" in line]
    assert reasons == ["probe: cru.vault.search does nothing: no vault is configured (`cru vault init FOLDER`)"]
    assert "error:     cru.vault.search does nothing" in cru("plugin", "list", home=home).out
    assert cru("--strict-hooks", "hi", home=home).code == 3


def test_isolation_that_cannot_be_had_lets_nothing_run(home: HomeDir) -> None:
    code = 'cru.require_isolation { exempt = { "write" }, exec_prefix = { "docker", "exec", "box" } }'
    calls = (
        'call: bash {"command": "touch made"}\ncall: write {"file_path": "written", "content": "x"}\n---\ntext: done\n'
    )
    done = run(home, code, replies=calls)
    assert not (home.project / "made").exists() and (home.project / "written").exists()
    assert "the plugin probe requires isolation, and cru cannot isolate tools" in results(home)[0]
    assert "cru cannot isolate tools: those that run commands or write files are denied" in done.err


def test_a_file_is_included_with_the_plugins_globals(home: HomeDir) -> None:
    plugins = home.cru / "plugins" / "many"
    plugins.mkdir(parents=True)
    (plugins / "part.conf").write_text("shared = (shared or 0) + 1\nreturn 'part'")
    (plugins / "bad.conf").write_text("\nx x")
    (plugins / "init.lua").write_text(
        'cru.toast(crucible.include("part.conf") .. shared)\n'
        'for _, name in ipairs { "none.conf", "bad.conf" } do\n'
        "  local ok, why = pcall(cru.include, name)\n  cru.toast(tostring(ok) .. tostring(why))\nend"
    )
    scripted(home, GO)
    part, none, bad = told(cru("hi", home=home))
    assert part == "part1" and none.startswith("false") and "none.conf: No such file or directory" in none
    assert "bad.conf:2: syntax error" in bad


def test_headers_of_a_plugin_reach_the_provider_and_no_request_is_made_without_them(home: HomeDir) -> None:
    with server(lambda request: Reply("fine")) as model:
        home.configure(url=model.url)
        plugin(
            home,
            "local n = 0\ncru.on_provider_auth(function(about)\n  n = n + 1\n"
            '  return { headers = { Authorization = "Bearer " .. n .. about.model, ["x-team"] = "core" } }\nend)',
        )
        assert cru("hi", home=home).out == "fine\n"
        (request,) = model.requests
        assert (request.headers["authorization"], request.headers["x-team"]) == ("Bearer 1mock", "core")
        plugin(home, 'cru.on_provider_auth(function() error("the vault is shut") end)')
        done = cru("hi", home=home)
        assert done.code == 1 and "the vault is shut" in done.err and len(model.requests) == 1


def test_the_users_init_lua_is_run_last_and_may_set_up_plugins(home: HomeDir) -> None:
    scripted(home, GO)
    (home.cru / "init.lua").write_text('cru.toast("alone")\ncru.defaults.temperature = 0.5')
    assert told(cru("hi", home=home)) == ["alone"]
    code = 'local M = {}\nfunction M.setup(config) cru.toast("set up with " .. tostring(config.key)) end\nreturn M'
    plugin(home, code, "zz.lua")
    (home.cru / "init.lua").write_text('require("zz").setup { key = "mine" }')
    config = '[plugins.zz]\nkey = "theirs"\n'
    scripted(home, GO, config)
    assert told(cru("hi", home=home)) == ["set up with theirs", "set up with mine"]
    (home.cru / "init.lua").write_text("\nx x")
    assert "plugin init is not loaded" in cru("hi", home=home).err


def test_a_handler_is_given_the_configured_model_at_the_start(home: HomeDir) -> None:
    with server(lambda request: Reply("fine")) as model:
        home.configure(url=model.url)
        plugin(home, 'cru.on("session:started", function(ctx, event) cru.toast("it is " .. event.model) end)')
        assert told(cru("hi", home=home)) == ["it is mock"]


# diagnostics ----------------------------------------------------------------------------------------------------------------------


def test_verbose_names_plugins_and_hooks_and_what_they_answered(home: HomeDir) -> None:
    config = '[[hooks]]\nname = "counted"\nevent = "turn:complete"\ncommand = "true"\n'
    plugin(home, "x x", "broken.lua")
    program(home, "warm", WARM)
    code = 'cru.on("turn:complete", function(ctx) if not ctx.is_continuation then return { inject = "on" } end end)'
    done = run(home, code, "-v", "hi", config=config)
    lines = done.err.splitlines()
    assert "cru: plugins: broken (lua, error), probe (lua), warm (executable)" in lines
    (hook,) = [line for line in lines if line.startswith("cru: hooks: counted cru-") and line.endswith(" (active)")]
    id = hook.split()[3]
    (asked, again) = [line for line in lines if line.startswith("[turn:complete done → probe")]
    assert "probe.lua:1: inject (" in asked and "probe.lua:1: pass (" in again
    assert any(
        line.startswith("[message:before_send") and "pre_api_request: merge parameters" in line for line in lines
    )
    assert sum(line.startswith(f"[turn:complete done → hook {id} ") for line in lines) == 2
    assert done.out == "hello\nhello\n"
    plain = cru("hi", home=home).err
    assert "plugins:" not in plain and "hooks:" not in plain and "→" not in plain
