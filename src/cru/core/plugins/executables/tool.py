"""A tool of a program, as the model and the engine see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from cru.core.base.values.messages import ToolSpec
from cru.core.plugins.executables.calls import ProgramContext, call_tool
from cru.core.plugins.executables.executable import Executable, ToolSchema
from cru.core.tools.arguments import decode_object
from cru.core.tools.preview import show_arguments
from cru.core.tools.protocol import Access, Kind, ToolContext, ToolResult


class ExecutableTool:
    """The program reads its arguments itself: only that they are an object is looked at here. A tool that steers (`flow_control`) is not
    run: its call ends the turn with what it says to the user, or lets the agent go on."""

    hidden = False
    outside = True  # another process: what it does to the context it does as a `cru` of its own

    def __init__(self, executable: Executable, schema: ToolSchema, where: ProgramContext) -> None:
        self.spec = ToolSpec(schema.name, schema.description, schema.parameters)
        self.kind: Kind = "flow" if schema.flow_control else "tool"
        self.source = executable.name
        self.parallel = schema.parallel and not schema.flow_control
        self._executable = executable
        self._schema = schema
        self._where = where

    def check(self, arguments: str | Mapping[str, object]) -> dict[str, object]:
        """Raises ArgumentError."""
        return decode_object(arguments)

    def subject(self, args: Mapping[str, object]) -> str:
        """What the plugin says that a call is about (`summary_params`)."""
        return " ".join(str(args[name]) for name in self._schema.summary_params if name in args)

    def preview(self, args: Mapping[str, object]) -> str:
        """The whole call: what `summary_params` names first, then what the schema knows."""
        known = self.spec.parameters.get("properties")
        return show_arguments(args, (*self._schema.summary_params, *(known if isinstance(known, Mapping) else ())))

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        return ()

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        """Raises ToolTimeout."""
        if self._schema.flow_control:
            return ToolResult(_flow_text(self._schema, args), ends_turn=self._schema.ends_turn)
        where = replace(self._where, env=running.env, context=running.folder.name)
        result = await call_tool(self._executable, self._schema, args, where, running.emit)
        missing = running.secrets.explain("", result.content) if result.is_error else ""
        return replace(result, content=f"{result.content}\n{missing}") if missing else result


def _flow_text(schema: ToolSchema, args: Mapping[str, object]) -> str:
    """What a call that steers says: its `message`, else what its summary would show, else its first text."""
    texts = (args.get(name) for name in ("message", *schema.summary_params, *args))
    return next((text for text in texts if isinstance(text, str)), "")
