"""The tool `workflow`: how the agent moves on. It is offered as long as any workflow is defined, and always the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from cru.core.api.host import NamespaceError
from cru.core.base.values.messages import ToolSpec
from cru.core.tools import arguments
from cru.core.tools.protocol import Access, Kind, ToolContext, ToolError, ToolResult
from cru.features.workflows.machine import WorkflowMachine
from cru.features.workflows.texts import TOOL

SOURCE = "cru.fsm"
SPEC = ToolSpec(
    TOOL,
    "Leave the current state of the workflow that you work in. The state's check runs first; if it does not pass, you stay and are told "
    "why. Call it alone or last: calls after it in the same reply are refused.",
    {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "The state to go to.", "minLength": 1},
            "note": {"type": "string", "description": "What was done, in a sentence."},
            "workflow": {"type": "string", "description": "Which workflow, if several are running."},
        },
        "required": ["to"],
        "additionalProperties": False,
    },
)


class WorkflowArguments(Struct, frozen=True, forbid_unknown_fields=True):
    to: arguments.Some
    note: str = ""
    workflow: str = ""


class WorkflowTool:
    spec = SPEC
    kind: Kind = "flow"
    parallel = False
    source = SOURCE

    def __init__(self, running: Callable[[], list[WorkflowMachine]]) -> None:
        self._running = running

    def check(self, raw: str | Mapping[str, object]) -> dict[str, object]:
        return arguments.check_arguments(WorkflowArguments, raw)

    def subject(self, args: Mapping[str, object]) -> str:
        return str(args.get("to", ""))

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        return ()

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        """Raises ToolError if nothing can be moved."""
        parsed = arguments.parse_arguments(WorkflowArguments, args)
        machine = self._choose_workflow(parsed)
        try:
            moved, text = await machine.move(parsed.to, parsed.note, emit=running.emit)
        except NamespaceError as error:
            raise ToolError(error.message) from error
        return ToolResult(text, is_error=not moved)

    def _choose_workflow(self, parsed: WorkflowArguments) -> WorkflowMachine:
        """The workflow that is meant: the one named, the only one, or the only one that can go there."""
        running = self._running()
        if not running:
            raise ToolError("no workflow is running; only the user starts one")
        fitting = [machine for machine in running if parsed.workflow in ("", machine.name)]
        if not fitting:
            raise ToolError(f"no workflow {parsed.workflow} is running; running: {', '.join(m.name for m in running)}")
        if len(fitting) > 1:
            going = [machine for machine in fitting if machine.here is not None and parsed.to in machine.here.ways]
            fitting = going or fitting
        if len(fitting) > 1:
            raise ToolError(
                f"several workflows are running; name one in `workflow`: {', '.join(m.name for m in fitting)}"
            )
        return fitting[0]
