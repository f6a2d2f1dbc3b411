"""What hooks for Claude Code read on standard input, and which of our events they hear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from tests.core.hooks.claude_world import about, event, given, moment

from cru.core.base.values.messages import ANCHOR, MESSAGE, TOOL_CALL, Entry, ToolCall
from cru.core.events import payloads as p
from cru.core.events.catalog import BY_NAME
from cru.core.hooks.dialects.claude.dialect import DIALECT as CLAUDE
from cru.core.hooks.dialects.claude.last_reply import describe_last_reply
from cru.core.hooks.dialects.claude.responses import note_file
from cru.core.hooks.model.facts import SessionFacts

ENDED = p.TurnComplete("done", "the end", "r")
CALL: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "ls", "timeout": 2000}, "tool_use_id": "c"}
ARGS = {"command": "ls", "timeout": 2}


def failure(text: str) -> Struct:
    return p.TurnComplete("error", "half", "r", error=text)


FILE = {"name": "deploy", "source": "projectSettings", "invoked_by": "model"}
# event, our payload, what is on standard input beside the common fields
FIELDS: list[tuple[str, Struct, dict[str, Any]]] = [
    ("SessionStart", p.SessionStarted("main", "/f"), {"source": "startup"}),
    ("SessionStart", p.SessionStarted("main", "/f", True, model="m"), {"source": "resume", "model": "m"}),
    ("SessionStart", p.SessionStarted("main", "/f", False, "resume"), {"source": "resume"}),
    ("SessionStart", p.ContextCleared("main"), {"source": "clear"}),
    ("SessionStart", p.SessionCompacted("short", 3, 1), {"source": "compact"}),
    ("SessionEnd", p.SessionEnded("exit"), {"reason": "prompt_input_exit"}), ("SessionEnd", p.SessionEnded("killed"), {"reason": "other"}),
    ("SessionEnd", p.SessionEnded("logout"), {"reason": "logout"}),
    ("SessionEnd", p.ContextClearing("main"), {"reason": "clear"}),
    ("UserPromptSubmit", p.MessageReceived("hi", (p.Attachment("a.md", "x"),), ref="r"),
     {"prompt": "hi", "prompt_id": "r", "attachments": ["a.md"]}),
    ("PreToolUse", p.ToolBeforeCall("bash", ARGS, "c"), CALL),
    ("PreToolUse", p.ToolBeforeCall("own", {"a": 1}, "c"), {"tool_name": "own", "tool_input": {"a": 1}, "tool_use_id": "c"}),
    ("PreSkillShellCommand", p.ToolBeforeCall("bash", {"command": "ls"}, "id:preamble-0", origin="command", prompt_file=FILE),
     {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "id:preamble-0", "command_name": "deploy",
      "command_source": "projectSettings", "invoked_by": "claude"}),
    ("PermissionRequest", p.PermissionRequested("bash", "shell", "ls", "c", "why", ARGS),
     {**CALL, "reason": "why"}),
    ("PostToolUse", p.ToolCompleted("bash", ARGS, "out", "c", 12.4),
     {**CALL, "duration_ms": 12,
      "tool_response": {"stdout": "out", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False, "text": "out"}}),
    ("PostToolUseFailure", p.ToolFailed("bash", ARGS, "no", "timeout", "c", 7.0),
     {**CALL, "error": "no", "is_interrupt": False, "is_timeout": True, "duration_ms": 7}),
    ("PostToolBatch", p.ToolBatchCompleted((ToolCall("c", "bash", '{"command": "ls", "timeout": 2}'),), 9), {"tool_calls": [CALL]}),
    ("PostToolBatch", p.ToolBatchCompleted((ToolCall("c", "bash", "not json"),), 9), {"tool_calls": [{**CALL, "tool_input": {}}]}),
    ("Notification", p.InteractionRequested("i", "permission", "bash: ls"),
     {"message": "cru needs your permission: bash: ls", "title": "cru", "notification_type": "permission_prompt"}),
    ("Notification", p.InteractionRequested("i", "select", "which?"),
     {"message": "which?", "title": "cru", "notification_type": "elicitation_dialog"}),
    ("Notification", p.SessionIdle("main"),
     {"message": "cru is waiting for your input", "title": "cru", "notification_type": "idle_prompt"}),
    ("Stop", ENDED,
     {"stop_hook_active": False, "last_assistant_message": "the end", "background_tasks": [], "session_crons": [],
      "continuation_count": 0, "continuation_limit": 8}),
    ("SubagentStart", p.TaskSpawned("t1", "subagent", "look", agent="explore"), {"agent_id": "t1", "agent_type": "Explore"}),
    ("StopFailure", failure("x answered 429: slow"),
     {"error": "rate_limit", "error_details": "x answered 429: slow", "last_assistant_message": "x answered 429: slow"}),
    ("PreCompact", p.ContextOverflow(1, 2, 50.0, "full", "how", "manual"), {"trigger": "manual", "custom_instructions": ""}),
    (
        "PostModelSwitch", p.ModelSelected("x", "new", "", "n", "old"),
        {"from_model": "old", "to_model": "new", "requested_model": "n", "source": "command"},
    ),
    ("PostCompact", p.SessionCompacted("short", 3, 1, "manual"), {"trigger": "manual", "compact_summary": "short"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "payload", "fields"), FIELDS)
def test_standard_input(tmp_path: Path, name: str, payload: Struct, fields: dict[str, Any]) -> None:
    assert given(name, payload, tmp_path) == {
        "session_id": "sess", "transcript_path": f"{tmp_path}/transcript.jsonl", "cwd": str(tmp_path),
        "permission_mode": "default", "hook_event_name": name, "is_sub_agent": False, "depth": 0, **fields,
    }  # fmt: skip


def test_every_row_is_of_a_live_event_and_is_tested() -> None:
    rows = {(name, row.event) for name, some in CLAUDE.events.items() for row in some if row.event}
    assert all(BY_NAME[ours].live for _, ours in rows)
    of_children = {("SubagentStop", "turn:complete")}
    assert rows == {(name, event(payload).name) for name, payload, _ in FIELDS} | of_children


@pytest.mark.parametrize(
    ("mode", "theirs"),
    [("ask", "default"), ("auto", "acceptEdits"), ("plan", "plan"), ("trust", "bypassPermissions"), ("own", "default")],
)
def test_modes(tmp_path: Path, mode: str, theirs: str) -> None:
    at = event(ENDED)
    row = moment("Stop", at, about(tmp_path))
    assert row is not None
    assert f'"permission_mode":"{theirs}"' in CLAUDE.stdin(row, at, about(tmp_path, mode=mode)).decode()


def test_a_sub_agent_names_itself(tmp_path: Path) -> None:
    known = given(
        "PreToolUse",
        p.ToolBeforeCall("bash", {}, "c"),
        tmp_path,
        is_sub_agent=True,
        depth=2,
        agent_id="a2",
        agent_type="general",
    )
    assert (known["agent_id"], known["agent_type"], known["is_sub_agent"], known["depth"]) == (
        "a2",
        "general-purpose",
        True,
        2,
    )


def test_the_end_of_a_sub_agent_is_its_own_event(tmp_path: Path) -> None:
    child = {"is_sub_agent": True, "depth": 1, "agent_id": "a1", "agent_type": "explore"}
    known = given("SubagentStop", ENDED, tmp_path, **child)
    assert (known["agent_id"], known["agent_type"], known["stop_hook_active"]) == ("a1", "Explore", False)
    assert (known["last_assistant_message"], known["background_tasks"]) == ("the end", [])
    assert moment("Stop", event(ENDED, **child), about(tmp_path)) is None
    assert moment("SubagentStop", event(ENDED), about(tmp_path)) is None
    command = p.TaskSpawned("t2", "bash", "make", command="make")
    assert moment("SubagentStart", event(command), about(tmp_path)) is None


# event, our payload, stamp, whether it is heard
HEARD: list[tuple[str, Struct, dict[str, Any], bool]] = [
    ("UserPromptSubmit", p.MessageReceived("x"), {"source": "user"}, True),
    ("UserPromptSubmit", p.MessageReceived("x"), {"source": "queue"}, True),
    ("UserPromptSubmit", p.MessageReceived("x"), {"source": "command"}, True),
    ("UserPromptSubmit", p.MessageReceived("x"), {"source": "continuation"}, False),
    ("UserPromptSubmit", p.MessageReceived("x"), {"source": "recurse"}, False),
    ("PostModelSwitch", p.ModelSelected("x", "new", "", "new", ""), {}, True),
    ("PostModelSwitch", p.ModelSelected("x", "new", "", "new", "new"), {}, False),
    ("PostModelSwitch", p.ModelSelected("x", "new", "the setting model"), {}, False),
    ("Stop", ENDED, {}, True),
    ("Stop", ENDED, {"is_sub_agent": True}, False),
    ("Stop", p.TurnComplete("interrupted", "", "r"), {}, False),
    ("Stop", p.TurnComplete("halted", "", "r"), {}, False),
    ("Stop", p.TurnComplete("error", "", "r"), {}, False),
    ("StopFailure", p.TurnComplete("error", "", "r"), {}, True),
    ("StopFailure", ENDED, {}, False),
    *(
        (
            "PostToolUseFailure",
            p.ToolFailed("bash", {}, "x", which, "c"),
            {},
            which in ("failed", "timeout", "interrupted"),
        )
        for which in ("policy", "hook", "human", "timeout", "invalid", "unknown", "failed", "halted", "interrupted")
    ),
]


@pytest.mark.parametrize(("name", "payload", "stamp", "heard"), HEARD)
def test_what_is_heard(name: str, payload: Struct, stamp: dict[str, Any], heard: bool) -> None:
    assert (moment(name, event(payload, **stamp), about(Path())) is not None) is heard


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("openai answered 429: slow down", "rate_limit"), ("anthropic answered 529: overloaded", "overloaded"),
        ("x answered 401", "authentication_failed"), ("x answered 402: pay", "billing_error"), ("x answered 400", "invalid_request"),
        ("x answered 503", "server_error"), ("the connection was lost", "unknown"), ("", "unknown"),
    ],
)  # fmt: skip
def test_kinds_of_failures(text: str, error: str) -> None:
    at = event(failure(text))
    row = moment("StopFailure", at, about(Path()))
    assert row is not None and row.subject is not None and row.subject(at) == error


# tool, arguments, result → part of tool_response
RESPONSES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("read", {"file_path": "a.py", "offset": 3}, "x\ny",
     {"type": "text", "file": {"filePath": "{root}/a.py", "content": "x\ny"}}),
    ("write", {"file_path": "/nowhere/b", "content": "c"}, "written",
     {"type": "create", "filePath": "/nowhere/b", "content": "c", "originalFile": None, "structuredPatch": [], "userModified": False}),
    ("edit", {"file_path": "b", "old_string": "1", "new_string": "2"}, "edited",
     {"filePath": "{root}/b", "oldString": "1", "newString": "2", "replaceAll": False}),
    ("glob", {"pattern": "*"}, "a\nb", {"filenames": ["a", "b"], "numFiles": 2}),
    ("grep", {"pattern": "x"}, "a:1:x", {"mode": "content", "content": "a:1:x"}),
    ("fetch", {"url": "u"}, "page", {"url": "u", "result": "page"}),
    ("bash", {"command": "x", "background": True}, "[the command runs in the background as task 0a1b2c3d, and ends with the session; …]",
     {"stdout": "", "stderr": "", "interrupted": False, "isImage": False, "backgroundTaskId": "0a1b2c3d"}),
    ("bash", {"command": "x", "background": True}, "[task 0a1b2c3d waits: 10 commands run in the background already; …]",
     {"stdout": "", "backgroundTaskId": "0a1b2c3d"}),
    ("bash", {"command": "x"}, "[task 0a1b2c3d waits", {"stdout": "[task 0a1b2c3d waits"}),
    ("task_cancel", {"id": "0a1b2c3d"}, "[task 0a1b2c3d is ended]", {"message": "[task 0a1b2c3d is ended]", "task_id": "0a1b2c3d"}),
    ("own", {}, "words", {"content": "words"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "args", "result", "shape"), RESPONSES)
def test_shapes_of_results(tmp_path: Path, tool: str, args: dict[str, Any], result: str, shape: dict[str, Any]) -> None:
    response = given("PostToolUse", p.ToolCompleted(tool, args, result, "c"), tmp_path)["tool_response"]
    wanted = eval(repr(shape).replace("{root}", str(tmp_path)))
    assert response["text"] == result and wanted.items() <= response.items()


@pytest.mark.parametrize("is_sub_agent", [False, True])
def test_todos_before_and_after(tmp_path: Path, is_sub_agent: bool) -> None:
    facts = about(tmp_path)
    facts.folder.mkdir()
    (facts.folder / "todos.md").write_text("- [x] of the main agent")
    if is_sub_agent:
        facts.agent_transcript = lambda: tmp_path / "agent.jsonl"
    started = (
        []
        if is_sub_agent
        else [{"content": "of the main agent", "activeForm": "of the main agent", "status": "completed"}]
    )
    todo = {"content": "sweep", "activeForm": "sweep", "status": "pending"}
    assert change_todos(facts, "c1", "- [ ] sweep") == (started, [todo])
    (facts.folder / "todos.md").write_text("- [ ] sweep")
    assert change_todos(facts, "c2", "") == ([todo], [])


def change_todos(facts: SessionFacts, call_id: str, content: str) -> tuple[object, object]:
    args = {"content": content}
    note_file(lambda stamp: facts)(event(p.ToolCalled("update_todos", args, call_id)))
    at = event(p.ToolCompleted("update_todos", args, "Todos updated.", call_id))
    row = moment("PostToolUse", at, facts)
    assert row is not None
    response = msgspec.json.decode(CLAUDE.stdin(row, at, facts))["tool_response"]
    return response["oldTodos"], response["newTodos"]


@pytest.mark.parametrize(("length", "is_saved"), [(30_000, False), (30_001, True)])
def test_a_long_output_has_a_file(tmp_path: Path, length: int, is_saved: bool) -> None:
    output = "é" * length
    response = given("PostToolUse", p.ToolCompleted("bash", {"command": "x"}, output, "c"), tmp_path)["tool_response"]
    assert response["stdout"] == output and ("persistedOutputPath" in response) is is_saved
    if is_saved:
        assert Path(response["persistedOutputPath"]).read_text() == output
        assert response["persistedOutputSize"] == 2 * length


def test_an_output_that_cannot_be_saved_has_no_file_and_is_reported(tmp_path: Path) -> None:
    facts, told = about(tmp_path), list[str]()
    facts.folder.write_text("no folder")
    facts.warn = told.append
    at = event(p.ToolCompleted("bash", {"command": "x"}, "x" * 30_001, "c"))
    row = moment("PostToolUse", at, facts)
    assert row is not None
    assert b"persistedOutput" not in CLAUDE.stdin(row, at, facts)
    assert len(told) == 1 and "could not be saved" in told[0]


NOW = 1_700_000_000
COUNTED = {"input_tokens": 100, "output_tokens": 10}


def logged(kind: str, age: int, **metadata: Any) -> Entry:
    return Entry(f"{kind}{age}", NOW - age, "x", "", "words", kind, "agent" if kind == MESSAGE else "", "", metadata)


# entries of the log → what SessionStart says of them
RESUMED: list[tuple[list[Entry], dict[str, Any]]] = [
    ([], {}),
    ([Entry("u", NOW - 9, "x", "", "words", MESSAGE, "user", "", {})], {}),
    ([logged(MESSAGE, 9, **COUNTED)],
     {"seconds_since_last_response": 9, "context_tokens": 110, "prompt_cache_likely_expired": False}),
    ([logged(MESSAGE, 300, **COUNTED)],
     {"seconds_since_last_response": 300, "context_tokens": 110, "prompt_cache_likely_expired": True}),
    ([logged(MESSAGE, 9)], {"seconds_since_last_response": 9, "prompt_cache_likely_expired": False}),
    ([logged(MESSAGE, 20, **COUNTED), logged(TOOL_CALL, 10, input_tokens=200), logged(MESSAGE, 9)],
     {"seconds_since_last_response": 9, "context_tokens": 200, "prompt_cache_likely_expired": False}),
    ([logged(MESSAGE, 9, **COUNTED), logged(ANCHOR, 5)],
     {"seconds_since_last_response": 9, "prompt_cache_likely_expired": True}),
    ([logged(MESSAGE, -5, **COUNTED)],  # the clock was set back
     {"seconds_since_last_response": 0, "context_tokens": 110, "prompt_cache_likely_expired": False}),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "fields"), RESUMED)
def test_the_age_of_a_resumed_conversation(entries: list[Entry], fields: dict[str, Any]) -> None:
    assert describe_last_reply(entries, NOW) == fields
