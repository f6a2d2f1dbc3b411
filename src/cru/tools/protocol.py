"""What a tool is, and what it is given while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from cru.values.errors import CruError
from cru.values.messages import ToolSpec

Kind = Literal["read", "write", "shell", "fetch", "memory", "message", "flow", "tool"]
Access = Literal["read", "write"]


class ToolError(CruError):
    """A tool could not do it; the text goes to the model as the result.

    ToolError
    ├── ArgumentError   the model's arguments do not fit the schema (names the field and why)
    └── ToolTimeout     it ran too long; `partial` holds the output so far
    """


class ArgumentError(ToolError):
    pass


class ToolTimeout(ToolError):
    def __init__(self, message: str, partial: str = "") -> None:
        super().__init__(message)
        self.partial = partial


class ToolResult(Struct, frozen=True):
    """What a tool gives back; `ends_turn` stops the turn without another request (call_user)."""

    content: str
    is_error: bool = False
    ends_turn: bool = False


class ToolContext(Struct):
    """What a running tool may use. `root` is the project root (absolute, resolved), `folder` the context's folder, `env` the
    environment for children (provider keys already removed), `emit` publishes output as it comes, `services` holds what the
    composition root lends to built-in tools, by name."""

    call_id: str
    root: Path
    folder: Path
    env: Mapping[str, str]
    emit: Callable[[str], None]
    services: Mapping[str, Any] = {}


class Tool(Protocol):
    """A tool. `parallel` says that several calls may run at the same time."""

    spec: ToolSpec
    kind: Kind
    parallel: bool
    source: str

    def check(self, arguments: str) -> dict[str, Any]:
        """Parse and validate the model's JSON text; raise ArgumentError that names the field and why."""
        ...

    def subject(self, args: Mapping[str, Any]) -> str:
        """What a permission rule's glob is matched against: the command, the path, the URL."""
        ...

    def paths(self, args: Mapping[str, Any]) -> Iterable[tuple[Access, str]]:
        """The paths that the call touches, as given by the model."""
        ...

    async def run(self, args: dict[str, Any], running: ToolContext) -> ToolResult: ...


class ToolSource(Protocol):
    """Somebody who brings tools: the built-in set, an extension, an MCP server."""

    def tools(self) -> Iterable[Tool]: ...
