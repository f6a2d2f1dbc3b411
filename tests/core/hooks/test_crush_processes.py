"""R1 to R17 of Crush's own tests: hooks as real processes, started by one dispatch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.hooks.crush_world import Call, Made, call, config
from tests.kit.waiting import ends_soon


def fired(path: Path, *commands: str | dict[str, Any], tool: str = "bash", args: dict[str, Any] | None = None) -> Call:
    entries = [{"command": one} if isinstance(one, str) else one for one in commands]
    return call(Made(path, config(*entries)), tool, args)


def echo(json: str) -> str:
    return f"echo '{json}'"


def test_r1_allow_with_context(tmp_path: Path) -> None:
    got = fired(tmp_path, echo('{"decision":"allow","context":"ok"}'))
    assert (got.decision, got.context) == ("allow", "ok")


def test_r2_exit_2_denies_with_what_it_said(tmp_path: Path) -> None:
    got = fired(tmp_path, """echo '{"decision":"allow"}'; echo " forbidden " >&2; exit 2""")
    assert (got.decision, got.outcome.answer.halt, got.reason) == ("deny", False, "forbidden")


@pytest.mark.parametrize(("code", "reason"), [(2, "blocked by hook"), (49, "turn halted by hook")])
def test_r2_r3_without_a_word_the_reason_is_a_fixed_one(tmp_path: Path, code: int, reason: str) -> None:
    assert fired(tmp_path, f"exit {code}").reason == reason


def test_r3_exit_49_halts(tmp_path: Path) -> None:
    got = fired(tmp_path, "echo 'stop the turn' >&2; exit 49")
    assert (got.decision, got.outcome.answer.halt, got.reason) == ("deny", True, "stop the turn")


def test_r4_halt_as_json(tmp_path: Path) -> None:
    got = fired(tmp_path, echo('{"halt":true,"reason":"via json"}'))
    assert got.outcome.answer.halt and got.reason == "via json"


@pytest.mark.parametrize("command", [
    """echo '{"decision":"deny"}'; exit 1""", "exit 78", "no-such-program-at-all", "./missing.sh", "if then", "kill -9 $$",
])  # fmt: skip
def test_r5_other_ends_say_nothing_and_are_told(tmp_path: Path, command: str) -> None:
    got = fired(tmp_path, command)
    assert got.decision == "none"
    assert any("failed:" in text for text in got.notices)


def test_r6_a_hook_that_takes_too_long(tmp_path: Path) -> None:
    with ends_soon():
        got = fired(tmp_path, {"command": "sleep 600", "timeout": 1})
    assert got.decision == "none"
    assert any("no answer within 1 s" in text for text in got.notices)


def test_r7_the_same_hook_twice_runs_once(tmp_path: Path) -> None:
    command = f"""echo run >> {tmp_path}/runs; echo '{{"decision":"allow"}}'"""
    assert fired(tmp_path, command, command).decision == "allow"
    assert (tmp_path / "runs").read_text() == "run\n"


def test_r8_no_hooks(tmp_path: Path) -> None:
    assert fired(tmp_path).decision == "none"


def test_r10_tools_of_servers_by_their_prefix(tmp_path: Path) -> None:
    hook = {"command": "exit 2", "matcher": "^mcp_"}
    assert fired(tmp_path, hook, tool="mcp_github_get_me").decision == "deny"
    assert fired(tmp_path, hook, tool="bash").decision == "none"


def test_r13_a_hook_is_called_by_its_name_or_its_command(tmp_path: Path) -> None:
    got = fired(tmp_path, {"command": "exit 1", "name": "my-hook"}, "exit 3")
    assert sorted(text.split(" (")[0] for text in got.notices) == [
        "hook exit 3",
        "hook my-hook",
    ]  # whichever ends first


def test_r14_hooks_run_side_by_side_and_deny_wins(tmp_path: Path) -> None:
    """Each waits for the other: one after the other neither would end."""
    (a, b), wait = (tmp_path / "a", tmp_path / "b"), "until [ -e {} ]; do sleep 0.01; done; "
    first = f"touch {a}; {wait.format(b)}" + echo('{"decision":"allow"}')
    second = f"touch {b}; {wait.format(a)}" + echo('{"decision":"deny","reason":"nope"}')
    got = fired(tmp_path, {"command": first, "timeout": 10}, {"command": second, "timeout": 10})
    assert (got.decision, got.reason) == ("deny", "nope")


def test_r15_the_environment_reaches_the_hook(tmp_path: Path) -> None:
    assert fired(tmp_path, """printf '{"context":"%s"}' "$CRUSH_TOOL_NAME" """).context == "bash"


def test_r15_standard_input_reaches_the_hook_as_one_line(tmp_path: Path) -> None:
    """`read -r` under `set -e` would end the script if the line had no end."""
    got = fired(tmp_path, 'set -e; read -r input; cat > rest; echo "$input" > seen; echo \'{"context":"read"}\'')
    assert got.context == "read"
    assert (tmp_path / "seen").read_text().startswith('{"event":"PreToolUse"') and (tmp_path / "rest").read_text() == ""


def test_r16_a_rewrite_keeps_the_other_arguments(tmp_path: Path) -> None:
    got = fired(tmp_path, echo('{"updated_input":{"command":"ls"}}'), args={"command": "rm", "timeout": 60})
    assert got.args == {"command": "ls", "timeout": 60}


@pytest.mark.slow
def test_r17_a_hook_that_will_not_end_is_left_behind(tmp_path: Path) -> None:
    command = """trap "" INT TERM; end=$((SECONDS+600)); while [ $SECONDS -lt $end ]; do sleep 0.1; done; echo '{"decision":"deny"}'"""
    with ends_soon():
        got = fired(tmp_path, {"command": command, "timeout": 1})
    assert got.decision == "none"


def test_r17_one_that_ends_by_itself_in_time_is_judged_by_how_it_ended(tmp_path: Path) -> None:
    command = """trap 'echo "cleaned up" >&2; exit 2' INT; while :; do sleep 0.05; done"""
    assert fired(tmp_path, {"command": command, "timeout": 1}).reason == "cleaned up"


def test_cf2_files_are_meant_from_where_the_hook_runs(tmp_path: Path) -> None:
    got = fired(tmp_path, echo('{"context_files":["a.md","/etc/x","../b.md"]}'))
    assert got.outcome.answer.context_files == (f"{tmp_path}/a.md", "/etc/x", f"{tmp_path}/../b.md")
