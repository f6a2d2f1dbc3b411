"""`cru hooks test`: runs the hooks of an event for real, against an event that did not happen."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from cru.core.base.config.closest import did_you_mean
from cru.core.compose import build, load_settings
from cru.core.compose.sandbox import project_sandbox
from cru.core.events.journal import SkipKind
from cru.core.hooks import dry_run, synthetic_events
from cru.core.hooks.dry_run import DryRunResult
from cru.core.hooks.errors import NoEntry
from cru.core.hooks.inventory import HookInventory
from cru.core.hooks.model.status import EntryStatus
from cru.core.hooks.records import masked_json
from cru.core.hooks.report import query as spoken
from cru.core.hooks.report.wording import describe_firing, describe_mismatch, describe_outcome, describe_state
from cru.core.tools.builtin import TABLE
from cru.core.tools.secret_variables import masked
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import complain, one_line, show
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.hooks.inventory import load_inventory
from cru.faces.cli.run_options import start_of
from cru.faces.cli.session_run import divert_prints

HELP = """\
cru hooks test EVENT             run the hooks of an event for real; no turn, no model, and no tool is called
  --tool NAME --input JSON       for events of tools: the call (default: bash, {"command": "true"})
  --prompt TEXT                  for events of prompts
  --payload JSON                 any other fields of the event (docs/events.md)
  --id ID                        one hook only; the beginning of its id is enough
  --json                         the same for programs
EVENT and NAME in the words of any system. Exit status: 3 if the event was denied or the turn halted, else 0.
"""
VALUES = ("--tool", "--input", "--prompt", "--payload", "--id")
DENIED = 3
PROMPTS = {"message:received": "content", "message:before_send": "prompt"}
BASH = {"command": "true"}


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """Raises NoSuchName, BadPayload, NoEntry, UsageProblem."""
    args = CommandArguments(
        "hooks", ("test", *words), values=VALUES, help=HELP, switches=("--json",), verbs=("test",), most=2
    )
    if args.show_help():
        return 0
    if len(args.words) < 2:
        raise UsageProblem("`cru hooks test` needs an event", "such as: cru hooks test PreToolUse --tool bash")
    inventory = load_inventory(parsed)
    query = spoken.find_event(args.words[1], inventory.dialects)
    if query is None:
        raise spoken.unknown_name(args.words[1], inventory.dialects)
    if not query.ours:
        raise spoken.NoSuchName(f"cru has no moment for {args.words[1]}", "`cru hooks check` says more")
    name = query.first
    fields = _payload_fields(args, name)
    statuses = _select(inventory, query, args.value("--id", ""))
    result = run_interruptible(_dispatch(parsed, inventory, synthetic_events.make_payload(name, fields), statuses))
    if args.has("--json"):
        show(
            masked_json(
                {
                    "event": name,
                    "answer": result.answer,
                    "by": result.by,
                    "fired": result.fired,
                    "payload": result.payload,
                }
            )
        )
    else:
        for line in _render(inventory, name, statuses, result):
            show(line)
    return DENIED if result.answer.stops else 0


async def _dispatch(
    parsed: Parsed, inventory: HookInventory, payload: msgspec.Struct, statuses: list[EntryStatus]
) -> DryRunResult:
    """Dispatch it; hooks in Lua and Python get a session in which no turn runs."""
    ids = {status.entry.id for status in statuses}
    if all(status.entry.kind not in ("lua", "python") or status.state != "active" for status in statuses):
        start = start_of(parsed, inventory.facts.context)
        async with project_sandbox(start, load_settings(start)[0], complain) as inventory.facts.confine:
            return await dry_run.dispatch(inventory, payload, ids)
    built = build(replace(start_of(parsed, inventory.facts.context), hooks="none"))
    built.session.parts.services.face.divert_prints = divert_prints
    try:
        return await dry_run.dispatch(inventory, payload, ids, lambda hooks: hooks.bind(built.session.parts))
    finally:
        await built.session.close()
        await built.close()


def _payload_fields(args: CommandArguments, name: str) -> dict[str, Any]:
    """The fields of the payload that the command line gives."""
    fields = _table(args, "--payload")
    if name.startswith(("tool:", "permission:", "output:")) and name != "tool:batch_completed":
        field = "tool" if name.startswith(("permission:", "output:")) else "name"
        tool = _tool(args.value("--tool", "bash"))
        fields = {field: tool, "args": _table(args, "--input") or (BASH if tool == "bash" else {}), **fields}
    elif args.value("--tool", "") or args.value("--input", ""):
        raise UsageProblem(f"`{name}` is about no tool", "leave --tool and --input out")
    if args.value("--prompt", ""):
        if name not in PROMPTS:
            raise UsageProblem(f"`{name}` has no prompt", "--payload gives any field of an event")
        fields[PROMPTS[name]] = args.value("--prompt", "")
    return fields


def _tool(word: str) -> str:
    """Our name of a tool; one that is unknown is a plugin's, if it is not nearly another. Raises NoSuchName."""
    name = spoken.find_tool(word, TABLE)
    hint = "" if name else did_you_mean(word, spoken.list_tools(TABLE))
    if hint:
        raise spoken.NoSuchName(f"there is no tool {word}", hint)
    return name or word


