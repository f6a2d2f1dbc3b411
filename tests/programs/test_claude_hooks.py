"""Scripts written for Claude Code run unmodified: a settings.json names them, the real command runs a real turn."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from tests.kit import Call, Done, HomeDir, Received, Reply, Script, Status, cru, home, pty, server

SCRIPTS = Path(__file__).parent / "claude_hooks"
BASE = 'mode = "{mode}"\n[hooks]\ndialects = ["claude"]\n'
Group = dict[str, Any]


def hook(script: str, matcher: str = "", **more: Any) -> Group:
    """A group with one command, as people write it: the interpreter by the file's first line."""
    return {"matcher": matcher, "hooks": [{"type": "command", "command": f'"$HOME"/.claude/hooks/{script}', **more}]}


def prepared(tmp_path: Path, **events: Group) -> HomeDir:
    here = home(tmp_path)
    shutil.copytree(SCRIPTS, here.path / ".claude" / "hooks")
    settings = {"permissions": {"allow": []}, "hooks": {name: [group] for name, group in events.items()}}
    (here.path / ".claude" / "settings.json").write_bytes(json.encode(settings))
    return here


def turn(
    here: HomeDir,
    script: Script,
    prompt: str = "go on",
    *,
    mode: str = "trust",
    code: int = 0,
    env: dict[str, str] | None = None,
) -> tuple[Done, list[Received]]:
    with server(script) as model:
        here.configure(BASE.format(mode=mode), model.url)
        done = cru(prompt, home=here, env=env)
    assert done.code == code and "Traceback" not in done.err, done
    return done, model.requests


def results(requests: list[Received]) -> list[str]:
    return [m["content"] for m in requests[-1].body["messages"] if m["role"] == "tool"]


def said(requests: list[Received]) -> list[str]:
    """What the user said, as the model read it."""
    return [m["content"] for m in requests[-1].body["messages"] if m["role"] == "user"]


def bash(command: str) -> Reply:
    return Reply(calls=[Call("bash", {"command": command})])


def write(name: str, text: str) -> Reply:
    return Reply(calls=[Call("write", {"file_path": name, "content": text})])


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("grep x a.txt", "• Use 'rg' instead of 'grep'"),
        ("find . -name a", "find -name"),
        ("touch a | grep x || true", ""),
    ],
)
def test_exit_2_refuses_a_call_and_the_model_reads_why(tmp_path: Path, command: str, refused: str) -> None:
    here = prepared(tmp_path, PreToolUse=hook("bash_validator.py", "Bash"))
    _, requests = turn(here, [bash(command), Reply("fine")])
    [result] = results(requests)
    assert refused in result and ("Blocked by" in result) is bool(refused)
    assert (here.project / "a").exists() is not bool(refused)


@pytest.mark.parametrize("name", [".env", "src/../.git/config"])
def test_a_shell_script_with_jq_protects_files(tmp_path: Path, name: str) -> None:
    here = prepared(tmp_path, PreToolUse=hook("protect_files.sh", "Edit|Write"))
    _, requests = turn(here, [write(name, "x"), write("ok.txt", "x"), Reply("fine")])
    blocked, written = results(requests)
    assert "matches protected pattern" in blocked and str(here.project) in blocked and "Blocked" not in written
    assert (here.project / "ok.txt").exists() and not (here.project / ".env").exists()


def test_plain_text_goes_beside_the_prompt(tmp_path: Path) -> None:
    here = prepared(tmp_path, UserPromptSubmit=hook("guard_prompt.py"))
    _, requests = turn(here, [Reply("fine")], "what day is it?")
    assert "Today is a Tuesday." in "\n".join(said(requests))


def test_a_blocked_prompt_never_reaches_the_model(tmp_path: Path) -> None:
    here = prepared(tmp_path, UserPromptSubmit=hook("guard_prompt.py"))
    done, requests = turn(here, [Reply("fine")], "my password: 12345", code=3)
    assert requests == [] and "Security policy violation" in done.err


def test_an_approval_a_rewritten_command_and_a_question_without_anybody_to_ask(tmp_path: Path) -> None:
    here = prepared(tmp_path, PreToolUse=hook("auto_approve.py", "Bash|Write"))
    script = [write("notes.md", "x"), write("code.py", "x"), bash("echo real"), bash("git push"), Reply("fine")]
    _, requests = turn(here, script, mode="ask")
    notes, code, echo, push = results(requests)
    assert (here.project / "notes.md").read_text() == "x" and "Not allowed" not in notes
    assert code.startswith("Not allowed by policy") and not (here.project / "code.py").exists()
    assert echo == "DRY\nreal"
    asked = r"Not allowed by policy: hook claude-[0-9a-f]+ asks: a push is for a person to decide; nobody can be asked"
    assert re.match(asked, push), push


