"""`cru hooks test`: runs the hooks of an event for real, against an event that did not happen."""

from __future__ import annotations

from typing import Any

import msgspec

from cru.events.journal import SkipKind
from cru.extensions.hooks import dry_run, synthetic_events
from cru.extensions.hooks.dry_run import DryRunResult
from cru.extensions.hooks.errors import NoEntry
from cru.extensions.hooks.inventory import HookInventory
from cru.extensions.hooks.model.status import EntryStatus
from cru.extensions.hooks.records import masked_json
from cru.extensions.hooks.report import query as spoken
from cru.extensions.hooks.report.wording import describe_firing, describe_mismatch, describe_outcome, describe_state
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, show
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.hooks.inventory import load_inventory
from cru.faces.cli.run_options import start_of
from cru.values.masking import masked

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
    there = load_inventory(parsed)
    wanted = spoken.find_event(args.words[1], there.dialects)
    if wanted is None:
        raise spoken.unknown(args.words[1], there.dialects)
    if not wanted.ours:
        raise spoken.NoSuchName(f"cru has no moment for {args.words[1]}", "`cru hooks check` says more")
    name = wanted.first
    given = _given(args, name)
    chosen = _chosen(there, wanted, args.value("--id", ""))
    tried = run_interruptible(_tried(parsed, there, synthetic_events.make_payload(name, given), chosen))
    if args.has("--json"):
        show(
            masked_json(
                {"event": name, "answer": tried.answer, "by": tried.by, "fired": tried.fired, "payload": tried.payload}
            )
        )
    else:
        for line in _told(there, name, chosen, tried):
            show(line)
    return DENIED if tried.answer.stops else 0


async def _tried(
    parsed: Parsed, there: HookInventory, payload: msgspec.Struct, chosen: list[EntryStatus]
) -> DryRunResult:
    """Dispatch it; hooks in Lua and Python get a session in which no turn runs."""
    ids = {one.entry.id for one in chosen}
    if all(one.entry.kind not in ("lua", "python") or one.state != "active" for one in chosen):
        return await dry_run.dispatch(there, payload, ids)
    from msgspec.structs import replace

    from cru.app import build

    built = build(replace(start_of(parsed, there.facts.context), hooks="none"))
    try:
        return await dry_run.dispatch(there, payload, ids, lambda hooks: hooks.bind(built.session.parts))
    finally:
        await built.session.close()
        await built.close()


def _given(args: CommandArguments, name: str) -> dict[str, Any]:
    """The fields of the payload that the command line gives."""
    given = _table(args, "--payload")
    if name.startswith(("tool:", "permission:", "output:")) and name != "tool:batch_completed":
        field = "tool" if name.startswith(("permission:", "output:")) else "name"
        tool = _tool(args.value("--tool", "bash"))
        given = {field: tool, "args": _table(args, "--input") or (BASH if tool == "bash" else {}), **given}
    elif args.value("--tool", "") or args.value("--input", ""):
        raise UsageProblem(f"`{name}` is about no tool", "leave --tool and --input out")
    if args.value("--prompt", ""):
        if name not in PROMPTS:
            raise UsageProblem(f"`{name}` has no prompt", "--payload gives any field of an event")
        given[PROMPTS[name]] = args.value("--prompt", "")
    return given


def _tool(word: str) -> str:
    """Our name of a tool; one that is unknown is a plugin's, if it is not nearly another. Raises NoSuchName."""
    from cru.config.closest import did_you_mean
    from cru.tools.builtin import TABLE

    known = spoken.find_tool(word, TABLE)
    hint = "" if known else did_you_mean(word, spoken.tools(TABLE))
    if hint:
        raise spoken.NoSuchName(f"there is no tool {word}", hint)
    return known or word


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


def _chosen(there: HookInventory, wanted: spoken.HookQuery, id: str) -> list[EntryStatus]:
    """The entries that listen to the event. Raises NoEntry."""
    those = [one for one in there.loaded.known if wanted.entry(one.entry, there.dialects[one.entry.dialect])]
    if not id:
        return those
    named = [one for one in those if one.entry.id.startswith(id)]
    if not named:
        from cru.config.closest import did_you_mean

        hint = did_you_mean(id, [one.entry.id for one in those]) or "`cru hooks list` shows all"
        raise NoEntry(f"no hook of this event has the id {id}", hint)
    return named


def _told(there: HookInventory, name: str, chosen: list[EntryStatus], tried: DryRunResult) -> list[str]:
    lines: list[str] = []
    for one in chosen:
        lines += _of_entry(there, one, tried)
    if not chosen:
        lines.append(f"no hook listens to {name}")
    if tried.line is not None:
        lines += [f"together: {one_line(masked(text))}" for text in describe_outcome(tried.line, there.loaded)]
    lines += [f"told: {one_line(masked(text))}" for text in tried.notices]
    for field, value in (tried.line.changed if tried.line is not None else {}).items():
        lines.append(f"  {field} is now {one_line(masked_json(value), 400)}")
    for text in tried.answer.context:
        lines.append(f"  for the model: {one_line(masked(text), 400)}")
    return lines


def _of_entry(there: HookInventory, one: EntryStatus, tried: DryRunResult) -> list[str]:
    entry, dialect = one.entry, there.dialects[one.entry.dialect]
    lines = [f"{entry.id} {one_line(masked(entry.label), 60)} ({entry.dialect} {entry.event}, {one_line(entry.where)})"]
    if one.state != "active":
        return [*lines, f"  not run: {describe_state(one, dialect)}"]
    fired = next((fired for fired in tried.fired if fired.id == entry.id), None)
    if fired is None:
        return [*lines, f"  did not fire: {_why_not(there, one, tried)}"]
    for what in ("stdin", "stdout", "stderr"):
        text = masked(getattr(fired, what).rstrip("\n"))
        lines += [f"  {what}: {line}" for line in text.split("\n")] if text else []
    return [*lines, f"  {one_line(masked(describe_firing(fired)))}"]


def _why_not(there: HookInventory, one: EntryStatus, tried: DryRunResult) -> str:
    heard = tried.line.heard if tried.line is not None else ()
    skipped = next((item for item in heard if item.owner == one.entry.owner and item.skipped), None)
    if skipped is None:
        return "this event is none of its moments"
    if tried.line is not None and skipped.skip is not None and skipped.skip.kind is SkipKind.MISMATCH:
        dialect = there.dialects[one.entry.dialect]
        return describe_mismatch(one.entry, dialect, tried.line.event, [skipped.skip.detail])
    return skipped.skipped