def _table(args: CommandArguments, flag: str) -> dict[str, Any]:
    text = args.value(flag, "")
    if not text:
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageProblem(f"{flag} is not JSON: {error}", 'such as {"command": "ls"}') from error
    if not isinstance(value, dict):
        raise UsageProblem(f"{flag} is not a JSON object", 'such as {"command": "ls"}')
    return value


def _select(inventory: HookInventory, query: spoken.HookQuery, id: str) -> list[EntryStatus]:
    """The entries that listen to the event. Raises NoEntry."""
    statuses = [
        status
        for status in inventory.loaded.known
        if query.entry(status.entry, inventory.dialects[status.entry.dialect])
    ]
    if not id:
        return statuses
    matching = [status for status in statuses if status.entry.id.startswith(id)]
    if not matching:
        hint = did_you_mean(id, [status.entry.id for status in statuses]) or "`cru hooks list` shows all"
        raise NoEntry(f"no hook of this event has the id {id}", hint)
    return matching


def _render(inventory: HookInventory, name: str, statuses: list[EntryStatus], result: DryRunResult) -> list[str]:
    lines: list[str] = []
    for status in statuses:
        lines += _render_entry(inventory, status, result)
    if not statuses:
        lines.append(f"no hook listens to {name}")
    if result.line is not None:
        lines += [f"together: {one_line(masked(text))}" for text in describe_outcome(result.line, inventory.loaded)]
    lines += [f"told: {one_line(masked(text))}" for text in result.notices]
    for field, value in (result.line.changed if result.line is not None else {}).items():
        lines.append(f"  {field} is now {one_line(masked_json(value), 400)}")
    for text in result.answer.context:
        lines.append(f"  for the model: {one_line(masked(text), 400)}")
    return lines


def _render_entry(inventory: HookInventory, status: EntryStatus, result: DryRunResult) -> list[str]:
    entry, dialect = status.entry, inventory.dialects[status.entry.dialect]
    lines = [f"{entry.id} {one_line(masked(entry.label), 60)} ({entry.dialect} {entry.event}, {one_line(entry.where)})"]
    if status.state != "active":
        return [*lines, f"  not run: {describe_state(status, dialect)}"]
    record = next((record for record in result.fired if record.id == entry.id), None)
    if record is None:
        return [*lines, f"  did not fire: {_why_not(inventory, status, result)}"]
    for what in ("stdin", "stdout", "stderr"):
        text = masked(getattr(record, what).rstrip("\n"))
        lines += [f"  {what}: {line}" for line in text.split("\n")] if text else []
    return [*lines, f"  {one_line(masked(describe_firing(record)))}"]


def _why_not(inventory: HookInventory, status: EntryStatus, result: DryRunResult) -> str:
    heard = result.line.heard if result.line is not None else ()
    skipped = next((item for item in heard if item.owner == status.entry.owner and item.skipped), None)
    if skipped is None:
        return "this event is none of its moments"
    if result.line is not None and skipped.skip is not None and skipped.skip.kind is SkipKind.MISMATCH:
        dialect = inventory.dialects[status.entry.dialect]
        return describe_mismatch(status.entry, dialect, result.line.event, [skipped.skip.detail])
    return skipped.skipped
