"""What the model and people read about a workflow."""

from __future__ import annotations

from cru.features.workflows.definition import Definition, WorkflowState
from cru.features.workflows.record import WorkflowRecord

TOOL = "workflow"
ALWAYS_ALLOWED = (TOOL, "call_user")
"""Tools that every state allows: the way on, and the way to the user."""


def brief(definition: Definition, state: WorkflowState, task: str = "") -> str:
    """Where the agent is, what to do there, and the way out: beside each prompt, and when a state is entered."""
    lines = [f"[workflow {definition.name}: you are in the state {state.name}]"]
    if task:
        lines.append(f"Task: {task}")
    if state.instruction.strip():
        lines.append(state.instruction.strip())
    if state.tools is not None:
        lines.append(f"Tools in this state: {list_tools(state)}.")
    return "\n".join([*lines, *transitions(state)])


def transitions(state: WorkflowState) -> list[str]:
    """How to move on."""
    lines = []
    if state.to:
        check = f" Before that {state.guard.words()}: it is checked." if state.guard is not None else ""
        lines.append(f"When this state's work is done, call the tool `{TOOL}` with `to` = {_one_of(state.to)}.{check}")
    if state.back:
        lines.append(f"To go back, call `{TOOL}` with `to` = {_one_of(state.back)}.")
    return lines


def entry_text(definition: Definition, state: WorkflowState) -> str:
    """What a successful move tells."""
    if not state.final:
        return brief(definition, state)
    end = f"[workflow {definition.name}: done, in the state {state.name}]"
    return "\n".join(filter(None, (end, state.instruction.strip())))


def continuation(definition: Definition, state: WorkflowState, record: WorkflowRecord) -> str:
    """The continuation when the agent ended its leg and the workflow is not over."""
    first = record.refused.strip().partition("\n")[0]
    lines = [
        f"[workflow {definition.name}] You stopped, but the workflow is not over: the state {state.name} is not left yet.",
        state.instruction.strip(),
        f"Last time it was refused: {first}" if first else "",
        *transitions(state),
        "If you cannot go on without the user, say why with the tool `call_user`.",
    ]
    return "\n".join(filter(None, lines))


def denial(definition: Definition, state: WorkflowState) -> str:
    return f"state {state.name} of workflow {definition.name} allows {list_tools(state)}"


def unknown_state(definition: Definition, record: WorkflowRecord, problem: str) -> str:
    """Why nobody knows where the workflow stands, and what the user may do."""
    name = definition.name
    what = f"what is saved of it is not understood ({problem})" if problem else ""
    missing = f"it was in the state {record.state}, which its definition no longer has"
    what = what or (missing if record.state else "what was saved of it was damaged, so its state is not known")
    return f"workflow {name}: {what}; choose with `/{name} to STATE` or `/{name} reset`"


def undefined_workflow(name: str, record: WorkflowRecord, context: str) -> str:
    """Why the model's tools are denied although no plugin that is loaded knows this workflow, and what the user may do."""
    where = f"in the state {record.state}" if record.state else "in a state that nobody knows"
    return (
        f"workflow {name} is running {where}, and no plugin that is loaded defines it: mend or enable its plugin, or forget the run "
        f"with `cru -C {context} fsm reset {name}`"
    )


def pluralize(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def list_tools(state: WorkflowState) -> str:
    return ", ".join([*(state.tools or ()), *(name for name in ALWAYS_ALLOWED if name not in (state.tools or ()))])


def _one_of(names: tuple[str, ...]) -> str:
    return " or ".join(f'"{name}"' for name in names)
