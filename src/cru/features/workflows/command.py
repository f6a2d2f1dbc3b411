"""The command of a workflow: `/NAME TEXT` starts it, and a few words steer it."""

from __future__ import annotations

from cru.core.turn.commands import CommandResult
from cru.features.workflows.machine import WorkflowError, WorkflowMachine
from cru.features.workflows.texts import pluralize, unknown_state

HINT = "[TEXT | status | stop | to STATE | reset]"
GO_ON = "Go on with the workflow {name}."
MOVES = 5


async def run(machine: WorkflowMachine, typed: str) -> CommandResult:
    """Only whole words steer: `/deliver stop` stops it, `/deliver stop the leak` is a task. Raises WorkflowError."""
    typed, name = typed.strip(), machine.name
    machine.refresh()
    if typed == "status":
        return CommandResult(status(machine))
    if typed == "stop":
        return CommandResult(_stop(machine))
    if typed == "reset":
        machine.reset()
        return CommandResult(f"{name}: reset; `/{name} TEXT` starts it anew")
    verb, _, target = typed.partition(" ")
    if verb == "to" and len(target.split()) == 1:
        return CommandResult(await _move_to(machine, target.strip()))
    if typed:
        await machine.start(typed, "user")
        return CommandResult(prompt=typed)
    machine.go_on()
    return CommandResult(prompt=GO_ON.format(name=name))


def status(machine: WorkflowMachine) -> str:
    """Where it stands, in a few lines."""
    record, name = machine.record, machine.name
    if record is None:
        return f"{name}: not started; `/{name} TEXT` starts it"
    lines = [f"{name}: {record.status} in the state {record.state or '?'}"]
    if machine.here is None:
        lines.append(unknown_state(machine.definition, record, machine.problem))
    for label, text in (("task", record.task), ("why", record.why), ("last refused", record.refused)):
        if text:
            lines.append(f"  {label}: {text.strip().partition(chr(10))[0]}")
    here = f"{pluralize(record.legs, 'leg')}, {pluralize(record.rounds, 'round')}"
    lines.append(f"  in this state: {here}; in all: {pluralize(record.total_legs, 'leg')}")
    for move in record.history[-MOVES:]:
        lines.append(f"  {move.from_ or '(start)'} -> {move.to}, by {move.by}{f': {move.note}' if move.note else ''}")
    return "\n".join(lines)


def _stop(machine: WorkflowMachine) -> str:
    if not machine.running:
        raise WorkflowError(f"workflow {machine.name} is not running", f"`/{machine.name} status` says where it stands")
    machine.stop("you stopped it")
    return f"{machine.name}: stopped; its states bind nobody until `/{machine.name}` goes on"


async def _move_to(machine: WorkflowMachine, target: str) -> str:
    before = machine.record.state if machine.record is not None else ""
    state = await machine.put(target, "", "user")
    end = "it is done" if state.final else f"`/{machine.name}` or your next prompt goes on there"
    return f"{machine.name}: {before or '?'} -> {target}; {end}"
