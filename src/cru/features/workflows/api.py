"""`cru.fsm`: workflows, an agent's discipline as a table of states (docs/workflows.md)."""

from __future__ import annotations

import msgspec

from cru.core.api.arguments import text
from cru.core.api.host import BadArgument, Values, host
from cru.core.base.config.closest import did_you_mean
from cru.features.workflows.definition import read_definition
from cru.features.workflows.machine import WorkflowMachine
from cru.features.workflows.workflows import ensure_workflows, find_workflows


def define(spec: dict[str, object]) -> dict[str, object]:
    """fsm.define{name, initial, about?, limits = {legs=200, rounds}, states = {NAME = {instruction, tools = {globs}, to = {names}, back =
    {names}, exit = fn(ctx) -> true | false, "why" or {shell|call, timeout, about}, limits = {legs, rounds, on_limit}, final}}} -> {name,
    states}. Makes the workflow, its command `/NAME` and the tool `workflow`. Raises BadArgument for whatever does not fit.

    Example: cru.fsm.define({name="demo", initial="a", states={a={to={"b"}}, b={final=true}}}).name --> "demo"
    """
    here = host()
    try:
        definition = read_definition(spec)
    except BadArgument as error:
        error.message = f"{error.message} (plugin {here.plugin.name})"
        raise
    machine = WorkflowMachine(definition, here)
    workflows = ensure_workflows(here.session.parts)
    try:
        workflows.add(machine)
    except BadArgument:
        workflows.remove(machine)
        raise
    here.own(lambda: workflows.remove(machine))
    return {"name": definition.name, "states": list(definition.states)}


def list_() -> list[dict[str, object]]:
    """fsm.list() -> {{name, about, plugin, status, state}, ...}; status is "not started", running, stopped or done.

    Example: #cru.fsm.list() --> 0
    """
    workflows = find_workflows(host().session.parts.services)
    return [
        {
            "name": machine.name, "about": machine.definition.about, "plugin": machine.owner.plugin.name,
            "status": machine.record.status if machine.record is not None else "not started",
            "state": machine.record.state if machine.record is not None else None,
        }
        for machine in (workflows.machines.values() if workflows is not None else ())
    ]  # fmt: skip


def status(name: str) -> dict[str, object] | None:
    """fsm.status(name) -> {state, status, task, why, legs, rounds, total_legs, total_rounds, refused, history = {{from, to, at, note,
    by}, ...}}, or nil if it was never started in this context. Raises BadArgument for a workflow that there is not.

    Example: pcall(cru.fsm.status, "no such workflow") --> false
    """
    record = _find_machine("status", name).record
    data: dict[str, object] | None = None if record is None else msgspec.to_builtins(record)
    return data


async def start(name: str, task: str = "") -> None:
    """fsm.start(name, task?): it is in its initial state; the model is told with the next request. Raises NamespaceError in the middle
    of a run, BadArgument for a workflow that there is not.

    Example: pcall(cru.fsm.start, "no such workflow", "a task") --> false
    """
    machine = _find_machine("start", name)
    await machine.start(text("cru.fsm.start", "task", task), "script")
    _announce_states()


async def to(name: str, state: str, note: str = "") -> Values:
    """fsm.to(name, state, note?) -> true, or (false, why): as the agent moves it, through the guard. Raises BadArgument.

    Example: pcall(cru.fsm.to, "no such workflow", "done") --> false
    """
    where = "cru.fsm.to"
    machine = _find_machine("to", name)
    moved, reason = await machine.move(text(where, "state", state), text(where, "note", note), "script")
    if moved:
        _announce_states()
    return Values((True, None) if moved else (False, reason))


def stop(name: str, why: str = "") -> None:
    """fsm.stop(name, why?): it stays where it is, and binds nobody until `/NAME` goes on. Raises BadArgument.

    Example: pcall(cru.fsm.stop, "no such workflow") --> false
    """
    _find_machine("stop", name).stop(text("cru.fsm.stop", "why", why) or f"plugin {host().plugin.name} stopped it")


def _find_machine(function: str, name: str) -> WorkflowMachine:
    where = f"cru.fsm.{function}"
    workflows = find_workflows(host().session.parts.services)
    known = workflows.machines if workflows is not None else {}
    machine = known.get(text(where, "name", name))
    if machine is None:
        hint = f"there are {', '.join(known)}" if known else "none is defined"
        raise BadArgument(f"{where}: there is no workflow `{name}`", did_you_mean(name, known) or hint)
    return machine


def _announce_states() -> None:
    workflows = find_workflows(host().session.parts.services)
    if workflows is not None:
        workflows.is_model_informed = False
