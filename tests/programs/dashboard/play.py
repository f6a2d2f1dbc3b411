"""The same view twice: while there is work, and after it."""

from __future__ import annotations

from json import loads
from typing import Any

from tests.kit import Call, Reply
from tests.programs.stage import Stage

BUSY = [
    "col",
    ["col", ["spinner busy"], ["divider ="], ["hr"], ["text at work"]],
    ["row", ["text work"], ["spacer"], ["progress 0.5"]],
    ["fragment", ["bullet_list ['a', 'b']"], ["numbered_list ['a', 'b']"], ["fragment", ["kv a"], ["kv b"]], ["empty"]],
    ["row", ["text ask"], ["text why"]],
    ["input what next?"],
    ["popup [{'label': 'go'}, {'label': 'stop'}]"],
    ["fragment", ["text the end"]],
]
IDLE = ["col", ["badge idle"], ["empty"], ["empty"], ["text nothing to do"]]
SHOWN = ("text", "label", "char", "value", "items", "placeholder")


def outline(node: dict[str, Any]) -> list[Any]:
    """[kind and what it shows, the outlines of its children ...]"""
    shown = next((node["props"][key] for key in SHOWN if node["props"].get(key)), "")
    return [f"{node['kind']} {shown}".strip(), *map(outline, node["children"])]


def play(stage: Stage) -> None:
    calls = [Call("draw", {"state": state, "todos": ["a", "b"]}) for state in ("busy", "idle")]
    turn = stage.turn([Reply(calls=calls), Reply("drawn")])
    busy, idle = map(loads, turn.results)
    assert outline(busy) == BUSY
    assert busy["props"] == {"border": "rounded"}
    assert outline(idle)[1] == IDLE
