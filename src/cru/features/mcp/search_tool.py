"""`mcp_search`: finds tools of MCP servers that the model is not shown: there are too many, or their server is still starting."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from cru.core.base.values.messages import ToolSpec
from cru.core.tools.arguments import decode_object
from cru.core.tools.protocol import Access, ArgumentError, Kind, ToolContext, ToolResult
from cru.features.mcp.tools import McpTool

NAME = "mcp_search"
MOST = 10
"""Tools that one search gives."""
_WORD = re.compile(r"[a-z0-9]+")


class SearchTool:
    """`find` gives all tools once every server has answered or failed, `show` offers tools from the next request on."""

    kind: Kind = "flow"
    parallel = True
    source = "mcp"

    def __init__(
        self,
        servers: Sequence[str],
        find: Callable[[], Awaitable[tuple[list[McpTool], list[str]]]],
        show: Callable[[Iterable[McpTool]], None],
    ) -> None:
        about = (
            f"Finds tools of the MCP servers ({', '.join(servers)}) that are not in the list of tools yet. What it finds can be called "
            "from the next reply on. Give words that say what the tool is to do; no words: all of them, by name."
        )
        parameters = {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "words"}},
            "additionalProperties": False,
        }
        self.spec = ToolSpec(NAME, about, parameters)
        self.hidden = False
        self._find = find
        self._show = show

    def check(self, arguments: str | Mapping[str, object]) -> dict[str, object]:
        """Raises ArgumentError."""
        decoded = decode_object(arguments)
        if not isinstance(decoded.get("query", ""), str):
            raise ArgumentError("`query`: expected text")
        return decoded

    def subject(self, args: Mapping[str, object]) -> str:
        return str(args.get("query", ""))

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        return ()

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        tools, problems = await self._find()
        query = str(args.get("query", "")).strip()
        chosen = rank(query, tools)[:MOST] if query else []
        if query:
            self._show(chosen)
            lines = [f"{tool.spec.name}: {_first_line(tool.remote.description)}" for tool in chosen]
        else:
            lines = [tool.spec.name for tool in tools]
        lines += ["no tool fits; other words may" if query else "there are none"] if not lines else []
        return ToolResult("\n".join([*lines, *problems]))


def rank(query: str, tools: Iterable[McpTool]) -> list[McpTool]:
    """Those in which words of the query stand, the best first: a word in a name counts more than one in a description."""
    words = set(_WORD.findall(query.lower()))
    scored = [(_score(words, tool), -number, tool) for number, tool in enumerate(tools)]
    return [tool for score, _, tool in sorted(scored, key=lambda item: item[:2], reverse=True) if score]


def _score(words: set[str], tool: McpTool) -> float:
    name = tool.spec.name.lower().replace("-", "_")
    parts, about = set(name.split("_")), set(_WORD.findall(tool.remote.description.lower()))
    return sum(
        5 if word in parts else 3 if len(word) > 2 and word in name else 1 if word in about else 0 for word in words
    )


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 200 else f"{line[:200]}…"
