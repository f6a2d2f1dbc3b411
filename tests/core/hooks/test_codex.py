"""Codex' hooks: its files, its matchers, what its scripts read."""

from __future__ import annotations

import re

import msgspec
import pytest
from tests.core.hooks.dialect_world import about, calls, event, moment, parsed, results, said, stdin, turn
from tests.kit import HomeDir, Reply
from tests.kit.waiting import wait_until

from cru.core.events.payloads import (
    SessionEnded,
    SessionStarted,
    ToolBeforeCall,
    ToolCompleted,
    ToolFailed,
    TurnComplete,
)
from cru.core.hooks.dialects.codex.dialect import DIALECT as CODEX
from cru.core.hooks.dialects.codex.dialect import CodexStops
from cru.core.hooks.dialects.codex.patches import read_patch, to_patch

CALL = event(ToolBeforeCall("bash", {"command": "ls", "timeout": 2.0}, "call_1"))


def one(name: str, **handler: object) -> str:
    return msgspec.json.encode(
        {"hooks": {name: [{"hooks": [{"type": "command", "command": "x", **handler}]}]}}
    ).decode()


def test_groups_become_entries_in_the_order_of_the_file() -> None:
    text = """{
      "hooks": {
        "PreToolUse": [
          {"matcher": "Bash", "hooks": [{"type": "command", "command": "one"},
                                        {"type": "command", "command": "one"}]},
          {"hooks": [{"type": "prompt", "prompt": "?"}]}
        ]
      }
    }"""
    entries, problems = parsed(CODEX, text, "hooks.json")
    assert [(e.command, e.matcher, e.kind, e.line) for e in entries] == [
        ("one", "Bash", "command", 4), ("one", "Bash", "command", 5), ("", "", "prompt", 6),
    ]  # fmt: skip
    assert len({e.id for e in entries}) == 3 and not problems and CODEX.config.runs_equal_once is False


def test_the_same_in_toml() -> None:
    text = """
model = "o3"
[hooks.state."/x:pre_tool_use:0:0"]
trusted_hash = "1"
[[hooks.PreToolUse]]
matcher = "^Bash$"
[[hooks.PreToolUse.hooks]]
type = "command"
command = "one"
[[hooks.PreToolUse]]
[[hooks.PreToolUse.hooks]]
command = "two"
timeout = 3
"""
    entries, problems = parsed(CODEX, text, "config.toml")
    assert [(e.command, e.matcher, e.timeout, e.line) for e in entries] == [
        ("one", "^Bash$", 600, 7),
        ("two", "", 3, 11),
    ]
    assert problems == []
    off, _ = parsed(CODEX, "[features]\nhooks = false\n" + text, "config.toml")
    assert [e.enabled for e in off] == [False, False]


@pytest.mark.parametrize(
    ("name", "given", "seconds"),
    [
        ("Stop", None, 600), ("Stop", 0, 1), ("Stop", 5, 5), ("SessionEnd", None, 1), ("SessionEnd", 60, 3), ("SessionEnd", 2, 2),
    ],
)  # fmt: skip
def test_time_limits(name: str, given: int | None, seconds: float) -> None:
    entries, _ = parsed(CODEX, one(name, **({} if given is None else {"timeout": given})), "hooks.json")
    assert entries[0].timeout == seconds


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"hooks": []}', "`hooks` must be an object"),
        (one("PreToolUsed"), "there is no event `PreToolUsed` (did you mean `PreToolUse`?)"),
        ('{"hooks": {"Stop": [{"command": "x"}]}}', 'Stop[0] needs a list `hooks` (write {"matcher"'),
        (one("Stop", comand="y"), "`comand` is not known here (did you mean `command`?)"),
        (one("Stop", timeout="long"), "`timeout` must be a whole number"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(text: str, told: str) -> None:
    _, problems = parsed(CODEX, text, "hooks.json")
    assert told in str(problems[0]) and str(problems[0]).startswith("/user/hooks.json")


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        ({"command": " "}, "`command` is missing"),
        ({"type": "shell"}, "`type` must be one of"),
        ({"async": "yes"}, "`async` must be true or false"),
    ],
)
def test_an_entry_that_cannot_run_says_why(handler: dict[str, object], told: str) -> None:
    entries, _ = parsed(CODEX, one("PreToolUse", **handler), "hooks.json")
    assert told in entries[0].problem


