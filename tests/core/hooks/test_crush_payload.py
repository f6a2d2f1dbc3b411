"""E1 and E2 of Crush's own tests, UP2 and SA4: standard input, byte for byte, and the environment; which tools a matcher fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.hooks.crush_world import Made, call, config, event, moment, printed, read

from cru.core.events.payloads import Attachment, MessageReceived, ToolBeforeCall
from cru.core.hooks.dialects.crush.dialect import DIALECT as CRUSH
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.result import HookRun

HERE = SessionFacts(
    session_id="sess", context="main", folder=Path("/c"), cwd=Path("/here/sub"), root=Path("/here"), home=Path("/h"),
    user_home=Path("/u"), env={}, mode=lambda: "ask", transcript=lambda: Path("/t"),
)  # fmt: skip
QUIET = {
    "TERM": "xterm-256color", "EDITOR": "false", "VISUAL": "false", "GIT_EDITOR": "false", "JJ_EDITOR": "false", "PAGER": "cat",
    "GIT_PAGER": "cat", "JJ_PAGER": "cat",
}  # fmt: skip
MARKERS = {"CRUSH": "1", "AGENT": "crush", "AI_AGENT": "crush"}


def stdin(name: str, payload: Any, ours: str, **where: Any) -> bytes:
    return CRUSH.stdin(moment(name), event(payload, ours, **where), HERE)


def environment(name: str, payload: Any, ours: str, **where: Any) -> dict[str, str | None]:
    [entry], _ = read(Path("/x"), config({"command": "true"}, event=name))
    return CRUSH.environment(entry, moment(name), event(payload, ours, **where), HERE)


def tool(name: str, args: dict[str, Any], **more: Any) -> Any:
    return ToolBeforeCall(name, args, "call_1", **more)


def test_e1_the_environment_of_a_tool_hook() -> None:
    got = environment("PreToolUse", tool("bash", {"command": "ls", "file_path": "/tmp/f.txt"}), "tool:before_call")
    assert got == {
        **MARKERS, **QUIET, "CRUSH_EVENT": "PreToolUse", "CRUSH_TOOL_NAME": "bash", "CRUSH_SESSION_ID": "sess",
        "CRUSH_CWD": "/here", "CRUSH_PROJECT_DIR": "/here", "CRUSH_TOOL_INPUT_COMMAND": "ls",
        "CRUSH_TOOL_INPUT_FILE_PATH": "/tmp/f.txt", "CRUSH_IS_SUB_AGENT": "false",
    }  # fmt: skip


@pytest.mark.parametrize(("value", "text"), [
    ("two\nlines", "two\nlines"), (None, ""), (5, "5"), (1.5, "1.5"), (True, "true"), (["a", {"b": 1}], '["a",{"b":1}]'), ("", ""),
])  # fmt: skip
def test_e1_values_that_are_no_text(value: Any, text: str) -> None:
    got = environment("PreToolUse", tool("made_up", {"command": value}), "tool:before_call")
    assert got["CRUSH_TOOL_INPUT_COMMAND"] == text
    assert "CRUSH_TOOL_INPUT_FILE_PATH" not in got


def test_e1_arguments_that_are_no_object_set_no_variables() -> None:
    got = environment("PreToolUse", tool("bash", {"_raw": "command"}, valid=False), "tool:before_call")
    assert not [name for name in got if name.startswith("CRUSH_TOOL_INPUT")]


def test_e2_the_payload_of_a_tool_hook() -> None:
    assert (
        stdin("PreToolUse", tool("bash", {"command": "ls <é>"}), "tool:before_call")
        == (
            '{"event":"PreToolUse","session_id":"sess","cwd":"/here","tool_name":"bash","tool_input":{"command":"ls <é>"},'
            '"tool_use_id":"call_1","hook_event_name":"PreToolUse","is_sub_agent":false,"agent_id":"main","depth":0}\n'
        ).encode()
    )


def test_e2_bytes_that_are_no_text_do_not_keep_a_hook_from_running() -> None:
    assert b'"tool_input":{"command":"caf\xef\xbf\xbd"}' in stdin(
        "PreToolUse", tool("bash", {"command": "caf\udce9"}), "tool:before_call"
    )


def test_sa4_the_payload_of_a_sub_agents_call() -> None:
    where = {"depth": 2}
    got = stdin("PreToolUse", tool("ls", {}), "tool:before_call", **where)
    assert got.endswith(b'"is_sub_agent":true,"agent_id":"child","depth":2}\n')
    assert environment("PreToolUse", tool("ls", {}), "tool:before_call", **where)["CRUSH_IS_SUB_AGENT"] == "true"


def test_up2_the_payload_of_a_prompt_hook() -> None:
    prompt = MessageReceived("go\non", (Attachment("notes.md", "words"),), "user", "ref")
    assert stdin("UserPromptSubmit", prompt, "message:received") == (
        b'{"event":"UserPromptSubmit","session_id":"sess","cwd":"/here","prompt":"go\\non","attachments":["notes.md"],'
        b'"hook_event_name":"UserPromptSubmit","is_sub_agent":false,"agent_id":"main","depth":0}\n'
    )
    assert environment("UserPromptSubmit", prompt, "message:received") == {
        **MARKERS, **QUIET, "CRUSH_EVENT": "UserPromptSubmit", "CRUSH_SESSION_ID": "sess", "CRUSH_CWD": "/here",
        "CRUSH_PROJECT_DIR": "/here", "CRUSH_IS_SUB_AGENT": "false",
    }  # fmt: skip


# Our tool and arguments, and what a script of Crush sees.
@pytest.mark.parametrize(("name", "args", "theirs", "seen"), [
    ("read", {"file_path": "a", "offset": 3}, "view", {"file_path": "a", "offset": 2}),
    ("edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, "edit", {"file_path": "a", "old_string": "x", "new_string": "y"}),
    ("update_todos", {"content": "x"}, "todos", {"content": "x"}),
    ("mcp_github_get_me", {"a": 1}, "mcp_github_get_me", {"a": 1}),
])  # fmt: skip
def test_tools_have_crushs_names(tmp_path: Path, name: str, args: dict[str, Any], theirs: str, seen: Any) -> None:
    [(_, given, env)] = printed(tmp_path, "", tool=name, args=args).hooks.given
    assert (given["tool_name"], given["tool_input"], env["CRUSH_TOOL_NAME"]) == (theirs, seen, theirs)


def test_a_rewrite_comes_back_in_our_words(tmp_path: Path) -> None:
    got = printed(tmp_path, {"updated_input": {"offset": 9}}, tool="read", args={"file_path": "a", "offset": 3})
    assert got.args == {"file_path": "a", "offset": 10}
    got = printed(tmp_path, {"updated_input": {"command": "ls", "description": "x"}}, args={"command": "rm"})
    assert got.args == {"command": "ls"}  # our bash has no description


@pytest.mark.parametrize(("raw", "seen"), [('"text"', "text"), ("[1]", [1]), ("null", None), ("{broken", {})])
def test_arguments_that_are_no_object(tmp_path: Path, raw: str, seen: Any) -> None:
    [(_, given, _)] = printed(tmp_path, "", args={"_raw": raw}, valid=False).hooks.given
    assert given["tool_input"] == seen


def denies(path: Path, matcher: str, tool: str) -> bool:
    hooks = Made(path, config({"command": "no", "matcher": matcher}), {"no": HookRun(2)})
    return call(hooks, tool).decision == "deny"


@pytest.mark.parametrize(("matcher", "fits", "fits_not"), [
    ("^bash$", "bash", "edit"), ("", "edit", ""), ("^mcp_", "mcp_github_get_me", "bash"), ("^view$", "read", "edit"),
    ("^read$", "read", "bash"),
    ("edit|write", "write", "bash"), ("^multiedit$", "edit", "write"), ("^todos$", "update_todos", "bash"), ("as", "bash", "ls"),
    ("^Bash$", "Bash", "bash"),
])  # fmt: skip
def test_r9_r10_r11_which_tools_a_matcher_fits(tmp_path: Path, matcher: str, fits: str, fits_not: str) -> None:
    assert denies(tmp_path, matcher, fits)
    assert not (fits_not and denies(tmp_path, matcher, fits_not))


def test_r11_r12_a_matcher_that_nobody_checked_is_used_and_a_broken_one_fits_nothing(tmp_path: Path) -> None:
    """Even where nobody validated the configuration, it does not become one that fits everything; a person is told."""
    hooks = Made(tmp_path, config({"command": "no", "matcher": "^bash$"}), {"no": HookRun(2)})
    assert call(hooks, "bash").decision == "deny" and call(hooks, "read").decision == "none"
    [known] = hooks.loaded.known
    known.entry = replace(known.entry, matcher="[invalid")
    got = call(hooks, "bash")
    assert got.decision == "none" and any("matcher" in text for text in got.notices)


def test_r12_a_broken_matcher_leaves_no_hook(tmp_path: Path) -> None:
    hooks = Made(tmp_path, config({"command": "no", "matcher": "[invalid"}), {"no": HookRun(2)})
    assert hooks.loaded.known == [] and call(hooks).decision == "none"


def test_r7_the_same_command_runs_once_under_the_first_name(tmp_path: Path) -> None:
    runs = {"same": HookRun(0, '{"decision":"allow"}'), "other": HookRun(0)}
    hooks = Made(tmp_path, config(
        {"command": "same", "matcher": "^edit$", "name": "fits not"}, {"command": "same", "name": "first", "timeout": 3},
        {"command": "other"}, {"command": "same", "name": "second", "timeout": 9, "include_sub_agents": True},
    ), runs)  # fmt: skip
    got = call(hooks)
    assert got.decision == "allow"
    assert [label for label, _, _ in hooks.given] == ["first", "other"]
    assert call(hooks).decision == "allow" and len(hooks.given) == 4  # the next call is another one


def test_sa1_sa2_sa3_only_hooks_that_opted_in_hear_sub_agents(tmp_path: Path) -> None:
    runs = {"main": HookRun(0), "tree": HookRun(0)}
    hooks = Made(tmp_path, config({"command": "main"}, {"command": "tree", "include_sub_agents": True}), runs)
    for depth, heard in ((0, ["main", "tree"]), (1, ["tree"]), (3, ["tree"])):
        hooks.given.clear()
        call(hooks, depth=depth)
        assert [label for label, _, _ in hooks.given] == heard


def test_sa2_a_hook_that_is_not_heard_does_not_stand_in_the_way_of_one_alike(tmp_path: Path) -> None:
    runs = {"same": HookRun(0)}
    hooks = Made(
        tmp_path,
        config({"command": "same", "name": "a"}, {"command": "same", "name": "b", "include_sub_agents": True}),
        runs,
    )
    call(hooks, depth=1)
    assert [label for label, _, _ in hooks.given] == ["b"]