def test_the_environment_that_a_session_starts_with(tmp_path: Path) -> None:
    here = prepared(tmp_path, SessionStart=hook("session_env.sh", "startup"))
    _, requests = turn(here, [bash('echo "$NODE_ENV|$PATH"'), bash("env"), Reply("fine")])
    first, second = results(requests)
    assert first.startswith("production like|/") and first.endswith(":./node_modules/.bin")
    assert "NODE_ENV=production like" in second and "CLAUDE_ENV_FILE" not in second
    assert f"The project is in {here.project}" in "\n".join(said(requests))


def test_the_environment_of_a_hook(tmp_path: Path) -> None:
    here = prepared(tmp_path, PreToolUse={"hooks": [{"type": "command", "command": "env > env.txt"}]})
    turn(here, [bash("true"), Reply("fine")], env={"OTEL_EXPORTER": "x", "OWN": "y"})
    lines = (here.project / "env.txt").read_text().splitlines()
    assert f"CLAUDE_PROJECT_DIR={here.project}" in lines and "OWN=y" in lines
    assert not any(line.startswith(("OTEL_", "CLAUDE_ENV_FILE")) for line in lines)


def test_it_goes_on_until_the_file_is_there(tmp_path: Path) -> None:
    here = prepared(tmp_path, Stop=hook("until_done.py"))
    done, requests = turn(here, [Reply("done"), Reply("done now"), write("done.txt", "yes"), Reply("it is there")])
    assert done.out.endswith("it is there\n") and len(requests) == 4
    assert said(requests).count("Stop hook feedback:\ndone.txt is not there yet. Write it, then stop.") == 2


@pytest.mark.slow
@pytest.mark.parametrize(("cap", "asked"), [("", 9), ("2", 3), ("none", 9)])
def test_it_does_not_go_on_for_ever(tmp_path: Path, cap: str, asked: int) -> None:
    """Calls of tools between do not set the count back."""
    here = prepared(tmp_path, Stop=hook("until_done.py"))
    script = [step for n in range(9) for step in (bash(f"echo {n}"), Reply(f"done {n}"))]
    done, requests = turn(here, script, env={"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": cap} if cap else {})
    assert len(requests) == 2 * asked and "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP" in done.err
    assert here.log()[-1]["metadata"]["cause"] == "done"


def transcript(here: HomeDir) -> list[dict[str, Any]]:
    session = json.decode((here.context() / "context_meta.json").read_bytes())["session_id"]
    return here.lines("default", f"{session}.jsonl")


def test_a_script_reads_the_transcript(tmp_path: Path) -> None:
    here = prepared(tmp_path, Stop=hook("last_words.py"))
    turn(here, [bash("echo hi"), Reply("The end.")], "begin")
    assert json.decode((here.project / "last_words.json").read_bytes()) == {
        "asked": "begin", "last": "The end.", "tools": ["Bash"],
    }  # fmt: skip
    turn(here, [Reply("Again.")], "once more")
    assert json.decode((here.project / "last_words.json").read_bytes()) == {
        "asked": "once more", "last": "Again.", "tools": ["Bash"],
    }  # fmt: skip
    ids = [line["uuid"] for line in transcript(here)]
    assert len(ids) == len(set(ids)) == 6


def test_what_a_linter_says_follows_the_result(tmp_path: Path) -> None:
    here = prepared(tmp_path, PostToolUse=hook("lint_after.py", "Edit|MultiEdit|Write"))
    _, requests = turn(here, [write("a.py", "# TODO"), write("b.py", "x"), Reply("fine")])
    first, second = results(requests)
    assert "\nPostToolUse:Write hook blocking error from command: " in first and "TODO" not in second
    assert first.endswith(f"]: {here.project}/a.py still holds a TODO")


def test_a_result_is_replaced_before_the_model_reads_it(tmp_path: Path) -> None:
    here = prepared(tmp_path, PostToolUse=hook("hide_keys.py", "Bash"))
    _, requests = turn(here, [bash("echo key: sk-abc123; echo more"), Reply("fine")])
    assert results(requests) == ["key: [key]\nmore"] and "sk-abc123" not in str(requests[-1].body["messages"][-1])


def test_a_person_is_told_that_one_is_asked(tmp_path: Path) -> None:
    here = prepared(tmp_path, Notification=hook("notify.sh", "permission_prompt"))
    with server([bash("echo yes"), Reply("fine")]) as model:
        here.configure(BASE.format(mode="ask"), model.url)
        with pty("go on", home=here) as terminal:
            terminal.expect("echo yes")
            terminal.expect("no > ")
            terminal.line("y")
            terminal.expect("fine")
    [told] = [json.decode(line) for line in (here.project / "notifications.jsonl").read_bytes().splitlines()]
    assert told["notification_type"] == "permission_prompt" and "echo yes" in told["message"]


