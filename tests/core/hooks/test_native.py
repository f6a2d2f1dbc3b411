"""cru's own hooks: both files and both shapes, what a command reads, what its output means."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.hooks.dialect_world import about, calls, event, moment, parsed, results, said, stdin, turn
from tests.kit import HomeDir, Reply

from cru.core.events.answers import Answer, Change, Inject, TurnOutcome
from cru.core.events.catalog import CATALOG
from cru.core.events.payloads import MessageReceived, ToolBeforeCall, ToolCompleted, TurnComplete
from cru.core.hooks.dialects.cru.dialect import DIALECT as CRU
from cru.core.hooks.dialects.cru.dialect import canonical
from cru.core.hooks.model.result import HookRun

CALL = event(ToolBeforeCall("bash", {"command": "git push"}, "call_1"))
PROMPT = event(MessageReceived("hi"))
DENY = Answer(decision="deny", reason="no")
ENTRY = {"event": "tool:before_call", "command": "x"}


def one(**entry: Any) -> Any:
    """(the only entry, its problems)."""
    entries, problems = parsed(CRU, {"hooks": [{**ENTRY, **entry}]}, "hooks.json")
    return entries[0] if entries else None, [str(problem) for problem in problems]


def test_a_list_and_an_object_of_events() -> None:
    listed, problems = parsed(CRU, '// mine\n{"hooks": [\n{"event": "session:idle", "command": "a"}]}', "hooks.json")
    assert [(e.event, e.command, e.line, e.timeout, e.include_sub_agents) for e in listed] == [
        ("session:idle", "a", 3, 60, None)
    ]
    by_event, more = parsed(CRU, {"hooks": {"PreToolUse": [{"command": "a"}, {"command": "b"}]}}, "hooks.json")
    assert [(e.event, e.command) for e in by_event] == [("PreToolUse", "a"), ("PreToolUse", "b")]
    assert problems == more == []


# case: (a matcher of Claude Code, tools that it fits, tools that it does not fit)
NESTED = {
    "a name": ("Bash", ("bash",), ("write", "bash2")),
    "ours": ("bash", ("bash",), ("write",)),
    "names": ("Edit|Write", ("edit", "write"), ("bash",)),
    "names with commas": ("Edit, Write", ("edit", "write"), ("bash",)),
    "an old name": ("MultiEdit", ("edit",), ("write",)),
    "all": ("*", ("edit", "bash"), ()),
    "nothing": ("", ("edit", "bash"), ()),
    "a server's tool": ("mcp__files__write", ("mcp_files_write",), ("mcp_files_read",)),
    "a pattern": ("mcp__files__.*", ("mcp_files_write",), ("bash",)),
}


@pytest.mark.parametrize("case", NESTED)
def test_the_nested_form_of_claude_code(case: str) -> None:
    matcher, fits, others = NESTED[case]
    handlers = [
        {"type": "command", "command": "a", "timeout": 5},
        {"type": "command", "command": "b", "onFailure": "block"},
    ]
    text = {"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": handlers}, {"command": "c"}]}}
    entries, problems = parsed(CRU, text, "hooks.json")
    assert problems == [] and [entry.problem for entry in entries] == ["", "", ""]
    assert [(e.event, e.command, e.timeout, e.on_error) for e in entries] == [
        ("PreToolUse", "a", 5, ""), ("PreToolUse", "b", 60, "deny"), ("PreToolUse", "c", 60, ""),
    ]  # fmt: skip
    assert len({entry.id for entry in entries}) == 3
    for tool, expected in (*((tool, True) for tool in fits), *((tool, False) for tool in others)):
        assert all(CRU.matches(entry, CALL, tool, about()) is expected for entry in entries[:2]), tool


def test_where_nested_entries_stand_and_what_is_odd_in_them() -> None:
    text = """{"hooks": {
"Stop": [{"matcher": "x", "hooks": [
{"type": "command", "command": "a", "statusMessage": "wait"},
{"type": "command", "comand": "b"}]}]}}"""
    entries, problems = parsed(CRU, text, "hooks.json")
    assert [(entry.event, entry.line, bool(entry.problem)) for entry in entries] == [
        ("Stop", 3, False),
        ("Stop", 4, True),
    ]
    assert [problem.line for problem in problems] == [4] and "did you mean `command`?" in str(problems[0])


def test_a_group_in_a_list_names_its_event() -> None:
    group = {"event": "tool:before_call", "matcher": "Bash", "hooks": [{"type": "command", "command": "a"}]}
    entries, problems = parsed(CRU, {"hooks": [group]}, "hooks.json")
    assert problems == [] and [(e.event, e.matcher) for e in entries] == [("tool:before_call", "^(bash|Bash)$")]


@pytest.mark.parametrize("table", ["hooks.entries", "hooks"])
def test_entries_in_config_toml(table: str) -> None:
    text = f'model = "x"\n[[{table}]]\nevent = "turn:failed"\ncommand = "a"\n\n[[{table}]]\nevent = "Stop"\nargs = ["b", "c d"]\n'
    entries, problems = parsed(CRU, text, "config.toml")
    assert [(e.event, e.command, e.args, e.line) for e in entries] == [
        ("turn:failed", "a", None, 2),
        ("Stop", "", ("b", "c d"), 6),
    ]
    assert problems == []


def test_every_field_of_an_entry() -> None:
    entry, problems = one(
        name="n", matcher="bash|edit", timeout=1.5, env={"A": 1}, cwd="sub", shell="bash", once=True, sequential=True,
        include_sub_agents=True, on_error="deny", priority=0, enabled=False, **{"async": True, "if": "bash:git *"},
    )  # fmt: skip
    assert problems == [] and entry.problem == ""
    assert (entry.name, entry.matcher, entry.timeout, entry.env, entry.cwd) == (
        "n",
        "bash|edit",
        1.5,
        {"A": "1"},
        "sub",
    )
    assert (entry.once, entry.sequential, entry.include_sub_agents, entry.asynchronous, entry.enabled) == (
        True,
        True,
        True,
        True,
        False,
    )
    assert (entry.on_error, entry.priority, entry.condition, entry.shell) == ("deny", 0, "bash:git *", "bash")


def test_the_kinds_of_handlers_and_where_their_files_lie() -> None:
    def made(**handler: Any) -> tuple[str, str]:
        entry = parsed(CRU, {"hooks": [{"event": "session:idle", **handler}]}, "hooks.json")[0][0]
        assert entry.problem == ""
        return entry.kind, entry.command

    assert made(lua="return nil") == ("lua", "return nil")
    assert made(lua="a.lua") == made(file="a.lua") == ("lua", "/user/a.lua")
    assert made(python="sub/a.py:run") == ("python", "/user/sub/a.py:run")
    assert made(file="my guard.sh") == ("command", "'/user/my guard.sh'")
    assert made(file="/x/guard") == ("command", "/x/guard")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"command": ""}, "an entry needs one of `command`"),
        (
            {"lua": "x"},
            "an entry needs exactly one of `command`, `lua`, `python`, `file`, and this has `command`, `lua`",
        ),
        ({"command": None, "python": "a.py"}, '"file.py:function"'),
        ({"matcher": "["}, "invalid matcher ["),
        ({"event": "session:idle", "matcher": "x"}, "nothing at this event"),
        ({"event": "session:idle", "if": "bash"}, "works on events of tools only"),
        ({"if": "Bash(git *)"}, "is not of the form `tool:glob`"),
        ({"on_error": "die"}, "`on_error` must be"),
        ({"shell": "zsh"}, "`shell` must be"),
        ({"command": None, "lua": "x", "async": True}, "`async` is for commands"),
        ({"args": [1]}, "`args` must be a list of texts"),
    ],
)
def test_an_entry_that_cannot_run_says_why(entry: dict[str, Any], told: str) -> None:
    assert told in one(**entry)[0].problem


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ({"hooks": [{**ENTRY, "comand": "x"}]}, "`comand` is not known here (did you mean `command`?)"),
        ({"hooks": [{**ENTRY, "event": "tool:befor_call"}]}, "did you mean `tool:before_call`?"),
        ({"hooks": {"PreToolUsed": [{"command": "x"}]}}, "did you mean `PreToolUse`?"),
        ({"hooks": [{"command": "x"}]}, "an entry needs an `event`"),
        ({"hooks": {"Stop": [{"hooks": {"command": "x"}}]}}, "`hooks` of an entry must be a list of handlers"),
        ({"hooks": {"Stop": [{"hooks": ["x"]}]}}, "a handler must be an object"),
        (
            {"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}},
            "cru's own hooks know no type `prompt`",
        ),
        ({"hooks": ["x"]}, "an entry must be an object"),
        ({"hooks": 5}, "`hooks` must be a list"),
        ({"hook": []}, "did you mean `hooks`?"),
        ({"hooks": [{**ENTRY, "timeout": -1}]}, "`timeout` must be a number of seconds"),
        ("{", "not JSON"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(text: Any, told: str) -> None:
    _, problems = parsed(CRU, text, "hooks.json")
    assert told in str(problems[0])


def test_an_event_beside_hooks_is_told_once() -> None:
    _, problems = parsed(CRU, {"PreToolUse": [ENTRY], "Stop": [], "hooks": [], "nmae": 1}, "hooks.json")
    assert [str(problem).count("does not stand in `hooks`") for problem in problems] == [1, 0]
    assert "`nmae` is not known here" in str(problems[1])


def test_every_event_of_the_catalog_can_be_named() -> None:
    for row in CATALOG:
        [made] = CRU.events[row.name]
        assert made.event == (row.name if row.live else "") and bool(made.unavailable) is not row.live
    assert canonical("pre_tool_use") == canonical("PRETOOLUSE") == "PreToolUse"
    assert moment(CRU, "UserPromptSubmit", event(MessageReceived("x"), source="continuation")) is None
    failed = event(TurnComplete("error", "", "m"))
    assert [moment(CRU, name, failed) is not None for name in ("turn:failed", "StopFailure", "Stop")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("entry", "fits"),
    [
        ({}, True), ({"matcher": "bash"}, True), ({"matcher": "^ba|edit"}, True), ({"matcher": "Bash"}, False),
        ({"if": "bash:git *"}, True), ({"if": "bash:rm *"}, False), ({"if": "shell"}, True), ({"if": "read"}, False),
        ({"matcher": "edit", "if": "bash:git *"}, False),
    ],
)  # fmt: skip
def test_matchers_and_rules(entry: dict[str, Any], fits: bool) -> None:
    assert CRU.matches(one(**entry)[0], CALL, "bash", about()) is fits


def test_a_rule_about_files() -> None:
    edit = event(ToolBeforeCall("edit", {"file_path": "src/a.py"}, "c"))
    assert CRU.matches(one(**{"if": "write:src/**"})[0], edit, "edit", about())
    assert not CRU.matches(one(**{"if": "write:docs/**"})[0], edit, "edit", about())


def test_what_a_command_reads() -> None:
    read = stdin(CRU, "PreToolUse", CALL, about(mode="plan"))
    assert {k: read[k] for k in ("event", "hook_event_name", "session_id", "mode", "depth", "seq", "is_sub_agent", "agent_id")} == {
        "event": "tool:before_call", "hook_event_name": "PreToolUse", "session_id": "sess", "mode": "plan", "depth": 0, "seq": 7,
        "is_sub_agent": False, "agent_id": "main",
    }  # fmt: skip
    assert read["name"] == read["tool_name"] == "bash" and read["args"] == read["tool_input"] == {"command": "git push"}
    assert stdin(CRU, "message:received", PROMPT)["content"] == "hi"


@pytest.mark.parametrize(
    ("run", "answer"),
    [
        ("", Answer()),
        ("null", Answer()),
        (HookRun(2, stderr=" no\n"), DENY),
        (HookRun(2), Answer(decision="deny", reason="blocked by guard")),
        (HookRun(49), Answer(decision="deny", halt=True, reason="halted by guard")),
        ({"decision": "deny", "reason": "no"}, DENY),
        ({"decision": "Block", "reason": "no"}, DENY),
        ({"halt": True, "reason": "no"}, Answer(decision="deny", halt=True, reason="no")),
        ({"decision": "ask"}, Answer(decision="ask")),
        ({"updated_input": {"command": "ls"}}, Answer(changes=(Change("args", "merge", {"command": "ls"}),))),
        ({"updated_input": '{"command": "ls"}'}, Answer(changes=(Change("args", "merge", {"command": "ls"}),))),
        ({"changes": {"args": {}}}, Answer(changes=(Change("args", "set", {}),))),
        ({"changes": [{"field": "env", "op": "merge", "value": {"A": "1"}}]}, Answer(changes=(Change("env", "merge", {"A": "1"}),))),
        ({"context": ["a", "", None, "b"], "context_files": ["x"]}, Answer(context=("a", "b"), context_files=("x",))),
        ({"inject": "go"}, Answer(inject=Inject("go"))),
        ({"inject": {"content": "go", "position": "user_suffix"}}, Answer(inject=Inject("go", "user_suffix"))),
        ({"result": {"content": "cached"}}, Answer(result={"content": "cached"})),
        ({"result": None}, Answer(result="")),
        ({"version": 1, "decision": "allow", "note": "n"}, Answer(decision="allow", note="n")),
        ({"outcome": "gave_up", "reason": "no"}, Answer(reason="no", outcome=TurnOutcome("gave_up", "no"))),
        (
            {"halt": True, "reason": "no", "outcome": {"kind": "done", "reason": "all", "open": [], "evidence": ["42 tests"]}},
            Answer(decision="deny", halt=True, reason="no", outcome=TurnOutcome("done", "all", (), ("42 tests",))),
        ),
        (
            {"decision": "allow", "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}, DENY,
        ),
    ],
)  # fmt: skip
def test_what_an_output_means(run: Any, answer: Answer) -> None:
    meant = said(CRU, "tool:before_call", CALL, run)
    assert (meant.answer, meant.failed, meant.warning) == (answer, "", "")


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (HookRun(1, stderr="bad\nworse"), "exit status 1: bad"),
        ("text", "the output is not JSON"),
        ("[]", "no JSON object"),
        ({"decision": "maybe"}, "`decision` is 'maybe'"),
        (
            {"outcome": "gave up"},
            "`outcome`: the kind is 'gave up', not one of done, gave_up, out_of_budget, needs_person, failed",
        ),
        ({"outcome": {"kind": "interrupted"}}, "`outcome`: the kind is 'interrupted', not one of"),
        ({"outcome": {"kind": "gave_up", "opne": []}}, "`outcome`: unknown key `opne` (did you mean `open`?)"),
        ({"outcome": 5}, "`outcome` does not fit: Expected `object`, got `int`"),
        ({"outcome": {"open": []}}, "missing required field `kind`"),
        ({"halt": "yes"}, "Expected `bool`"),
        ({"updated_input": "x"}, "`updated_input` is no object"),
        ({"inject": {}}, "missing required field `content`"),
        ({"changes": [{"field": "args", "op": "burn", "value": 1}]}, "Invalid enum value"),
    ],
)
def test_what_fails(run: Any, told: str) -> None:
    assert told in said(CRU, "tool:before_call", CALL, run).failed


def test_a_halt_holds_beside_an_outcome_that_means_nothing() -> None:
    meant = said(CRU, "tool:before_call", CALL, {"halt": True, "reason": "no", "outcome": "finished"})
    assert meant.answer == Answer(decision="deny", halt=True, reason="no") and "the kind is 'finished'" in meant.failed


def test_what_has_no_effect_is_told() -> None:
    odd = said(CRU, "tool:before_call", CALL, {"decison": "deny", "updated_prompt": "x", "message": "hello"})
    assert odd.failed == "unknown key `decison` (did you mean `decision`?)" and odd.to_user == "hello"
    assert "`updated_prompt` has no place on tool:before_call" in odd.warning
    done = event(ToolCompleted("bash", {}, "out", "c"))
    assert said(CRU, "PostToolUse", done, {"updated_output": "x"}).answer.changes == (Change("result", "set", "x"),)
    assert said(CRU, "message:received", PROMPT, {"updated_prompt": "x"}).answer.changes == (
        Change("content", "set", "x"),
    )


# the real command ----------------------------------------------------------------------------------------------------------------


def put(home: HomeDir, *entries: dict[str, Any]) -> None:
    home.cru.mkdir(exist_ok=True)
    (home.cru / "hooks.json").write_text(msgspec.json.encode({"hooks": entries}).decode())


def test_a_guard_of_the_users_own_needs_nobodys_leave(home: HomeDir) -> None:
    put(home, {"event": "tool:before_call", "if": "bash:rm *", "command": "echo never >&2; exit 2"})
    done, last = turn(home, calls("rm -rf x"), calls("echo ok"), Reply("done"))
    denied, ran = results(last)
    assert "never" in denied and ran.strip() == "ok" and "trust" not in done.err, done


def test_an_entry_in_config_toml_runs_in_its_folder_with_its_environment(home: HomeDir) -> None:
    (home.project / "sub").mkdir()
    config = (
        '[[hooks.entries]]\nevent = "message:received"\ncwd = "sub"\nenv = {WORD = "bonjour"}\n'
        """command = 'printf "{\\"updated_prompt\\": \\"$WORD from ${PWD##*/} at $CRU_HOOK\\"}"'\n"""
    )
    done, last = turn(home, Reply("done"), config=config)
    assert last[-1]["content"] == "bonjour from sub at message:received", done


def test_a_failing_guard_denies_if_it_says_so(home: HomeDir) -> None:
    put(home, {"event": "PreToolUse", "name": "guard", "command": "exit 7", "on_error": "deny"})
    done, last = turn(home, calls("echo ok"), Reply("done"))
    assert "the hook guard failed: exit status 7" in results(last)[-1] and "exit status 7" in done.err
    put(home, {"event": "PreToolUse", "name": "guard", "command": "exit 7"})
    done, last = turn(home, calls("echo ok"), Reply("done"))
    assert results(last)[-1].strip() == "ok" and "exit status 7" in done.err


def test_a_hook_says_how_the_turn_ended(home: HomeDir) -> None:
    said = '{"outcome": {"kind": "gave_up", "reason": "2 tests fail", "open": ["a", "b"], "evidence": ["40 pass"]}}'
    put(home, {"event": "turn:complete", "command": f"echo '{said}'"})
    run, _ = turn(home, Reply("done"))
    assert (run.code, run.out, run.err) == (3, "done\n", "cru: gave up: 2 tests fail; open: a, b\n")
    run, _ = turn(home, Reply("done"), argv=("--json",))
    last = msgspec.json.decode(run.out.splitlines()[-1])
    assert (last["code"], last["payload"]["cause"]) == (3, "halted")
    assert last["payload"]["outcome"] == msgspec.json.decode(said)["outcome"]


def test_a_wrong_key_is_told_with_its_line_and_the_rest_runs(home: HomeDir) -> None:
    put(home, {"event": "turn:complete", "command": "touch ran", "comand": "x"}, {"event": "nothing", "command": "x"})
    done, _ = turn(home, Reply("done"))
    assert (
        "hooks.json:1: `comand` is not known here (did you mean `command`?)" in done.err
        and (home.project / "ran").exists()
    ), done
