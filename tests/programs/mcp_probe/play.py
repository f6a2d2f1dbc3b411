"""A small server, asked by a script at the end of a turn."""

from __future__ import annotations

from tests.features.mcp.small_server import stdio
from tests.kit import Reply
from tests.programs.stage import Stage

RULES = '[permissions]\nallow = ["mcp_small_echo", "mcp_small_fail"]\ndeny = ["mcp_small_env"]\n'
SHOWN = ("small", "16 object", "truefalsefalse", "truehi", "falseit did not work")


def play(stage: Stage) -> None:
    turn = stage.turn([Reply("done")], own="\n" + RULES + stdio())
    for text in (*SHOWN, "Not allowed by policy", "not JSON: ", "there is no MCP server x"):
        assert text in turn.done.err, (text, turn.done)
