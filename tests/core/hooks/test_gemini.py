"""Gemini CLI's hooks: its settings, its matchers, what its scripts read, what their outputs mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.hooks.dialect_world import about, calls, event, parsed, results, said, source, stdin, turn
from tests.kit import HomeDir, Reply, cru, server

from cru.core.base.values.messages import Message, ToolCall
from cru.core.events.answers import Answer, Change, Inject
from cru.core.events.payloads import (
    AgentResponded,
    ContextOverflow,
    MessageBeforeSend,
    MessageReceived,
    PermissionRequested,
    SessionEnded,
    SessionStarted,
    ToolBeforeCall,
    ToolCompleted,
    ToolFailed,
    ToolsSelect,
    TurnComplete,
)
from cru.core.hooks.dialects.gemini.config import quote_folders
from cru.core.hooks.dialects.gemini.dialect import DIALECT as GEMINI
from cru.core.hooks.dialects.gemini.output import ALLOWED
from cru.core.hooks.model.mapping import ParsedFile
from cru.core.hooks.model.result import HookRun

CALL = event(ToolBeforeCall("bash", {"command": "ls"}, "call_1"))
PROMPT = event(MessageReceived("hi"))
DENY = Answer(decision="deny", reason="no")


def group(*hooks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**more, "hooks": [{"type": "command", "command": "x", **hook} for hook in hooks]}


def inner(**more: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": more}


def test_a_file_with_comments() -> None:
    text = """{ // mine
      "hooks": { /* all */
        "BeforeTool": [{"matcher": "run_.*", "hooks": [
          {"name": "a", "type": "command", "command": "x // y", "timeout": 2500, "env": {"A": "1"}},
          {"name": "b", "type": "command", "command": "x // y"}]}]
      }
    }"""
    entries, problems = parsed(GEMINI, text, "settings.json")
    assert [(e.name, e.command, e.timeout, e.env, e.line, e.matcher) for e in entries] == [
        ("a", "x // y", 2.5, {"A": "1"}, 4, "run_.*"), ("b", "x // y", 60.0, {}, 5, "run_.*"),
    ]  # fmt: skip
    assert problems == [] and entries[0].identity != entries[1].identity


def test_entries_with_one_name_and_command_are_one() -> None:
    entries, _ = parsed(
        GEMINI, {"hooks": {"BeforeTool": [group({"env": {"A": "1"}}, {"env": {"A": "2"}})]}}, "settings.json"
    )
    assert entries[0].identity == entries[1].identity


def test_switches_hold_for_the_layers_above_but_never_below() -> None:
    below: list[ParsedFile] = []
    hooks = {"hooks": {"BeforeTool": [group({"name": "guard"}, {"command": "lint"})]}}

    def enabled(layer: Any, **config: Any) -> list[bool]:
        text = msgspec.json.encode({**hooks, "hooksConfig": config}).decode()
        below.append(GEMINI.parse(source("gemini", text, "settings.json", layer), about(), below))
        return [entry.enabled for entry in below[-1].entries]

    assert enabled("project", disabled=["guard"]) == [False, True]
    assert enabled("user", disabled=["lint"]) == [True, False]
    assert enabled("project") == [True, False]
    below.clear()
    assert enabled("project") == [True, True] and enabled("user", enabled=False) == [False, False]
    older = {"hooks": {**hooks["hooks"], "disabled": ["guard"]}}
    entries, problems = parsed(GEMINI, older, "settings.json", "project")
    assert [entry.enabled for entry in entries] == [False, True] and problems == []


def test_one_sequential_group_makes_its_event_a_chain() -> None:
    text = {"hooks": {"BeforeTool": [group({}), group({}, sequential=True)], "AfterTool": [group({})]}}
    entries, _ = parsed(GEMINI, text, "settings.json")
    assert [entry.sequential for entry in entries] == [True, True, False]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ({"hooks": {"BeforeTools": []}}, "did you mean `BeforeTool`?"),
        ({"hooks": {"BeforeTool": [{"command": "x"}]}}, "needs a list `hooks`"),
        ({"hooks": {"BeforeTool": [group({"timeout": 30})]}}, "`timeout` is 30 ms"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(text: Any, told: str) -> None:
    _, problems = parsed(GEMINI, text, "settings.json")
    assert told in str(problems[0])


@pytest.mark.parametrize(
    ("command", "shell"),
    [
        ("$GEMINI_PROJECT_DIR/a.sh", '"$GEMINI_PROJECT_DIR"/a.sh'),
        ("${CLAUDE_PROJECT_DIR}/a.sh x", '"${CLAUDE_PROJECT_DIR}"/a.sh x'),
        ('"$GEMINI_PROJECT_DIR/a.sh"', '"$GEMINI_PROJECT_DIR/a.sh"'),
        ("'$GEMINI_CWD' $GEMINI_CWDX \\$GEMINI_CWD", "'$GEMINI_CWD' $GEMINI_CWDX \\$GEMINI_CWD"),
        ("echo $HOME \"it's\" $GEMINI_CWD", "echo $HOME \"it's\" \"$GEMINI_CWD\""),
    ],
)  # fmt: skip
def test_folders_in_a_command_stay_one_word(command: str, shell: str) -> None:
    assert quote_folders(command) == shell


@pytest.mark.parametrize(
    ("matcher", "at", "subject", "fits"),
    [
        ("", CALL, "bash", True), ("*", CALL, "bash", True), ("run_shell_command", CALL, "bash", True), ("bash", CALL, "bash", True),
        ("shell", CALL, "bash", True), ("write_.*|replace", CALL, "edit", True), ("write_.*|replace", CALL, "bash", False),
        ("[", CALL, "[", True), ("[", CALL, "bash", False),
        ("startup", event(SessionStarted("m", "/c")), "startup", True), ("start", event(SessionStarted("m", "/c")), "startup", False),
        ("ToolPermission", event(PermissionRequested("bash", "shell", "ls")), "ToolPermission", True),
    ],
)  # fmt: skip
def test_matchers(matcher: str, at: Any, subject: str, fits: bool) -> None:
    [entry], _ = parsed(GEMINI, {"hooks": {"BeforeTool": [group({}, matcher=matcher)]}}, "settings.json")
    assert GEMINI.matches(entry, at, subject, about()) is fits


def test_what_a_script_reads() -> None:
    read = stdin(GEMINI, "BeforeTool", event(ToolBeforeCall("ls", {"path": "src"}, "call_1")))
    assert read == {
        "session_id": "sess", "transcript_path": "/project/transcript.jsonl", "cwd": "/project", "hook_event_name": "BeforeTool",
        "timestamp": "1970-01-01T00:00:00.000Z", "is_sub_agent": False, "agent_id": "main", "tool_name": "list_directory",
        "tool_input": {"dir_path": "/project/src"},
    }  # fmt: skip
    failed = stdin(GEMINI, "AfterTool", event(ToolFailed("bash", {}, "exit 1", "failed", "c")))
    assert failed["tool_response"]["error"] == {"message": "exit 1"}
    after = stdin(GEMINI, "AfterAgent", event(TurnComplete("done", "Hi.", "m")), about(prompt="hi"))
    assert (after["prompt"], after["prompt_response"], after["stop_hook_active"]) == ("hi", "Hi.", False)
    assert stdin(GEMINI, "SessionEnd", event(SessionEnded("killed")))["reason"] == "other"
    asked = stdin(GEMINI, "Notification", event(PermissionRequested("bash", "shell", "ls")))
    assert (asked["notification_type"], asked["details"]["type"]) == ("ToolPermission", "exec")
    reply = stdin(GEMINI, "AfterModel", event(AgentResponded("Hi.", "Hi.", True)))
    assert reply["llm_response"]["candidates"][0]["content"] == {"role": "model", "parts": ["Hi."]}


@pytest.mark.parametrize(
    ("run", "answer", "more"),
    [
        ("", Answer(), {}),
        ("all good", Answer(), {"to_user": "all good"}),
        (HookRun(0, "", "all good"), Answer(), {"to_user": "all good"}),
        (HookRun(1, "", "careful"), Answer(), {"warning": "careful"}),
        (HookRun(2, "", "no"), DENY, {}),
        (HookRun(3, "no"), DENY, {}),
        (HookRun(3), Answer(), {"failed": "exit status 3"}),
        (HookRun(1, '{"decision": "deny", "reason": "no"}'), DENY, {}),
        (HookRun(0, "", '{"decision": "block", "reason": "no"}'), DENY, {}),
        ('"{\\"decision\\": \\"deny\\", \\"reason\\": \\"no\\"}"', DENY, {}),
        ({"decision": "deny"}, Answer(decision="deny", reason="no reason given"), {}),
        ({"decision": "deny", "reason": "x", "stopReason": "no"}, DENY, {}),
        ({"decision": "allow", "systemMessage": "hm"}, Answer(note=ALLOWED), {"to_user": "hm"}),
        ({"decision": "approve"}, Answer(note=ALLOWED), {}),
        ({"decision": 5, "reason": ["x"]}, Answer(), {}),
        ({"decision": "ask", "reason": "sure?"}, Answer(decision="ask", reason="sure?"), {}),
        ({"continue": False, "stopReason": "no"}, Answer(decision="deny", halt=True, reason="no"), {}),
        (
            inner(tool_input={"command": "pwd", "dir_path": "/"}),
            Answer(changes=(Change("args", "merge", {"command": "pwd"}),)),
            {},
        ),
        (inner(tool_input="x"), Answer(), {"warning": "tool_input is no object and is left out"}),
    ],
)
def test_before_a_tool(run: Any, answer: Answer, more: dict[str, str]) -> None:
    meant = said(GEMINI, "BeforeTool", CALL, run)
    assert meant.answer == answer
    assert {k: v for k in ("to_user", "warning", "failed") if (v := getattr(meant, k))} == more


def test_after_a_tool() -> None:
    at = event(ToolCompleted("bash", {}, "out", "c"))
    hidden = said(GEMINI, "AfterTool", at, {"decision": "deny", "reason": "no", **inner(additionalContext="<b>")})
    assert hidden.answer == Answer(
        changes=(Change("result", "set", ""),), context=("no", "<hook_context>&lt;b&gt;</hook_context>")
    )
    assert said(GEMINI, "AfterTool", at, inner(additionalContext="x")).answer == Answer(
        context=("<hook_context>x</hook_context>",)
    )
    tail = said(GEMINI, "AfterTool", at, inner(tailToolCallRequest={"name": "x"}))
    assert "tailToolCallRequest is not available yet" in tail.warning
    assert said(GEMINI, "AfterTool", at, {"continue": False}).answer.halt


def test_before_and_after_the_agent() -> None:
    assert said(GEMINI, "BeforeAgent", PROMPT, {"decision": "deny", "reason": "no"}).answer == DENY
    assert said(GEMINI, "BeforeAgent", PROMPT, inner(additionalContext="x")).answer == Answer(
        context=("<hook_context>x</hook_context>",)
    )
    facts, at = about(), event(TurnComplete("done", "Hi.", "m"))
    assert (
        "clearContext is not available yet" in said(GEMINI, "AfterAgent", at, inner(clearContext=True), facts).warning
    )
    for _ in range(8):
        again = said(GEMINI, "AfterAgent", at, {"decision": "deny", "reason": "more"}, facts)
        assert again.answer == Answer(inject=Inject("more"))
    last = said(GEMINI, "AfterAgent", at, {"decision": "deny", "reason": "more"}, facts)
    assert last.answer == Answer() and "8 retries" in last.warning
    assert stdin(GEMINI, "AfterAgent", at, facts)["stop_hook_active"] is True


def test_observers_decide_nothing() -> None:
    for name, at in (
        ("PreCompress", event(ContextOverflow(9, 10, 90.0, "rolling", ""))),
        ("Notification", event(PermissionRequested("bash", "shell", "ls"))),
        ("SessionEnd", event(SessionEnded("exit"))),
    ):
        assert said(GEMINI, name, at, {"decision": "deny", "continue": False}).answer == Answer()


TALK = (
    Message("user", "list"), Message("assistant", "", (ToolCall("c", "ls"),)), Message("tool", "a.txt", call_id="c"),
    Message("assistant", "One file."), Message("user", "thanks"),
)  # fmt: skip
SEND = event(MessageBeforeSend("m", {"temperature": 0.5, "max_tokens": 9}, TALK))


def patched(**patch: Any) -> Any:
    return said(GEMINI, "BeforeModel", SEND, inner(llm_request=patch))


def test_a_request_is_read_and_patched() -> None:
    request = stdin(GEMINI, "BeforeModel", SEND)["llm_request"]
    assert request["config"] == {"temperature": 0.5, "maxOutputTokens": 9} and request["model"] == "m"
    assert [(one["role"], one["content"]) for one in request["messages"]] == [
        ("user", "list"), ("model", "One file."), ("user", "thanks"),
    ]  # fmt: skip
    assert patched(**request).answer == Answer()
    assert patched(model="n").answer.changes == (Change("model", "set", "n"),)
    assert patched(config={"topP": 0.1, "odd": 1}).answer.changes == (Change("parameters", "merge", {"top_p": 0.1}),)
    assert "llm_request.config.odd is not available yet" in patched(config={"odd": 1}).warning
    assert "llm_request.toolConfig is not available yet" in patched(toolConfig={}).warning
    assert "needs a role and a text" in patched(messages=[5]).warning


def texts(*given: tuple[str, str]) -> Any:
    [change] = patched(messages=[{"role": role, "content": text} for role, text in given]).answer.changes
    assert (change.field, change.op) == ("messages", "set")
    return change.value


def test_messages_change_where_they_stand_are_added_or_replace_all() -> None:
    same = [("user", "list"), ("model", "One file."), ("user", "thanks")]
    edited = texts(*same[:2], ("user", "thanks a lot"))
    assert edited == [*TALK[:4], Message("user", "thanks a lot")]
    assert texts(*same, ("user", "bye")) == [*TALK, Message("user", "bye")]
    assert texts(("system", "be kind"), *same) == [Message("user", "be kind"), *TALK]
    assert texts(("user", "hello")) == [Message("user", "hello")]


def test_a_request_may_be_refused_or_answered_in_the_models_place() -> None:
    assert said(GEMINI, "BeforeModel", SEND, {"decision": "deny", "reason": "no"}).answer == DENY
    made = said(GEMINI, "BeforeModel", SEND, inner(llm_response={"text": "hi"}))
    assert made.answer == Answer(decision="deny", reason="hi")
    made = said(GEMINI, "BeforeModel", SEND, inner(llm_response={"candidates": 5}))
    assert made.answer.decision == "deny" and "without a text" in made.answer.reason
    at = event(AgentResponded("", "", False, (ToolCall("c", "bash"),)))
    assert said(GEMINI, "AfterModel", at, inner(llm_response={"text": "no"})).answer == Answer(
        decision="deny", halt=True, reason="no"
    )
    at = event(AgentResponded("Hi.", "Hi.", True))
    [change] = said(GEMINI, "AfterModel", at, inner(llm_response={"text": "Ho."})).answer.changes
    assert (change.field, change.value) == ("display", "Ho.")
    assert said(GEMINI, "AfterModel", at, {"decision": "deny", "reason": "no"}).answer == Answer(
        decision="deny", halt=True, reason="no"
    )


def test_allowlists_of_tools_are_united() -> None:
    facts = about()

    def kept(seq: int, tools: tuple[str, ...], **config: Any) -> Any:
        at = event(ToolsSelect(tools), dispatch_seq=seq)
        return said(GEMINI, "BeforeToolSelection", at, inner(toolConfig=config), facts).answer.changes

    tools = ("bash", "read", "ls", "glob")
    assert kept(1, tools, allowedFunctionNames=["run_shell_command", "unheard_of"]) == (
        Change("tools", "set", ("bash",)),
    )
    assert kept(1, ("bash",), allowedFunctionNames=["read_file"]) == (Change("tools", "set", ("bash", "read")),)
    assert kept(1, ("bash", "read"), mode="NONE") == (Change("tools", "set", ()),)
    assert kept(1, (), allowedFunctionNames=["glob"]) == (Change("tools", "set", ()),)
    assert kept(2, tools, mode="AUTO") == ()
    assert kept(3, tools, allowedFunctionNames=["glob"]) == (Change("tools", "set", ("glob",)),)


# the real command ----------------------------------------------------------------------------------------------------------------

ON = '[hooks]\ndialects = ["gemini"]\n'


def put(home: HomeDir, hooks: dict[str, Any]) -> None:
    path = home.path / ".gemini" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text("// mine\n" + msgspec.json.encode({"hooks": hooks}).decode())


def test_a_tool_is_denied_and_a_result_hidden(home: HomeDir) -> None:
    deny = 'read -r x; case "$x" in *rm*) echo no deleting >&2; exit 2;; esac'
    hide = """read -r x; case "$x" in *secret*) echo '{"decision":"deny","reason":"hidden"}';; esac"""
    put(home, {"BeforeTool": [group({"command": deny}, matcher="run_shell")], "AfterTool": [group({"command": hide})]})
    done, last = turn(home, calls("rm x"), calls("echo secret"), Reply("done"), config=ON)
    denied, hidden = results(last)
    assert "no deleting" in denied and hidden.strip() == "hidden", (done, last)


def test_hooks_of_a_sequential_group_see_what_the_ones_before_changed(home: HomeDir) -> None:
    add = """sed -E 's/.*"tool_input":\\{"command":"([^"]*)".*/{"hookSpecificOutput":{"tool_input":{"command":"\\1 %s"}}}/'"""
    put(home, {"BeforeTool": [group({"command": add % "one"}, {"command": add % "two"}, sequential=True)]})
    done, last = turn(home, calls("echo zero"), Reply("done"), config=ON)
    assert [text.strip() for text in results(last)] == ["zero one two"], done


def test_a_project_in_a_folder_with_blanks_and_a_retry(home: HomeDir, tmp_path: Path) -> None:
    project = tmp_path / "my project"
    project.mkdir()
    script = project / "again.sh"
    script.write_text(
        'read -r x\ncase "$x" in *\'"stop_hook_active":false\'*) echo \'{"decision":"deny","reason":"again"}\';; esac\n'
    )
    put(home, {"AfterAgent": [group({"command": "sh $GEMINI_PROJECT_DIR/again.sh"})]})
    done, last = turn(
        home, Reply("first"), Reply("second"), config=ON, argv=("--project-root", str(project), "--hooks=all")
    )
    assert done.out.split() == ["first", "second"] and last[-1]["content"] == "again", done


def test_a_request_is_patched_on_its_way(home: HomeDir) -> None:
    patch = """echo '{"hookSpecificOutput":{"llm_request":{"config":{"temperature":0.25}}}}'"""
    select = """echo '{"hookSpecificOutput":{"toolConfig":{"mode":"AUTO","allowedFunctionNames":["read_file"]}}}'"""
    put(home, {"BeforeModel": [group({"command": patch})], "BeforeToolSelection": [group({"command": select})]})
    with server([Reply("done")]) as model:
        home.configure(ON, model.url)
        done = cru("go", "-t", home=home)
        body = model.requests[0].body
    assert body["temperature"] == 0.25 and [one["function"]["name"] for one in body["tools"]] == ["read"], done
