"""`cru fsm`: the workflows that plugins define, drawn, and where each stands in a context (docs/workflows.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cru.core.api import state
from cru.core.api.host import Host, Plugin, PluginSession
from cru.core.api.state import WORKFLOW
from cru.core.base.config.closest import did_you_mean
from cru.core.base.files import read_json
from cru.core.base.values.errors import CruError
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, say, show
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.fsm import drawing
from cru.faces.cli.run_options import context_name, open_home, start_of
from cru.faces.cli.session_run import open_session, say_notice

if TYPE_CHECKING:
    from pathlib import Path

    from cru.core.compose import SessionBundle
    from cru.features.workflows.machine import WorkflowMachine

HELP = """\
cru fsm list              every workflow: its command, what it is about, where it stands
cru fsm status            where each workflow of the context stands, and how it came there (--json)
cru fsm show NAME         draw it; `*` marks the current state
cru fsm show NAME --mermaid | --json
cru fsm reset NAME        forget its run in the context, also when no plugin defines it any more
The plugins are loaded, no model is asked. `cru -C CONTEXT fsm status` looks at another context.
"""
SWITCHES: dict[str, tuple[str, ...]] = {
    "list": ("--json",), "status": ("--json",), "show": ("--json", "--mermaid"), "reset": (),
}  # fmt: skip
NAMED = ("show", "reset")
"""Those that need a name."""


class UnknownWorkflow(CruError):
    """There is none of that name."""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    verb = words[0] if words and words[0] in SWITCHES else ""
    known = SWITCHES[verb or "show"]
    args = CommandArguments("fsm", words, help=HELP, switches=known, verbs=tuple(SWITCHES), most=2)
    if args.show_help():
        return 0
    names = args.words[1:]
    if verb in NAMED and not names:
        raise UsageProblem(
            f"`cru fsm {verb}` needs a name", f"cru fsm {verb} NAME; `cru fsm status` says which there are"
        )
    if verb not in NAMED and names:
        raise args.wrong(f"`cru fsm {verb or 'list'}` does not take {names[0]}")
    if args.has("--json") and args.has("--mermaid"):
        raise UsageProblem("--json and --mermaid do not go together", f"cru fsm show {names[0]} --mermaid")
    machines, orphans = run_interruptible(_load(parsed, names[0] if verb == "reset" else ""))
    if verb == "reset":
        show(f"{names[0]}: its run in this context is forgotten")
    elif verb == "show":
        _show(_find(machines, names[0]), args)
    elif verb == "status":
        _status(machines, orphans, args.has("--json"))
    else:
        _list(machines, args.has("--json"))
    return 0


async def _load(parsed: Parsed, reset: str = "") -> tuple[dict[str, WorkflowMachine], dict[str, object]]:
    """The workflows that the plugins define; and by name what is saved of others in this context. The run of `reset` is forgotten first.
    Raises UnknownWorkflow and ContextHeld."""
    from cru.features.workflows.workflows import find_workflows

    start = start_of(parsed, context_name(parsed, open_home(parsed)))
    async with open_session(start, say_notice) as built:
        parts = built.session.parts
        for opening in parts.services.lifecycle.opening:
            await opening(parts)
        workflows = find_workflows(parts.services)
        machines = {} if workflows is None else dict(workflows.machines)
        if workflows is not None:
            workflows.warn_unknown_tools()
        saved = _read_saved(parts.store.folder / state.FILE)
        if reset:
            with built.session.locked():
                _reset(built, reset, {*machines, *saved})
        return machines, {name: record for name, record in saved.items() if name not in machines}


def _reset(built: SessionBundle, name: str, known: set[str]) -> None:
    from cru.features.workflows.record import save_record

    if name not in known:
        raise UnknownWorkflow(
            f"nothing is saved of a workflow {name}", did_you_mean(name, known) or "cru fsm status shows what is saved"
        )
    folder = built.store.folder
    save_record(Host(PluginSession(built.session.parts, folder), Plugin("cru", folder, "cru")), name, None)


def _read_saved(path: Path) -> dict[str, object]:
    """The workflows that are saved in a context, by name."""
    try:
        values = read_json(path, dict[str, object])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        say(f"cru: {path} cannot be read: {error}")
        return {}
    return {key.removeprefix(WORKFLOW): value for key, value in values.items() if key.startswith(WORKFLOW)}


def _find(machines: dict[str, WorkflowMachine], name: str) -> WorkflowMachine:
    if name in machines:
        return machines[name]
    raise UnknownWorkflow(
        f"there is no workflow {name}", did_you_mean(name, machines) or "cru fsm list shows those that are there"
    )


def _list(machines: dict[str, WorkflowMachine], as_json: bool) -> None:
    rows = [
        {
            "name": machine.name,
            "plugin": machine.owner.plugin.name,
            "about": machine.definition.about,
            **_place(machine),
        }
        for machine in machines.values()
    ]
    if as_json:
        _json(rows)
        return
    if not rows:
        show("there are no workflows; a plugin defines one with cru.fsm.define (docs/workflows.md)")
    for row in rows:
        place = f"{row['status']}, {row['state']}" if row["state"] else row["status"]
        show(f"/{row['name']:<16} {place:<24} {one_line(row['about'])}".rstrip())


def _status(machines: dict[str, WorkflowMachine], orphans: dict[str, object], as_json: bool) -> None:
    from cru.features.workflows.command import status

    if as_json:
        records = {name: msgspec.to_builtins(machine.record) for name, machine in machines.items()}
        _json({**records, **orphans})
        return
    if not machines and not orphans:
        show("there are no workflows in this context")
    for machine in machines.values():
        show(status(machine))
    for name, record in orphans.items():
        fields = record if isinstance(record, dict) else {}
        state, how = fields.get("state") or "?", fields.get("status", "running")
        binds = (
            f"; until it is back, or `cru fsm reset {name}`, the model's tools are denied" if how == "running" else ""
        )
        show(f"{name}: {how} in the state {state}; no plugin that is loaded defines it{binds}")


def _show(machine: WorkflowMachine, args: CommandArguments) -> None:
    if args.has("--mermaid"):
        show(drawing.draw_mermaid(machine.definition, _current(machine)))
    elif args.has("--json"):
        _json(
            {
                **drawing.definition_data(machine.definition),
                "plugin": machine.owner.plugin.name,
                "current": _place(machine),
            }
        )
    else:
        show(drawing.draw_text(machine.definition, _current(machine)))


def _current(machine: WorkflowMachine) -> str:
    return machine.record.state if machine.record is not None else ""


def _place(machine: WorkflowMachine) -> dict[str, Any]:
    record = machine.record
    if record is None:
        return {"status": "not started", "state": None}
    return {"status": record.status, "state": record.state}


def _json(value: object) -> None:
    show(msgspec.json.encode(value).decode())
