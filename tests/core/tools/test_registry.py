from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import msgspec

from cru.core.base.values.messages import ToolSpec
from cru.core.tools.builtin import TABLE, BuiltInTools, ToolRegistry
from cru.core.tools.protocol import Access, Kind, Tool, ToolContext, ToolResult


class Other:
    """A tool of an extension."""

    kind: Kind = "tool"
    parallel = True

    def __init__(self, name: str, source: str = "extension x") -> None:
        self.spec = ToolSpec(name, "Other.", {"type": "object"})
        self.source = source

    def check(self, arguments: str) -> dict[str, Any]:
        return {}

    def subject(self, args: Mapping[str, Any]) -> str:
        return ""

    def paths(self, args: Mapping[str, Any]) -> Iterable[tuple[Access, str]]:
        return ()

    async def run(self, args: dict[str, Any], running: ToolContext) -> ToolResult:
        return ToolResult("other")


class Source:
    def __init__(self, *tools: Tool) -> None:
        self._tools = tools

    def tools(self) -> Iterable[Tool]:
        return self._tools


def test_the_order_is_that_of_the_sources_whatever_is_asked_for() -> None:
    registry = ToolRegistry([BuiltInTools(), Source(Other("zeta"), Other("alpha"))])
    assert registry.names()[:3] == ("read", "write", "edit")
    assert registry.names()[-2:] == ("zeta", "alpha")
    assert [s.name for s in registry.specs(["alpha", "bash", "read"])] == ["read", "bash", "alpha"]


def test_the_same_question_gives_the_same_tuple() -> None:
    registry = ToolRegistry([BuiltInTools()])
    assert registry.specs() is registry.specs()
    assert registry.specs(["bash", "read"]) is registry.specs(["read", "bash"])


def test_two_registries_encode_their_specs_to_the_same_bytes() -> None:
    first, second = (msgspec.json.encode(ToolRegistry([BuiltInTools()]).specs()) for _ in range(2))
    assert first == second


def test_unknown_names_are_not_offered_and_the_closest_is_known() -> None:
    registry = ToolRegistry([BuiltInTools()])
    assert registry.specs(["nothing"]) == ()
    assert registry.find("baash") is None
    assert registry.closest("baash") == "bash"
    assert registry.closest("qwertyuiop") is None


def test_a_later_source_replaces_a_tool_in_its_place_and_that_is_reported() -> None:
    registry = ToolRegistry([BuiltInTools(), Source(Other("write"))])
    assert registry.problems == ["tool `write` of built-in is replaced by the one of extension x"]
    assert registry.names()[1] == "write"
    assert registry.specs()[1].description == "Other."


def test_recurse_can_be_called_but_is_not_offered() -> None:
    registry = ToolRegistry([BuiltInTools()])
    tool = registry.find("recurse")
    assert tool is not None
    assert "recurse" not in registry.names()
    assert registry.specs(["recurse"]) == ()


def test_a_plugin_may_provide_recurse_without_a_complaint() -> None:
    registry = ToolRegistry([BuiltInTools(), Source(Other("recurse"))])
    assert registry.problems == []
    assert "recurse" in registry.names()


def test_the_reflection_tool_is_offered_only_if_wanted() -> None:
    assert "update_reflection" in ToolRegistry([BuiltInTools()]).names()
    assert "update_reflection" not in ToolRegistry([BuiltInTools(reflection=False)]).names()


def test_every_row_of_the_table_leads_to_a_coroutine_function() -> None:
    for row in TABLE.values():
        module, _, function = row.call.partition(".")
        assert asyncio.iscoroutinefunction(getattr(import_module(f"cru.core.tools.{module}"), function)), row.call


def test_reading_tools_may_run_at_the_same_time_and_changing_ones_not() -> None:
    registry = ToolRegistry([BuiltInTools()])
    parallel = [name for name in registry.names() if (tool := registry.find(name)) and tool.parallel]
    assert parallel == ["read", "ls", "glob", "grep", "task_output", "fetch", "read_context", "task"]


def test_the_specs_are_known_without_the_code_of_the_tools() -> None:
    script = (
        "import sys; from cru.core.tools.builtin import BuiltInTools, ToolRegistry\n"
        "registry = ToolRegistry([BuiltInTools()]); registry.specs(); registry.find('bash').check('{\"command\": \"ls\"}')\n"
        "print(*sorted({'asyncio', 'subprocess', 'html', 'difflib'} & set(sys.modules)))\n"
        "print(*sorted(n[15:] for n in sys.modules if n.startswith('cru.core.tools.')))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["", "arguments builtin protocol"]
