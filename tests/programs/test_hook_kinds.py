"""The kinds of hooks that people publish for Claude Code: one small one of each, unmodified in the real command, does what it is for.

KINDS names them all; those of claude_hooks/ have their tests in test_claude_hooks.py.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from tests.kit import Call, Received, Reply, Script, cru, home, pty, server

HERE = Path(__file__).parent
FOLDERS = (HERE / "hook_kinds", HERE / "claude_hooks")
KINDS: dict[str, str] = {
    "memory": "memory.py", "guard of commands": "bash_validator.py", "guard of files": "protect_files.sh",
    "guard of prompts": "guard_prompt.py", "guard of git": "git_guard.sh", "scan for secrets": "secret_scan.py",
    "redaction": "hide_keys.py", "approval": "auto_approve.py", "rules in a file": "policy.py", "domains": "domains.py",
    "limits": "quota.py", "cost": "cost.py", "audit": "audit.py", "record": "record.py", "formatting": "format_after.py",
    "linting": "lint_after.py", "compiling": "type_check.py", "tests before the end": "test_gate.sh", "tests first": "tdd.py",
    "until it is done": "until_done.py", "todo": "todo_gate.py", "notification": "notify.sh", "sound": "sound.sh",
    "checkpoints": "checkpoint.sh", "commits": "auto_commit.sh", "commit messages": "commit_message.py",
    "state of git": "git_context.sh", "reminders": "reminder.sh", "log of prompts": "prompt_log.sh", "handoff": "handoff.py",
    "transcript": "last_words.py", "environment": "session_env.sh", "rewriting": "package_manager.py", "loops": "give_up.py",
    "reports": "report.py",
}  # fmt: skip


def test_every_kind_has_a_script_and_every_script_a_kind() -> None:
    scripts = {path.name for folder in FOLDERS for path in folder.iterdir() if path.suffix in (".py", ".sh")}
    assert sorted(KINDS.values()) == sorted(scripts)


class Desk:
    """A home with one script as a hook, and what became of the turns in it."""

    def __init__(self, folder: Path, script: str, **events: str) -> None:
        self.home = home(folder)
        hooks = self.home.path / ".claude" / "hooks"
        hooks.mkdir(parents=True)
        shutil.copy(FOLDERS[0] / script, hooks)
        groups: dict[str, Any] = {
            event: [{"matcher": matcher, "hooks": [{"type": "command", "command": f"~/.claude/hooks/{script}"}]}]
            for event, matcher in events.items()
        }
        (hooks.parent / "settings.json").write_bytes(json.encode({"hooks": groups}))
        self.shown = ""

    @property
    def project(self) -> Path:
        return self.home.project

    def kept(self, name: str) -> Any:
        return json.decode((self.home.path / name).read_bytes())

    def lines(self, name: str) -> list[Any]:
        return [json.decode(line) for line in (self.home.path / name).read_bytes().splitlines()]

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.project, env=self.home.env, capture_output=True, text=True, check=True
        )
        return done.stdout

    def turn(self, *script: Reply, prompt: str = "go on") -> list[Received]:
        steps: Script = list(script)
        with server(steps) as model:
            self.home.configure('mode = "trust"\n[hooks]\ndialects = ["claude"]\n', model.url)
            done = cru(prompt, home=self.home)
        self.shown = done.out + done.err
        assert "Traceback" not in self.shown and "failed:" not in self.shown, self.shown
        return model.requests


def bash(command: str) -> Reply:
    return Reply(calls=[Call("bash", {"command": command})])


def write(name: str, text: str) -> Reply:
    return Reply(calls=[Call("write", {"file_path": name, "content": text})])


def results(requests: list[Received]) -> list[str]:
    return [message["content"] for message in requests[-1].body["messages"] if message["role"] == "tool"]


def told(requests: list[Received]) -> str:
    """What the user and hooks beside the prompt said."""
    return "\n".join(str(m["content"]) for m in requests[-1].body["messages"] if m["role"] == "user")


FINE = Reply("fine")
CALLS = "Bash"
FILES = "Edit|Write"


@pytest.mark.slow
def test_memory(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "memory.py", UserPromptSubmit="", SessionStart="")
    assert desk.turn(FINE, prompt="remember: the key is under the mat") == []
    assert "- the key is under the mat" in told(desk.turn(FINE, prompt="where is the key?"))


def test_secrets_are_not_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "secret_scan.py", PreToolUse=FILES)
    key = "AKIA" + "A" * 16
    [first, second] = results(desk.turn(write("a.py", f"key = '{key}'"), write("b.py", "key = read()"), FINE))
    assert "looks like a key" in first and "looks like" not in second
    assert [path.name for path in desk.project.iterdir()] == ["b.py"]


def test_nothing_is_pushed_from_main(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "git_guard.sh", PreToolUse=CALLS)
    desk.git("init", "-q", "-b", "main")
    first, second, third = results(
        desk.turn(bash("git push"), bash("git switch -qc topic && echo moved"), bash("git push -f"), FINE)
    )
    assert "not from main" in first and "moved" in second and "no force" in third


def test_rules_of_a_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "policy.py", PreToolUse="")
    rule = {"tools": ["Bash"], "pattern": "curl .*\\| *sh", "message": "download it, read it, run it"}
    (desk.project / ".claude").mkdir()
    (desk.project / ".claude" / "rules.json").write_bytes(json.encode([rule]))
    first, second = results(desk.turn(bash("curl -s http://localhost | sh"), bash("echo hi"), FINE))
    assert "download it" in first and second == "hi"


def test_pages_of_one_domain_only(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "domains.py", PreToolUse="WebFetch")
    [result] = results(desk.turn(Reply(calls=[Call("fetch", {"url": "http://127.0.0.1:9/x"})]), FINE))
    assert "127.0.0.1 is not on the list" in result


def test_so_many_commands_and_no_more(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "quota.py", PreToolUse=CALLS)
    last = results(desk.turn(bash("echo 1"), bash("echo 2"), bash("touch third"), FINE))[-1]
    assert "two commands are enough" in last and not (desk.project / "third").exists()


def test_cost(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cost.py", Stop="")
    desk.turn(bash("true"), FINE)
    [spent] = desk.kept("cost.json").values()
    assert spent == {"input": 200, "output": 20}


def test_audit(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "audit.py", PostToolUse="", PostToolUseFailure="")
    desk.turn(bash("echo hi"), bash("exit 3"), FINE)
    first, second = desk.lines("audit.jsonl")
    assert (first["tool"], first["subject"], first["failed"], second["failed"]) == ("Bash", "echo hi", False, True)
    assert first["session"] == second["session"] and first["call"] != second["call"] and first["ms"] >= 0


def test_files_are_formatted(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "format_after.py", PostToolUse=FILES)
    [result] = results(desk.turn(write("a.py", "x = 1   \ny = 2"), FINE))
    assert (desk.project / "a.py").read_text() == "x = 1\ny = 2\n" and "a.py was formatted" in result


def test_what_does_not_compile_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "type_check.py", PostToolUse=FILES)
    first, second = results(desk.turn(write("a.py", "x = (\n"), write("b.py", "x = 1\n"), FINE))
    assert "line 1: " in first and ": " not in second


def test_the_agent_stops_when_tests_pass(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "test_gate.sh", Stop="")
    (desk.project / "check.sh").write_text("test -f fixed || { echo nothing is fixed; exit 1; }\n")
    requests = desk.turn(Reply("done"), bash("touch fixed"), Reply("now it is"))
    assert "the tests fail:\nnothing is fixed" in told(requests) and desk.shown.startswith("done")


def test_tests_come_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "tdd.py", PreToolUse=FILES)
    script = [write("src/a.py", "1"), write("tests/test_a.py", "1"), write("src/a.py", "2"), FINE]
    first, *_ = results(desk.turn(*script))
    assert "write tests/test_a.py first" in first and (desk.project / "src" / "a.py").read_text() == "2"


def test_the_agent_stops_when_its_list_is_done(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "todo_gate.py", PostToolUse="TodoWrite", Stop="")
    requests = desk.turn(
        todos("- [ ] dig\n- [x] plant"), Reply("done"), todos("[x] dig\n[x] plant"), Reply("now it is")
    )
    assert (
        "Still open: dig" in told(requests)
        and [todo["status"] for todo in desk.kept("todos.json")] == ["completed"] * 2
    )


def todos(text: str) -> Reply:
    return Reply(calls=[Call("update_todos", {"content": text})])


def test_a_sound(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "sound.sh", Stop="")
    player = desk.home.path / "bin" / "ring"
    player.parent.mkdir()
    player.write_text("#!/bin/sh\necho $1 > ~/rung\n")
    player.chmod(0o755)
    script = desk.home.path / ".claude" / "hooks" / "sound.sh"
    script.write_text(script.read_text().replace("command -v paplay || command -v aplay", "command -v ~/bin/ring"))
    desk.turn(FINE)
    assert (desk.home.path / "rung").read_text() == "done.wav\n"


def test_the_file_as_it_was(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "checkpoint.sh", PreToolUse=FILES)
    (desk.project / "a.txt").write_text("before")
    desk.turn(Reply(calls=[Call("read", {"file_path": "a.txt"})]), write("a.txt", "after"), write("b.txt", "new"), FINE)
    [kept] = (desk.home.path / ".claude" / "checkpoints").rglob("*.txt")
    assert (kept.read_text(), (desk.project / "a.txt").read_text()) == ("before", "after")


def test_a_turn_is_committed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "auto_commit.sh", Stop="")
    desk.git("init", "-q", "-b", "main")
    desk.turn(write("a.txt", "x"), Reply("I wrote a file."))
    assert desk.git("log", "--format=%s", "--name-only").split("\n\n") == ["turn: I wrote a file.", "a.txt\n"]


def test_a_commit_message(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "commit_message.py", PreToolUse=CALLS)
    [result] = results(desk.turn(bash("git commit -m 'Fixed it'"), FINE))
    assert "a commit message is `kind: what`" in result


def test_where_the_repository_stands(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "git_context.sh", UserPromptSubmit="")
    desk.git("init", "-q", "-b", "topic")
    (desk.project / "new.txt").write_text("")
    assert "branch topic, changed: ?? new.txt" in told(desk.turn(FINE))


def test_rules_come_with_every_prompt(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "reminder.sh", UserPromptSubmit="")
    (desk.project / "RULES.md").write_text("Be kind.")
    desk.turn(FINE)
    assert told(desk.turn(FINE)).count("Be kind.") == 2


def test_a_log_of_prompts(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "prompt_log.sh", UserPromptSubmit="")
    desk.turn(FINE, prompt="first")
    desk.turn(FINE, prompt="second")
    assert [line["prompt"] for line in desk.lines("prompts.jsonl")] == ["first", "second"]


@pytest.mark.slow
def test_what_was_asked_for_survives_a_compaction(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "handoff.py", PreCompact="", SessionStart="compact")
    desk.turn(FINE, prompt="paint the fence")
    desk.turn(FINE, prompt="in green")
    with server([Reply("it was short"), FINE]) as model:
        desk.home.configure('mode = "trust"\n[hooks]\ndialects = ["claude"]\n', model.url)
        with pty(home=desk.home) as terminal:
            terminal.line("/compact")
            terminal.line("and now?")
            terminal.expect("fine")
            terminal.line("/quit")
            terminal.wait()
    assert "- paint the fence\n- in green" in told(model.requests)


def test_another_package_manager(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "package_manager.py", PreToolUse=CALLS)
    assert results(desk.turn(bash("npm install left-pad"), FINE)) == ["pnpm add left-pad"]


def test_the_same_failure_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "give_up.py", PostToolUseFailure=CALLS)
    first, second = results(desk.turn(bash("exit 3"), bash("exit 3"), FINE))
    assert "try another way" not in first and "this has failed 2 times: try another way" in second


def test_a_report(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "report.py", SessionEnd="")
    desk.turn(FINE)
    report = desk.kept("report.json")
    assert report["asked"] == 1 and report["answered"] == 1 and report["reason"]