def test_continue_false_ends_the_turn_and_the_person_reads_why(tmp_path: Path) -> None:
    stop = """echo '{"continue": false, "stopReason": "enough for today"}'"""
    here = prepared(tmp_path, PostToolUse={"hooks": [{"type": "command", "command": stop}]})
    done, requests = turn(here, [bash("touch ran"), Reply("never")], code=3)
    assert len(requests) == 1 and (here.project / "ran").exists() and done.err.count("enough for today") == 1


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"])
def test_a_message_for_the_person(tmp_path: Path, event: str) -> None:
    here = prepared(
        tmp_path, **{event: {"hooks": [{"type": "command", "command": """echo '{"systemMessage": "look here"}'"""}]}}
    )
    done, requests = turn(here, [Reply("fine")])
    assert done.err.count(": look here\n") == 1 and "look here" not in str(requests[-1].body["messages"])


def test_a_project_brings_its_own_once_it_is_trusted(tmp_path: Path) -> None:
    here = prepared(tmp_path)
    (here.project / ".claude").mkdir()
    local = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}}
    (here.project / ".claude" / "settings.local.json").write_bytes(json.encode(local))
    done, _ = turn(here, [bash("true"), Reply("fine")])
    assert not (here.project / "ran").exists() and "1 project hook awaits trust" in done.err


def test_a_hook_that_says_nothing_useful_stops_nothing(tmp_path: Path) -> None:
    broken = [
        {"type": "command", "command": command}
        for command in ("echo '{ no json'", "exit 7", "echo '{}'; exit 9", "kill -9 $$")
    ]
    here = prepared(tmp_path, PreToolUse={"hooks": broken})
    done, requests = turn(here, [bash("echo hi"), Reply("fine")])
    assert results(requests) == ["hi"] and done.err.count("failed: ") == 3 and "begins with {" in done.err


def everything(here: HomeDir, matchers: dict[str, str]) -> None:
    """A hook on all these events that writes down what it reads, and says a word after a compaction."""
    hooks = {
        name: [{"matcher": matcher, "hooks": [{"type": "command", "command": "~/.claude/hooks/record.py"}]}]
        for name, matcher in matchers.items()
    }
    (here.path / ".claude" / "settings.json").write_bytes(json.encode({"hooks": hooks}))


def recorded(here: HomeDir) -> list[str]:
    lines = [json.decode(line) for line in (here.project / "events.jsonl").read_bytes().splitlines()]
    (here.project / "events.jsonl").unlink()
    names = {"StopFailure": "error"}
    others = ("source", "reason", "tool_name", "notification_type", "trigger")
    subjects = [
        next((key for key in (names.get(line["hook_event_name"]), *others) if key in line), "") for line in lines
    ]
    return [f"{line['hook_event_name']} {line.get(key, '')}".strip() for line, key in zip(lines, subjects, strict=True)]


ALL = dict.fromkeys(
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification", "Stop",
     "StopFailure", "PreCompact", "PostCompact", "SessionEnd"], "",
)  # fmt: skip


