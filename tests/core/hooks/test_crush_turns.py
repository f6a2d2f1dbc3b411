"""T1 to T4 and M1 to M5 of Crush's own tests, as a user meets them: the real command, a real crush.json, real hooks.

Where Crush's tests look at its permission service, these look at what ran, what the model read, and what was announced. Crush's
`allowed_tools` and skip mode are our allow rules and the mode `trust`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.hooks.crush_world import Made, call, config
from tests.kit import Call, HomeDir, Reply, cru, home, server
from tests.kit.run import Done

from cru.core.hooks.model.result import HookRun

ALLOW = """echo '{"decision":"allow"}'"""
TOUCH = {"command": "touch ran"}


def prepared(tmp_path: Path, *entries: dict[str, Any], event: str = "PreToolUse") -> HomeDir:
    """A home with a crush.json of the user's own."""
    here = home(tmp_path)
    folder = here.path / ".config" / "crush"
    folder.mkdir(parents=True)
    (folder / "crush.json").write_text(config(*entries, event=event))
    return here


def turn(
    here: HomeDir, *calls: Call, mode: str = "ask", more: str = "", argv: tuple[str, ...] = ()
) -> tuple[Done, list[str]]:
    """One prompt whose reply makes these calls: how the run ended, and what the model read of the calls."""
    with server([Reply(calls=calls), Reply("done")]) as model:
        here.configure(f'mode = "{mode}"\n[hooks]\ndialects = ["crush"]\n{more}', model.url)
        done = cru(*argv, "go", home=here)
        last = model.requests[-1].body["messages"]
    return done, [message["content"] for message in last if message["role"] == "tool"]


def test_t1_m1_an_allow_grants_the_call(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": ALLOW, "matcher": "^bash$"})
    done, _ = turn(here, Call("bash", TOUCH))
    assert (done.code, done.out, done.err) == (0, "done\n", "")
    assert (here.project / "ran").exists()


def test_t2_a_silent_hook_grants_nothing(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": "true"})
    _, [result] = turn(here, Call("bash", TOUCH))
    assert result.startswith("Not allowed by policy") and not (here.project / "ran").exists()


def test_t3_exit_2_blocks_and_the_model_reads_why(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": "echo 'not on fridays' >&2; exit 2"})
    done, [result] = turn(here, Call("bash", TOUCH), mode="trust")
    assert done.code == 0 and result.startswith("Blocked by ") and result.endswith(": not on fridays")
    assert not (here.project / "ran").exists()
    [logged] = [line for line in here.log() if line["entry_type"] == "tool_result"]
    assert logged["metadata"]["is_error"] is True


def test_t3_halt_ends_the_turn(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": "echo 'enough' >&2; exit 49"})
    with server([Reply(calls=[Call("bash", TOUCH)])]) as model:
        here.configure('mode = "trust"\n[hooks]\ndialects = ["crush"]\n', model.url)
        done = cru("go", home=here)
    assert len(model.requests) == 1 and done.code == 3 and "enough" in done.err
    assert not (here.project / "ran").exists()


def test_t3_context_and_files_follow_the_result(tmp_path: Path) -> None:
    """CF8."""
    here = prepared(
        tmp_path, {"command": """echo '{"decision":"allow","context":["mind","the gap"],"context_files":["a.md"]}'"""}
    )
    (here.project / "a.md").write_text("words")
    _, [result] = turn(here, Call("bash", {"command": "echo hello"}))
    assert result.startswith("hello\n") and result.endswith("\nmind\nthe gap\n## Referenced files\n- a.md")


def test_a9_the_call_runs_as_rewritten_and_the_log_keeps_what_the_model_wrote(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": """echo '{"decision":"allow","updated_input":{"command":"echo other"}}'"""})
    _, [result] = turn(here, Call("bash", {"command": "echo this"}))
    assert result.startswith("other")
    [logged] = [line for line in here.log() if line["entry_type"] == "tool_call"]
    assert "echo this" in logged["content"]


def test_t4_sub_agents_calls_are_not_hooked(tmp_path: Path) -> None:
    """Sub-agents come later; their bus is here already. The call that starts one is a call of the main agent."""
    hooks = Made(tmp_path, config({"command": "no"}), {"no": HookRun(2)})
    assert call(hooks, depth=1).decision == "none"
    assert call(hooks, "agent").decision == "deny"


def test_m2_leave_for_one_call_is_not_leave_for_the_next(tmp_path: Path) -> None:
    command = """case $CRUSH_TOOL_INPUT_COMMAND in *one*) echo '{"decision":"allow"}';; esac"""
    here = prepared(tmp_path, {"command": command})
    _, results = turn(here, Call("bash", {"command": "touch one"}), Call("bash", {"command": "touch two"}))
    assert results[1].startswith("Not allowed by policy")
    assert sorted(path.name for path in here.project.iterdir()) == ["one"]


def test_m3_everybody_hears_that_leave_was_given_and_by_whom(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": ALLOW})
    done, _ = turn(here, Call("bash", TOUCH), argv=("--json",))
    lines = [msgspec.json.decode(line) for line in done.out.splitlines()]
    [resolved] = [line["payload"] for line in lines if line["type"] == "permission:resolved"]
    assert resolved["decision"] == "allow" and resolved["by"].startswith("hook crush-")


@pytest.mark.parametrize(
    ("rule", "runs"), [("bash", True), ("bash:touch *", True), ("bash:ls *", False), ("read", False), (None, False)]
)
def test_m4_an_allow_rule_needs_no_hook(tmp_path: Path, rule: str | None, runs: bool) -> None:
    here = prepared(tmp_path, {"command": "true"})
    turn(here, Call("bash", TOUCH), more=f"[permissions]\nallow = {[rule] if rule else []}\n")
    assert (here.project / "ran").exists() is runs


def test_m5_the_mode_that_allows_everything(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": "true"})
    turn(here, Call("bash", TOUCH), mode="trust")
    assert (here.project / "ran").exists()


def test_an_allow_does_not_lift_a_deny_rule(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": ALLOW})
    _, [result] = turn(here, Call("bash", TOUCH), more='[permissions]\ndeny = ["bash:touch *"]\n')
    assert result.startswith("Not allowed by policy") and not (here.project / "ran").exists()


def test_a_failing_hook_stops_nothing_and_is_seen(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": "echo oops >&2; exit 1", "name": "guard"})
    done, _ = turn(here, Call("bash", TOUCH), mode="trust")
    assert done.code == 0 and (here.project / "ran").exists()
    assert "hook guard" in done.err and "failed: exit status 1: oops" in done.err and "Traceback" not in done.err


def test_read_only_tools_are_hooked_too(tmp_path: Path) -> None:
    here = prepared(tmp_path, {"command": "exit 2", "matcher": "^(view|ls)$"})
    _, results = turn(here, Call("ls", {}), Call("read", {"file_path": "x"}), Call("glob", {"pattern": "*"}))
    assert [result.startswith("Blocked by ") for result in results] == [True, True, False]
