"""Sub-agents and background commands as hooks of Claude Code know them: those that run as an agent stops, and what `Agent` gave."""

from __future__ import annotations

from collections.abc import Mapping

from cru.core.agents.record import MAIN, TaskKind, TaskRecord, TaskStatus
from cru.core.hooks.dialects.claude.tools import TOOLS
from cru.core.hooks.model.facts import SessionFacts

_STATUSES = {TaskStatus.WAITING: "pending", TaskStatus.RUNNING: "running"}


def running_tasks(facts: SessionFacts, agent_id: str) -> list[dict[str, object]]:
    """`background_tasks`: what the main agent has in the background. `agent_id`: of the agent that stops, which is none of them."""
    return [
        _describe(record)
        for record in facts.tasks()
        if record.background and record.parent == MAIN and record.status in _STATUSES and record.id != agent_id
    ]


def _describe(record: TaskRecord) -> dict[str, object]:
    known: dict[str, object] = {"id": record.id, "status": _STATUSES[record.status], "description": record.title}
    if record.kind is TaskKind.COMMAND:
        return {**known, "type": "shell", "command": record.prompt}
    return {**known, "type": "subagent", "agent_type": TOOLS.foreign_agent(record.agent)}


def describe_call(tool_input: Mapping[str, object], text: str, call_id: str, facts: SessionFacts) -> dict[str, object]:
    """`tool_response` of `Agent`; without what only its record has, if a handler has done the call instead."""
    record = next((record for record in reversed(facts.tasks()) if call_id and record.call_id == call_id), None)
    known: dict[str, object] = {"prompt": tool_input.get("prompt"), "agentType": tool_input.get("subagent_type")}
    if record is not None:
        known["agentId"] = record.id
    if tool_input.get("run_in_background"):
        return {"status": "async_launched", "isAsync": True, "description": tool_input.get("description"), **known}
    known |= {"status": "completed", "content": [{"type": "text", "text": text}]}
    return known if record is None else {**known, **_totals(record)}


def _totals(record: TaskRecord) -> dict[str, object]:
    """Of its own requests."""
    milliseconds = round(1000 * max(0.0, record.ended - record.started)) if record.ended else 0
    usage = {
        "input_tokens": record.usage.input, "output_tokens": record.usage.output,
        "cache_read_input_tokens": record.usage.cache_read, "cache_creation_input_tokens": record.usage.cache_write,
    }  # fmt: skip
    return {"totalDurationMs": milliseconds, "totalTokens": record.usage.tokens, "usage": usage}