def test_the_events_of_a_turn_in_order(tmp_path: Path) -> None:
    here = prepared(tmp_path)
    everything(here, ALL)
    turn(here, [bash("true"), bash("false"), Reply("fine")])
    assert recorded(here) == [
        "SessionStart startup", "UserPromptSubmit", "PreToolUse Bash", "PostToolUse Bash", "PostToolBatch", "PreToolUse Bash",
        "PostToolUseFailure Bash", "PostToolBatch", "Stop", "SessionEnd other",
    ]  # fmt: skip
    turn(here, [Status(401)], code=1)
    assert recorded(here) == [
        "SessionStart resume", "UserPromptSubmit", "StopFailure authentication_failed", "SessionEnd other",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_compaction_and_an_archive(tmp_path: Path) -> None:
    here = prepared(tmp_path)
    everything(here, ALL)
    for _ in range(2):
        turn(here, [Reply("fine")])
    recorded(here)
    with server([Reply("it was short"), Reply("and on")]) as model:
        here.configure(BASE.format(mode="trust"), model.url)
        with pty(home=here) as terminal:
            terminal.line("/compact")
            terminal.line("go on then")
            terminal.expect("and on")
            terminal.line("/quit")
            terminal.wait()
        assert "remember the milk" in str(model.requests[1].body["messages"])
    told = recorded(here)
    start = told.index("PreCompact manual")
    after = told[start + 1 : start + 3]  # one event of ours, so both run at once
    assert sorted(after) == ["PostCompact manual", "SessionStart compact"]
    assert cru("-a", home=here).code == 0
    told = recorded(here)
    assert told.index("SessionEnd clear") < told.index("SessionStart clear")
    [summary] = [line for line in transcript(here) if line.get("isCompactSummary")]
    assert summary["message"]["content"] == "it was short"


def test_a_compaction_may_be_refused(tmp_path: Path) -> None:
    here = prepared(tmp_path, PreCompact={"matcher": "manual", "hooks": [{"type": "command", "command": "exit 2"}]})
    for _ in range(2):
        turn(here, [Reply("fine")])
    with server([Reply("never")]) as model:
        here.configure(BASE.format(mode="trust"), model.url)
        done = cru("-z", home=here)
    assert done.code != 0 and "skipped" in done.err and model.requests == []


def test_a_permission_request_is_answered_for_the_person(tmp_path: Path) -> None:
    answer = (
        """echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}'"""
    )
    here = prepared(tmp_path, PermissionRequest={"matcher": "Bash", "hooks": [{"type": "command", "command": answer}]})
    _, requests = turn(here, [bash("echo hi"), write("a", "x"), Reply("fine")], mode="ask")
    first, second = results(requests)
    assert first == "hi" and second.startswith("Not allowed by policy")


def test_an_if_starts_no_process_for_other_calls(tmp_path: Path) -> None:
    here = prepared(tmp_path, PreToolUse=hook("record.py", "Bash", **{"if": "Bash(git *)"}))
    turn(here, [bash("ls"), bash("cd . && git --version"), Reply("fine")])
    assert recorded(here) == ["PreToolUse Bash"]


def test_the_same_hook_in_two_files_runs_once(tmp_path: Path) -> None:
    here = prepared(tmp_path, Stop=hook("record.py"))
    (here.project / ".claude").mkdir()
    shutil.copy(here.path / ".claude" / "settings.json", here.project / ".claude")
    with server([Reply("fine")]) as model:
        here.configure(BASE.format(mode="trust"), model.url)
        assert cru("--hooks=all", "go", home=here).code == 0
    assert recorded(here) == ["Stop"]


def test_an_asynchronous_hook_is_not_waited_for_and_speaks_with_the_next_request(tmp_path: Path) -> None:
    say = """echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "by the way"}}'"""
    slow = {"type": "command", "command": say, "async": True}
    here = prepared(tmp_path, PreToolUse={"hooks": [slow]})
    with server([bash("sleep 0.5"), Reply("fine"), Reply("fine too")]) as model:
        here.configure(BASE.format(mode="trust"), model.url)
        with pty(home=here) as terminal:
            terminal.line("one")
            terminal.expect("fine")
            terminal.line("two")
            terminal.expect("fine too")
        assert "by the way" in str(model.requests[1].body["messages"])


@pytest.mark.parametrize("line", ["exit 3", "export A=$(((", "sleep 1; kill -9 $$"])
def test_an_environment_file_that_is_broken_is_told_and_stops_nothing(tmp_path: Path, line: str) -> None:
    here = prepared(
        tmp_path, SessionStart={"hooks": [{"type": "command", "command": f"echo '{line}' >> $CLAUDE_ENV_FILE"}]}
    )
    done, requests = turn(here, [bash("echo one"), bash("echo two"), Reply("fine")])
    assert results(requests) == ["one", "two"] and done.err.count("CLAUDE_ENV_FILE: ") == 1


def test_words_about_a_compaction_and_how_a_chat_was_left_are_heard(tmp_path: Path) -> None:
    keep = {"hooks": [{"type": "command", "command": "cat >> heard.jsonl"}]}
    here = prepared(tmp_path, PreCompact=keep, SessionEnd=keep)
    with server([Reply("first"), Reply("second"), Reply("the summary")]) as model:
        here.configure(BASE.format(mode="trust"), model.url)
        with pty(home=here) as terminal:
            for line, answer in (("one", "first"), ("two", "second"), ("/compact keep the NUMBERS", "is compacted")):
                terminal.line(line)
                terminal.expect(answer)
            terminal.line("/exit")
            assert terminal.wait() == 0
        assert "keep the NUMBERS" in str(model.requests[-1].body["messages"])
    heard = [json.decode(line) for line in (here.project / "heard.jsonl").read_bytes().splitlines()]
    assert heard[0]["custom_instructions"] == "keep the NUMBERS" and heard[-1]["reason"] == "prompt_input_exit"