def test_an_invalid_matcher_matters_only_where_matchers_do() -> None:
    text = '{"hooks": {"%s": [{"matcher": "[", "hooks": [{"type": "command", "command": "x"}]}]}}'
    entries, _ = parsed(CODEX, text % "PreToolUse", "hooks.json")
    assert "invalid matcher [" in entries[0].problem
    entries, _ = parsed(CODEX, text % "UserPromptSubmit", "hooks.json")
    assert (entries[0].problem, entries[0].matcher) == ("", "")


@pytest.mark.parametrize(
    ("matcher", "tool", "fits"),
    [
        ("", "bash", True), ("*", "bash", True), ("Bash", "bash", True), ("shell", "bash", True), ("bash", "bash", True),
        ("Ba", "bash", False), ("^Ba", "bash", True), ("Edit|Write", "edit", True), ("Edit|Write", "bash", False),
        ("Edit", "write", True), ("Write", "edit", True),
        ("apply_patch", "edit", True), ("apply_patch", "write", True), ("mcp__memory", "mcp__memory__x", False),
        ("mcp__memory__.*", "mcp__memory__x", True),
    ],
)  # fmt: skip
def test_matchers(matcher: str, tool: str, fits: bool) -> None:
    group = {"matcher": matcher, "hooks": [{"type": "command", "command": "x"}]}
    [entry], _ = parsed(CODEX, {"hooks": {"PreToolUse": [group]}}, "hooks.json")
    assert CODEX.matches(entry, CALL, tool, about()) is fits


def test_what_a_script_reads() -> None:
    facts = about(mode="trust", turn="msg-1", model="m")
    read = stdin(CODEX, "PreToolUse", CALL, facts)
    assert read == {
        "session_id": "sess", "turn_id": "msg-1", "transcript_path": "/project/transcript.jsonl", "cwd": "/project",
        "hook_event_name": "PreToolUse", "model": "m", "permission_mode": "bypassPermissions", "is_sub_agent": False,
        "tool_name": "Bash", "tool_input": {"command": "ls", "timeout": 2000}, "tool_use_id": "call_1",
    }  # fmt: skip
    done = event(ToolCompleted("write", {"file_path": "a.txt", "content": "x"}, "written", "call_2"))
    read = stdin(CODEX, "PostToolUse", done)
    assert (read["tool_response"], read["tool_input"]["file_path"]) == ("written", "/project/a.txt")
    assert read["tool_input"]["command"] == "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch\n"
    assert stdin(CODEX, "SessionStart", event(SessionStarted("main", "/c", resumed=True)))["source"] == "resume"
    facts.prompt_state(CodexStops).count = 1
    read = stdin(CODEX, "Stop", event(TurnComplete("done", "Hi.", "msg-2")), facts)
    assert (read["stop_hook_active"], read["last_assistant_message"]) == (True, "Hi.")


def test_moments_hear_what_codex_has_a_name_for() -> None:
    codex = CODEX
    for cause, name in (("done", "Stop"), ("error", "StopFailure"), ("interrupted", "Interrupt")):
        at = event(TurnComplete(cause, "", "m"))
        assert [n for n in ("Stop", "StopFailure", "Interrupt") if moment(codex, n, at)] == [name]
    assert moment(codex, "SessionEnd", event(SessionEnded("exit"))) is not None
    refused, ran = (event(ToolFailed("bash", {}, "no", which, "c")) for which in ("hook", "failed"))
    assert moment(codex, "PostToolUse", refused) is None and moment(codex, "PostToolUse", ran) is not None


# the real command ----------------------------------------------------------------------------------------------------------------

ON = '[hooks]\ndialects = ["codex"]\n'


def put(home: HomeDir, text: str, name: str = "hooks.json") -> None:
    path = home.path / ".codex" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_the_model_is_known_at_the_start(home: HomeDir) -> None:
    put(home, one("SessionStart", command="cat > heard"))
    turn(home, Reply("done"), config=ON)
    assert msgspec.json.decode((home.project / "heard").read_bytes())["model"] == "mock"


def test_a_call_is_denied_and_another_rewritten(home: HomeDir) -> None:
    script = (
        'read -r x; case "$x" in *secret*) echo no secrets >&2; exit 2;; *) '
        'echo \'{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow",'
        '"updatedInput":{"command":"echo rewritten"}}}\';; esac'
    )
    put(home, one("PreToolUse", command=script))
    done, last = turn(home, calls("cat secret"), calls("echo plain"), Reply("done"), config=ON)
    denied, rewritten = results(last)
    assert "no secrets" in denied and rewritten.strip() == "rewritten", (done, last)


