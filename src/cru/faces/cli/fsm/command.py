"""`cru fsm`: the workflows that plugins define, drawn, and where each stands in a context (docs/workflows.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, say, show
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import context_name, home_path, start_of
from cru.values.errors import CruError

if TYPE_CHECKING:
    from pathlib import Path

    from cru.app import Built
    from cru.events.bus import Bus
    from cru.namespace.fsm.machine import WorkflowMachine

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
OF_ONE = ("show", "reset")
"""Those that need a name."""


class NoWorkflow(CruError):
    """There is none of that name."""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    verb = words[0] if words and words[0] in SWITCHES else ""
    known = SWITCHES[verb or "show"]
    args = CommandArguments("fsm", words, help=HELP, switches=known, verbs=tuple(SWITCHES), most=2)
    if args.show_help():
        return 0
    names = args.words[1:]
    if verb in OF_ONE and not names:
        raise UsageProblem(
            f"`cru fsm {verb}` needs a name", f"cru fsm {verb} NAME; `cru fsm status` says which there are"
        )
    if verb not in OF_ONE and names:
        raise args.wrong(f"`cru fsm {verb or 'list'}` does not take {names[0]}")
    if args.has("--json") and args.has("--mermaid"):
        raise UsageProblem("--json and --mermaid do not go together", f"cru fsm show {names[0]} --mermaid")
    machines, orphans = run_interruptible(_loaded(parsed, names[0] if verb == "reset" else ""))
    if verb == "reset":
        show(f"{names[0]}: its run in this context is forgotten")
    elif verb == "show":
        _show(_found(machines, names[0]), args)
    elif verb == "status":
        _status(machines, orphans, args.has("--json"))
    else:
        _list(machines, args.has("--json"))
    return 0


async def _loaded(parsed: Parsed, reset: str = "") -> tuple[dict[str, WorkflowMachine], dict[str, Any]]:
    """The workflows that the plugins define; and by name what is saved of others in this context. The run of `reset` is forgotten first.
    Raises NoWorkflow and ContextHeld."""
    from cru.app import build
    from cru.contexts.home import Home
    from cru.namespace import state
    from cru.namespace.fsm.workflows import find_workflows

    start = start_of(parsed, context_name(parsed, Home(home_path(parsed))))
    built = build(start, watch=_tell_warnings)
    parts = built.session.parts
    try:
        for opening in parts.lifecycle.opening:
            await opening(parts)
        workflows = find_workflows(parts)
        machines = {} if workflows is None else dict(workflows.machines)
        if workflows is not None:
            workflows.mind_tools()
        saved = _saved(parts.store.folder / state.FILE)
        if reset:
            with built.session.locked():
                _reset(built, reset, {*machines, *saved})
        return machines, {name: one for name, one in saved.items() if name not in machines}
    finally:
        await built.session.close()
        await built.close()


def _reset(built: Built, name: str, known: set[str]) -> None:
    from cru.namespace.fsm.record import save_record
    from cru.namespace.host import Host, Plugin, PluginSession

    if name not in known:
        from cru.config.closest import did_you_mean

        raise NoWorkflow(
            f"nothing is saved of a workflow {name}", did_you_mean(name, known) or "cru fsm status shows what is saved"
        )
    folder = built.store.folder
    save_record(Host(PluginSession(built.session.parts, folder), Plugin("cru", folder, "cru")), name, None)


def _tell_warnings(bus: Bus) -> None:
    from cru.events.stream import Notice, Published

    def notice(item: Published[Notice]) -> None:
        if item.payload.level != "info":
            say(f"cru: {item.payload.text}")

    bus.stream.subscribe(notice, Notice)


def _saved(path: Path) -> dict[str, Any]:
    """What plugins keep under `fsm:NAME` in a context, by name."""
    import msgspec

    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        say(f"cru: {path} cannot be read: {error}")
        return {}
    return {key[4:]: one for key, one in found.items() if key.startswith("fsm:")}


def _found(machines: dict[str, WorkflowMachine], name: str) -> WorkflowMachine:
    if name in machines:
        return machines[name]
    from cru.config.closest import did_you_mean

    raise NoWorkflow(
        f"there is no workflow {name}", did_you_mean(name, machines) or "cru fsm list shows those that are there"
    )


def _list(machines: dict[str, WorkflowMachine], as_json: bool) -> None:
    rows = [
        {"name": one.name, "plugin": one.owner.plugin.name, "about": one.definition.about, **_place(one)}
        for one in machines.values()
    ]
    if as_json:
        _json(rows)
        return
    if not rows:
        show("there are no workflows; a plugin defines one with cru.fsm.define (docs/workflows.md)")
    for row in rows:
        place = f"{row['status']}, {row['state']}" if row["state"] else row["status"]
        show(f"/{row['name']:<16} {place:<24} {one_line(row['about'])}".rstrip())


def _status(machines: dict[str, WorkflowMachine], orphans: dict[str, Any], as_json: bool) -> None:
    import msgspec

    from cru.namespace.fsm.command import status

    if as_json:
        records = {name: msgspec.to_builtins(one.record) for name, one in machines.items()}
        _json({**records, **orphans})
        return
    if not machines and not orphans:
        show("there are no workflows in this context")
    for one in machines.values():
        show(status(one))
    for name, record in orphans.items():
        found = record if isinstance(record, dict) else {}
        state, how = found.get("state") or "?", found.get("status", "running")
        binds = (
            f"; until it is back, or `cru fsm reset {name}`, the model's tools are denied" if how == "running" else ""
        )
        show(f"{name}: {how} in the state {state}; no plugin that is loaded defines it{binds}")


def _show(machine: WorkflowMachine, args: CommandArguments) -> None:
    from cru.faces.cli.fsm import drawing

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


def _json(value: Any) -> None:
    import msgspec

    show(msgspec.json.encode(value).decode())
