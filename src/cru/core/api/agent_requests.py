"""What scripts ask of sub-agents goes the road of all calls: as a call of `task`, so that rules and hooks that guard it hold."""

from __future__ import annotations

from typing import Any

import msgspec

from cru.core.agents.sub_agents import TOOL, AgentTasks
from cru.core.api.host import BadArgument, NamespaceError
from cru.core.base.values.messages import ToolCall
from cru.core.conversations.entries import new_id
from cru.core.tools.arguments import parse_arguments
from cru.core.tools.protocol import AgentRequest, ArgumentError, ToolServices
from cru.core.turn.calls import tool_call
from cru.core.turn.parts import Parts


class Refused(NamespaceError):
    """A rule or a hook refuses what a script asks of a sub-agent."""


def make_request(where: str, fields: dict[str, Any]) -> AgentRequest:
    """Raises BadArgument."""
    try:
        return parse_arguments(AgentRequest, fields)
    except ArgumentError as error:
        raise BadArgument(f"{where}: {error}") from error


async def decide(parts: Parts, request: AgentRequest) -> AgentRequest:
    """The request as rules and hooks leave it. Raises Refused."""
    call = ToolCall(f"script_{new_id()[:8]}", TOOL, msgspec.json.encode(request).decode())
    decided = await tool_call.decide(parts, call, "script")
    if decided.state != "granted":
        raise Refused(decided.content)
    return msgspec.convert({**decided.request.args, "background": request.background}, AgentRequest)


def agent_tasks(tool_services: ToolServices) -> AgentTasks:
    """Those of the session; they are made when first needed. Raises NamespaceError."""
    make = tool_services.spawner
    return tasks_of(None if make is None else make())


def tasks_of(tasks: object) -> AgentTasks:
    """Raises NamespaceError."""
    if not isinstance(tasks, AgentTasks):
        raise NamespaceError("this session has no tasks")
    return tasks