def test_two_stop_hooks_make_one_prompt_of_their_reasons(home: HomeDir) -> None:
    script = 'read -r x; case "$x" in *\'"stop_hook_active":false\'*) echo "%s" >&2; exit 2;; esac'
    hooks = [{"type": "command", "command": script % text} for text in ("run the tests", "fix the lint")]
    put(home, msgspec.json.encode({"hooks": {"Stop": [{"hooks": hooks}]}}).decode())
    done, last = turn(home, Reply("first"), Reply("second"), config=ON)
    prompts = re.findall(r'<hook_prompt hook_run_id="stop:codex-\w+">(.*?)</hook_prompt>', last[-1]["content"])
    assert last[-1]["role"] == "user" and prompts == ["run the tests", "fix the lint"], (done, last)
    assert done.out.split() == ["first", "second"]


def test_a_block_after_the_call_takes_the_place_of_its_result(home: HomeDir) -> None:
    put(home, one("PostToolUse", command="echo looks sketchy >&2; exit 2"))
    _, last = turn(home, calls("echo plain"), Reply("done"), config=ON)
    assert results(last) == ["looks sketchy"]


def test_plain_text_is_context_of_a_prompt_and_an_error_of_stop(home: HomeDir) -> None:
    entry = [{"hooks": [{"type": "command", "command": "echo speak French"}]}]
    put(home, msgspec.json.encode({"hooks": {"UserPromptSubmit": entry, "Stop": entry}}).decode())
    done, last = turn(home, Reply("Bonjour."), config=ON)
    assert "speak French" in str(last[-1]["content"]) and done.code == 0
    assert "failed: the output of Stop must be a JSON object" in done.err


def test_notify_gets_its_json_as_the_last_argument_and_nobody_waits(home: HomeDir) -> None:
    script = home.path / "say.sh"
    script.write_text('#!/bin/sh\nprintf "%s" "$2" >"$1.part"; mv "$1.part" "$1"\n')
    script.chmod(0o755)
    heard = home.path / "heard it.json"
    put(home, f'notify = ["{script}", "{heard}"]\n', "config.toml")
    done, _ = turn(home, Reply("Done it."), config=ON)
    assert done.code == 0
    wait_until(heard.exists)
    said = msgspec.json.decode(heard.read_bytes())
    assert (said["type"], said["input-messages"], said["last-assistant-message"]) == (
        "agent-turn-complete",
        ["go"],
        "Done it.",
    )
    put(home, 'notify = ["/no/such/program"]\n', "config.toml")
    done, _ = turn(home, Reply("Done it."), config=ON)
    assert "/no/such/program: not found" in done.err


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write", {"file_path": "a b.txt", "content": ""}),
        ("write", {"file_path": "~/a.txt", "content": "one\n\n+two\n*** End\n"}),
        ("edit", {"file_path": "a.txt", "old_string": "one\n\n-two", "new_string": "+three"}),
        ("edit", {"file_path": "a.txt", "old_string": "one", "new_string": ""}),
    ],
)
def test_a_patch_is_the_call_that_it_was_made_of(tool: str, args: dict[str, str]) -> None:
    patch = read_patch(to_patch(tool, args))
    assert patch is not None and (patch.tool, patch.args) == (tool, args)


@pytest.mark.parametrize(
    "body",
    [
        "*** Delete File: a", "*** Update File: a", "*** Add File: a\nx", "*** Add File: a\n+x\n*** Add File: b\n+y",
        "*** Update File: a\n@@\n-x\n@@\n-y", "",
    ],
)  # fmt: skip
def test_a_patch_that_is_more_or_less_than_one_change_is_none(body: str) -> None:
    assert read_patch(f"*** Begin Patch\n{body}\n*** End Patch") is None


def rewrite(changed: dict[str, object]) -> dict[str, object]:
    inner = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": changed}
    return {"hookSpecificOutput": inner}


def test_a_hook_rewrites_a_patch() -> None:
    """One that cannot be done as a call is refused: what the guard took away must not be written."""
    args = {"file_path": "a.txt", "content": "my key\n"}
    call = event(ToolBeforeCall("write", args, "c"))
    shown = stdin(CODEX, "PreToolUse", call)["tool_input"]
    [change] = said(
        CODEX, "PreToolUse", call, rewrite(shown | {"command": shown["command"].replace("my", "no")})
    ).answer.changes
    assert change.value == {"file_path": "a.txt", "content": "no key\n"}
    [change] = said(CODEX, "PreToolUse", call, rewrite(shown)).answer.changes
    assert change.value == args | {"file_path": "/project/a.txt"}
    answer = said(CODEX, "PreToolUse", call, rewrite({"command": "*** Begin Patch\n*** End Patch"})).answer
    assert answer.decision == "deny" and not answer.changes
