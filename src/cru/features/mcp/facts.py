"""What is known of a server: its state, and what it offers."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from cru.features.mcp.listing import RemotePrompt, RemoteTool


class ServerState(StrEnum):
    OFF = "off"
    IDLE = "not started"
    STARTING = "starting"
    READY = "ready"
    LOST = "lost"
    FAILED = "failed"


class ServerFacts(Struct):
    """What is known of a server; `why`: why it does not work, and the next step."""

    state: ServerState = ServerState.IDLE
    why: str = ""
    hint: str = ""
    tools: tuple[RemoteTool, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    left_out: tuple[str, ...] = ()
    version: str = ""
    title: str = ""
    seconds: float = 0.0
    starts: int = 0


def count_tools(number: int) -> str:
    """So many, in words for a person."""
    return "1 tool" if number == 1 else f"{number} tools"
