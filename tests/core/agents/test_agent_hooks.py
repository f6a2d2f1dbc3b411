"""Hooks, rules and handlers in sub-agents: what Claude Code's hooks of their beginning and end do, and who is told whose event it is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.core.agents.support import call, records, script, task_log
from tests.core.agents.test_subagents import ANSWER, world_with


def claude_settings(tmp_path: Path, event: str, command: str, **group: str) -> dict[str, object]:
    """The settings of a session in which Claude Code's hooks of the user run, one of them."""
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"hooks": {event: [{**group, "hooks": [{"type": "command", "command": command}]}]}}))
    return {"mode": "trust", "hooks": {"dialects": ["claude"]}}


def test_what_a_hook_of_subagent_start_says_is_read_by_the_sub_agent(tmp_path: Path) -> None:
    says = {"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "a hint"}}
    settings = claude_settings(tmp_path, "SubagentStart", f"echo '{json.dumps(says)}'", matcher="Explore")
    child = script(tmp_path, "child", ANSWER)
    calls = f"{call('Explore', child)}\n{call('general-purpose', child)}"
    world = world_with(tmp_path, calls, settings=settings)
    world.run("go")
    texts = {record.agent: str(task_log(world, record)) for record in records(world)}
    assert "SubagentStart hook additional context: a hint" in texts["explore"]
    assert "a hint" not in texts["general"] + "\n".join(world.results())


def test_a_hook_of_subagent_stop_keeps_the_sub_agent_at_work_and_reads_its_transcript(tmp_path: Path) -> None:
    command = (
        f"cat > {tmp_path}/stdin; [ -e {tmp_path}/blocked ] && exit; touch {tmp_path}/blocked; "
        "echo 'look again' >&2; exit 2"
    )
    settings = claude_settings(tmp_path, "SubagentStop", command)
    child = script(tmp_path, "child", "text: first\n---\ntext: second\n")
    world = world_with(tmp_path, call("general", child), settings=settings)
    world.run("go")
    assert world.results() == ["second"]
    known = json.loads((tmp_path / "stdin").read_text())
    (record,) = records(world)
    assert (known["agent_id"], known["agent_type"], known["stop_hook_active"]) == (record.id, "general-purpose", True)
    lines = [json.loads(line) for line in Path(known["agent_transcript_path"]).read_text().splitlines()]
    assert all(line["isSidechain"] and line["agentId"] == record.id for line in lines)
    assert [line["message"]["content"] for line in lines if line["type"] == "assistant"][-1][0]["text"] == "second"
    assert known["session_id"] == lines[0]["sessionId"] and known["transcript_path"] != known["agent_transcript_path"]


def test_the_stop_hook_is_the_main_agents_alone(tmp_path: Path) -> None:
    settings = claude_settings(tmp_path, "Stop", f"echo x >> {tmp_path}/stops")
    world = world_with(tmp_path, call("general", script(tmp_path, "child", ANSWER)), settings=settings)
    world.run("go")
    assert (tmp_path / "stops").read_text() == "x\n"


def test_a_rule_for_a_kind_of_agent_holds_for_its_other_name(tmp_path: Path) -> None:
    settings = {"mode": "trust", "permissions": {"deny": ["task:general"]}}
    world = world_with(tmp_path, call("general-purpose", script(tmp_path, "child", ANSWER)), settings=settings)
    world.run("go")
    assert "the rule `task:general`" in world.results()[0] and not records(world)


def test_a_handler_hears_which_agent_raised_an_event(tmp_path: Path) -> None:
    (tmp_path / "home" / "plugins").mkdir(parents=True)
    (tmp_path / "home" / "plugins" / "who.lua").write_text(
        'cru.on("tool:before_call", function(ctx, event) cru.fs.append("who.txt", event.name .. " " .. '
        'tostring(ctx.is_sub_agent) .. " " .. ctx.agent_type .. " " .. ctx.depth .. "\\n") end)\n'
    )
    child = script(tmp_path, "child", "call: ls {}\n---\ntext: yes\n")
    world = world_with(tmp_path, call("explore", child), settings={"mode": "trust"})
    world.run("go")
    assert (tmp_path / "project" / "who.txt").read_text() == "task false  0\nls true explore 1\n"


def heard(tmp_path: Path) -> list[dict[str, object]]:
    """What a hook that keeps its input has read."""
    return [json.loads(line) for line in (tmp_path / "heard").read_text().splitlines()]


@pytest.mark.parametrize("event", ["Stop", "SubagentStop"])
def test_the_hooks_of_an_end_know_what_runs_in_the_background(tmp_path: Path, event: str) -> None:
    settings = claude_settings(tmp_path, event, f"cat >> {tmp_path}/heard")
    command = 'call: bash {"command": "sleep 600", "background": true}'
    behind = script(tmp_path, "behind", "delay: 600s\n")
    child = script(tmp_path, "child", ANSWER)
    calls = f"{command}\n{call('explore', behind, background=True, description='look')}\n---\n{call('general', child)}"
    world = world_with(tmp_path, calls, settings={**settings, "tasks": {"timeout": 1}})
    asyncio.run(world.asked("go"))
    by_agent = {record.agent: record for record in records(world)}
    first = heard(tmp_path)[0]
    expected = [
        {"id": by_agent[""].id, "status": "running", "description": "sleep 600", "type": "shell", "command": "sleep 600"},
        {"id": by_agent["explore"].id, "status": "running", "description": "look", "type": "subagent", "agent_type": "Explore"},
    ]  # fmt: skip
    assert first["background_tasks"] == expected


def test_the_response_of_an_agent_names_it_and_what_it_used(tmp_path: Path) -> None:
    settings = claude_settings(tmp_path, "PostToolUse", f"cat >> {tmp_path}/heard", matcher="Agent")
    child = script(tmp_path, "child", "usage: input=70 output=5\ntext: it is in README.md\n")
    calls = f"{call('general', child)}\n---\n{call('general', child, background=True)}"
    world = world_with(tmp_path, f"{calls}\n---\ntext: I wait", settings=settings)
    world.run("go")
    waited, launched = (known["tool_response"] for known in heard(tmp_path))
    first, second = (record.id for record in records(world))
    assert isinstance(waited, dict) and isinstance(launched, dict)
    assert (waited["agentId"], waited["status"], waited["agentType"]) == (first, "completed", "general-purpose")
    assert (waited["totalTokens"], waited["usage"]["input_tokens"]) == (75, 70) and waited["totalDurationMs"] >= 0
    assert (launched["agentId"], launched["status"], launched["isAsync"]) == (second, "async_launched", True)


def test_the_payload_of_a_sub_agent_has_its_own_mode(tmp_path: Path) -> None:
    (tmp_path / "home" / "agents").mkdir(parents=True)
    (tmp_path / "home" / "agents" / "shy.md").write_text("---\ndescription: x\nmode: plan\n---\nLook.\n")
    settings = claude_settings(tmp_path, "PreToolUse", f"cat >> {tmp_path}/heard")
    child = script(tmp_path, "child", "call: ls {}\n---\ntext: seen\n")
    world_with(tmp_path, call("shy", child), settings=settings).run("go")
    assert [(known["tool_name"], known["permission_mode"]) for known in heard(tmp_path)] == [
        ("Agent", "bypassPermissions"),
        ("LS", "plan"),
    ]
