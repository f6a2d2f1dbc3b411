"""Tools of MCP servers as the engine sees them: `mcp_<server>_<tool>`, asked about unless a rule says otherwise. What a server says of
them is a stranger's text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cru.core.base.files import unsynced
from cru.core.base.files.atomic import private_opener
from cru.core.base.files.regular import make_private_folder
from cru.core.base.values.mcp_names import join_names
from cru.core.base.values.messages import ToolSpec
from cru.core.tools.arguments import decode_object
from cru.core.tools.files import IMAGE_SUFFIXES
from cru.core.tools.images import keep_images
from cru.core.tools.protocol import (
    OUTPUT_FOLDER,
    Access,
    ArgumentError,
    Kind,
    ToolContext,
    ToolError,
    ToolResult,
    ToolTimeout,
)
from cru.features.mcp import CallTimeout, McpError
from cru.features.mcp.listing import clean_text

if TYPE_CHECKING:
    from cru.features.mcp.connection import ServerConnection
    from cru.features.mcp.listing import RemoteTool

OWNER = "mcp:"
"""What the source of such a tool begins with."""


class McpTool:
    """One tool of a server. `hidden`: the model must search for it first."""

    outside = True

    def __init__(self, server: ServerConnection, remote: RemoteTool) -> None:
        name = join_names(server.name, remote.name)
        about = f"(MCP server {server.name}) {remote.description}".rstrip()
        self.spec = ToolSpec(name, about, remote.schema)
        self.kind: Kind = "query" if remote.reads_only and server.definition.server.trust_read_only else "tool"
        self.source = f"{OWNER}{server.name}"
        self.hidden = False
        self.parallel = remote.reads_only  # what changes something is to see what the call before it changed
        self.remote = remote
        self._server = server

    @property
    def owner(self) -> tuple[str, str]:
        """The server, and the tool's name there."""
        return self._server.name, self.remote.name

    def check(self, arguments: str | Mapping[str, object]) -> dict[str, object]:
        """Only that they are an object with what must be there; the server looks at the rest. Raises ArgumentError."""
        decoded = decode_object(arguments)
        required = self.remote.schema.get("required")
        missing = [name for name in required if name not in decoded] if isinstance(required, list) else []
        if missing:
            raise ArgumentError(f"`{missing[0]}`: it is missing")
        return decoded

    def subject(self, args: Mapping[str, object]) -> str:
        """The arguments, as one line of JSON."""
        return msgspec.json.encode(args, enc_hook=str).decode() if args else ""

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        return ()

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        """Raises ToolError."""

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            part = f"{progress:g}" + (f" of {total:g}" if total else "")
            running.emit(f"{clean_text(message, 200) if message else self.remote.name}: {part}\n")

        saver = FileSaver(running.folder, running.call_id)
        try:
            answer = await self._server.call(self.remote.name, args, saver, tell)
        except CallTimeout as error:
            raise ToolTimeout(error.message) from error
        except McpError as error:
            raise ToolError(error.message, error.hint) from error
        if not saver.images:
            return ToolResult(answer.text, answer.is_error)
        return ToolResult(answer.text, answer.is_error, images=keep_images(saver.images, running.folder))


def make_tools(server: ServerConnection) -> tuple[dict[str, McpTool], list[str]]:
    """Return the tools of a server by their names for the model, and why others are left out: two may get one name."""
    tools: dict[str, McpTool] = {}
    problems: list[str] = []
    for remote in server.facts.tools:
        tool = McpTool(server, remote)
        taken = tools.setdefault(tool.spec.name, tool)
        if taken is not tool:
            problems.append(
                f"the tool {remote.name} of {server.name} is left out: for the model it has the name of {taken.remote.name}"
            )
    return tools, problems


class FileSaver:
    """Saves what is no text beside the saved outputs of a context; these are removed together.

    images: the bytes of what was saved as an image, by name
    """

    def __init__(self, context: Path, label: str) -> None:
        self.images: dict[str, bytes] = {}
        self._folder = context / OUTPUT_FOLDER
        self._label = "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "_" for char in label)[
            :80
        ]

    def __call__(self, content: bytes, suffix: str) -> Path | None:
        """None if it cannot be written: a full disk does not end a turn."""
        try:
            make_private_folder(self._folder)
            for number in range(1, 1000):
                path = self._folder / f"mcp_{self._label}-{number}{suffix}"
                try:
                    with open(path, "xb", opener=private_opener) as file:
                        file.write(content)
                except FileExistsError:  # providers reuse call ids
                    continue
                if suffix in IMAGE_SUFFIXES:
                    self.images[path.name] = content
                unsynced.add(os.fspath(path))
                return path
        except OSError:
            pass
        return None
