"""What built-in tools ask the gate while they run, by the rules as they are then."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.core.guard.rules.world import World

from cru.core.compose.wiring import tool_services
from cru.core.guard.rules import LayerRules, RuleLists
from cru.core.tools.protocol import ToolSettings


def test_rules_that_are_taken_over_later_hold_for_redirects_hints_and_searches(tmp_path: Path) -> None:
    world = World(tmp_path)
    gate = world.gate("trust")
    nothing: Any = SimpleNamespace()
    services = tool_services(nothing, nothing, nothing, nothing, gate, ToolSettings())
    assert services.rules.web and services.rules.judge_read and services.rules.hidden_files
    assert services.rules.web().why_not("https://evil.example/") == ""
    lists = RuleLists(ask=("fetch:https://ask.example*",), deny=("fetch:*://evil.example*", "read:a.py"))
    gate.take_over([LayerRules("claude", lists, "settings.json")])
    assert "settings.json" in services.rules.web().why_not("https://evil.example/")
    assert "wants a question" in services.rules.web().why_not("https://ask.example/x")
    assert services.rules.web().why_not("https://fine.example/") == ""
    assert services.rules.judge_read("src/a.py").decision == "deny"
    hidden = services.rules.hidden_files("grep", ".")
    assert hidden is not None and hidden.why(f"{world.root}/src/a.py")
