"""Guards of other programs hear calls of MCP servers' tools by the names that they know them by; sub-agents have the same servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.features.mcp.small_server import stdio
from tests.features.mcp.test_session import results
from tests.kit import Call, HomeDir, Reply, cru, home, server

REFUSE = "cat > stdin.json; echo no entry >&2; exit 2"
ALLOW = '[permissions]\nallow = ["mcp_my_srv_*", "task"]\n'


def hook(here: HomeDir, dialect: str, matcher: str) -> None:
    """A hook before each call that the matcher fits: it keeps its input and refuses."""
    entry: dict[str, Any] = {"type": "command", "command": REFUSE}
    nested = [{"matcher": matcher, "hooks": [entry]}]
    path, content = {
        "claude": (".claude/settings.json", {"hooks": {"PreToolUse": nested}}),
        "codex": (".codex/hooks.json", {"hooks": {"PreToolUse": nested}}),
        "crush": (".config/crush/crush.json", {"hooks": {"PreToolUse": [{"matcher": matcher, "command": REFUSE}]}}),
        "gemini": (".gemini/settings.json", {"hooks": {"BeforeTool": nested}}),
        "cru": (".cru/hooks.json", {"hooks": {"PreToolUse": [{"matcher": matcher, "command": REFUSE}]}}),
    }[dialect]
    file = here.path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("dialect", "matcher", "name"),
    [
        ("claude", "mcp__my_srv__echo", "mcp__my_srv__echo"),
        ("claude", "mcp__my_srv__.*", "mcp__my_srv__echo"),
        ("claude", "mcp__.*__echo|Bash", "mcp__my_srv__echo"),
        ("codex", "^mcp__my_srv__", "mcp__my_srv__echo"),
        ("crush", "^mcp_my_srv_", "mcp_my_srv_echo"),
        ("gemini", "mcp_my_srv_.*", "mcp_my_srv_echo"),
        ("cru", "^mcp_my_srv_echo$", "mcp_my_srv_echo"),
        ("cru", "^mcp__my_srv__.*", "mcp_my_srv_echo"),
    ],
)
def test_a_hook_of_another_program_refuses_a_call(tmp_path: Path, dialect: str, matcher: str, name: str) -> None:
    steps = [
        Reply(calls=[Call("mcp_search", {})]),
        Reply(calls=[Call("mcp_my_srv_echo", {"text": "x"})]),
        Reply("done"),
    ]
    with server(steps) as model:
        config = ALLOW + stdio("my_srv") + '[hooks]\ndialects = ["crush", "claude", "codex", "gemini"]\n'
        here = home(tmp_path, url=model.url, config=config)
        hook(here, dialect, matcher)
        done = cru("--hooks", "all", "go", home=here)
    assert "no entry" in results(model.requests[-1])[1], done
    seen = json.loads((here.project / "stdin.json").read_text())
    assert (seen["tool_name"], seen["tool_input"]) == (name, {"text": "x"})
    if dialect == "gemini":
        assert seen["mcp_context"] == {"server_name": "my_srv", "tool_name": "echo"}


@pytest.mark.sample(1)
@pytest.mark.parametrize("rule", ["mcp__my_srv", "mcp__my_srv__echo", "mcp__my_srv__*"])
def test_deny_rules_of_claude_code_hold(tmp_path: Path, rule: str) -> None:
    steps = [
        Reply(calls=[Call("mcp_search", {})]),
        Reply(calls=[Call("mcp_my_srv_echo", {"text": "x"})]),
        Reply("done"),
    ]
    with server(steps) as model:
        config = ALLOW + stdio("my_srv") + '[hooks]\ndialects = ["claude"]\n'
        here = home(tmp_path, url=model.url, config=config)
        (here.path / ".claude").mkdir()
        (here.path / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": [rule]}}))
        cru("go", home=here)
    assert "Not allowed by policy" in results(model.requests[-1])[1]


def write_card(here: HomeDir, tools: str) -> None:
    folder = here.cru / "agents"
    folder.mkdir()
    (folder / "asker.md").write_text(f"---\ndescription: asks\ntools: {tools}\nmode: ask\n---\nYou ask.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tools", "says"),
    [("mcp_my_srv_e*, mcp_search", "below"), ("read, mcp_search", "there is no tool `mcp_my_srv_echo`")],
)
def test_a_sub_agent_has_the_servers_that_its_card_allows(tmp_path: Path, tools: str, says: str) -> None:
    count = tmp_path / "count"
    steps = [
        Reply(calls=[Call("mcp_search", {})]),
        Reply(calls=[Call("task", {"agent": "asker", "prompt": "ask"})]),
        Reply(calls=[Call("mcp_my_srv_echo", {"text": "below"})]),
        Reply("asked"),
        Reply("done"),
    ]
    with server(steps) as model:
        here = home(tmp_path, url=model.url, config=ALLOW + stdio("my_srv", f"count={count}"))
        write_card(here, tools)
        done = cru("go", home=here)
    assert says in results(model.requests[3])[0], done
    assert len(count.read_text().splitlines()) == 1  # one process for both


@pytest.mark.slow
def test_a_hook_hears_the_call_of_a_sub_agent(tmp_path: Path) -> None:
    steps = [
        Reply(calls=[Call("task", {"agent": "asker", "prompt": "ask"})]),
        Reply(calls=[Call("mcp_search", {})]),
        Reply(calls=[Call("mcp_my_srv_echo", {"text": "below"})]),
        Reply("asked"),
        Reply("done"),
    ]
    with server(steps) as model:
        here = home(tmp_path, url=model.url, config=ALLOW + stdio("my_srv") + '[hooks]\ndialects = ["claude"]\n')
        write_card(here, "mcp_*")
        hook(here, "claude", "mcp__my_srv__echo")
        cru("--hooks", "all", "go", home=here)
    assert "no entry" in results(model.requests[3])[-1]
