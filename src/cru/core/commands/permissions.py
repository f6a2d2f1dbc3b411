"""/permissions: the rules in force, what would happen to a call, and taking back what was permitted. `cru permissions` shows the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.base.config.closest import did_you_mean
from cru.core.base.values.mcp_names import PREFIX, own_name
from cru.core.base.values.messages import ToolCall
from cru.core.base.values.visible import fold_blanks, visible
from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand
from cru.core.commands.mode import describe_sandbox
from cru.core.events.bus import Bus
from cru.core.guard.rules.command_parts import JudgedParts, judge_parts
from cru.core.guard.rules.gate import Gate, Verdict
from cru.core.guard.rules.later_runs import ASKED
from cru.core.guard.rules.listing import RuleRow, describe_rule, list_rules
from cru.core.guard.rules.modes import KINDS, MODE_DESCRIPTIONS, MODES, Decision, decide
from cru.core.guard.rules.paths import PROTECTED_NAMES
from cru.core.guard.rules.rules import OUTSIDE
from cru.core.tools.builtin import TABLE, BuiltInTool
from cru.core.tools.protocol import ArgumentError, Tool
from cru.core.turn.calls.permission import judge
from cru.core.turn.calls.requested_call import RequestedCall, normalize_paths
from cru.core.turn.commands import CommandResult
from cru.core.turn.parts import Parts

VERBS = "test TOOL DETAIL, or revoke RULE"
GUARDS = ("tool:before_call", "permission:requested")
"""Events at which handlers decide beside rules and mode."""
PROTECTED = (
    f"changing {', '.join(sorted(PROTECTED_NAMES))}, cru's home and shell start files; "
    "reading keys and tokens (.ssh/, .aws/, .netrc, …)"
)
LATER = (*sorted(ASKED), "*.code-workspace", "what git's settings have it run")
LATER_FEW = (
    ".envrc",
    ".vscode",
    ".idea",
    ".github/workflows",
    ".husky",
    ".mcp.json",
    ".npmrc",
    "AGENTS.md",
    "CLAUDE.md",
)
UNSEEN = "{name} is not there before plugins and servers are: judged as a tool of which nothing is known"
MOST_ARGUMENT = 1 << 20


class CallTrial(Struct, frozen=True):
    """What would happen to a call.

    parts: of a command, one by one
    note: what the judgement could not know, "" if there is nothing
    is_outside: it is a command that is to run outside of the sandbox
    """

    request: RequestedCall
    verdict: Verdict
    parts: JudgedParts | None = None
    note: str = ""
    is_outside: bool = False

    @property
    def name(self) -> str:
        """As rules have it."""
        return OUTSIDE if self.is_outside else self.request.call.name


async def permissions(context: CommandContext, words: str) -> CommandResult:
    """All rules; `test TOOL DETAIL`; `revoke RULE`. Raises BadCommand, NotStored."""
    verb, _, rest = words.strip().partition(" ")
    parts = context.session.parts
    if not verb:
        return CommandResult("\n".join(overview_lines(parts)))
    if verb == "test" and rest.strip():
        tool, _, detail = rest.strip().partition(" ")
        return CommandResult("\n".join(verdict_lines(parts.gate, try_call(parts, tool, _unquoted(detail.strip())))))
    if verb == "revoke" and rest.strip():
        return CommandResult("\n".join(revoke(parts, _unquoted(rest.strip()))))
    raise BadCommand(f"/permissions does not know {words!r}", f"/permissions, or /permissions {VERBS}")


def _unquoted(text: str) -> str:
    """As in a shell, where quotes hold the words together."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] in ("'", '"') and text[0] not in text[1:-1] else text


def overview_lines(parts: Parts, mode_from: str = "") -> Iterator[str]:
    """Mode, protected places, rules. mode_from: where the mode is set, "" if it may have been chosen in the session."""
    gate = parts.gate
    mode = gate.mode
    place = f"  ({mode_from})" if mode_from else ""
    yield f"mode {mode}: {MODE_DESCRIPTIONS[mode]}{place}"
    for decision, kinds in _kinds(mode).items():
        yield f"  {decision:<5}  {', '.join(kinds)}"
    if mode != "trust":
        yield f"a question in every mode but plan, which refuses it, and trust: {PROTECTED}; paths outside {gate.places.root};"
        yield f"  and changing what something runs or obeys later: {', '.join(LATER_FEW)}, … (`--json` has all)"
    yield describe_sandbox(parts)
    for folder in gate.places.folders:
        yield f"counts as part of the project: {_safe(folder)}"
    rows = list_rules(gate, (*TABLE, *parts.tools.names()))
    yield ""
    yield "deny beats ask beats allow:" if rows else "no rules: [permissions] in config.toml has them"
    yield from _table(rows)
    guards = guard_owners(parts.bus)
    if guards:
        yield f"asked beside the rules: {', '.join(map(_safe, guards))}"


def _kinds(mode: str) -> dict[Decision, list[str]]:
    kinds: dict[Decision, list[str]] = {}
    for kind in KINDS:
        kinds.setdefault(MODES[mode][kind], []).append(kind)
    return kinds


def _table(rows: Iterable[RuleRow]) -> Iterator[str]:
    rows = list(rows)
    width = min(max((len(_safe(row.rule)) for row in rows), default=0), 48)
    layers = max((len(_safe(row.layer)) for row in rows), default=0)
    for row in rows:
        yield f"  {row.decision:<5}  {_safe(row.rule):<{width}}  {_safe(row.layer):<{layers}}  {_safe(row.place)}".rstrip()
        if row.flaw:
            yield f"  {'':<5}  {_safe(row.flaw)}"


def guard_owners(bus: Bus) -> list[str]:
    """Whose handlers may decide about a call beside the rules."""
    registry = bus.registry.by_event
    return list(dict.fromkeys(handler.owner for event in GUARDS for handler in registry.get(event, ())))


def try_call(parts: Parts, tool: str, detail: str) -> CallTrial:
    """What the session's own judge decides, handlers aside. detail: what the call is about, or its arguments as JSON. Raises BadCommand."""
    if tool == OUTSIDE:
        return _try_outside(parts, detail)
    request, note = _requested(parts, own_name(tool) if tool.startswith("mcp__") else tool, detail)
    verdict = judge(parts, request)
    is_command = request.kind == "shell" and not request.args.get("input_to")
    judged = judge_parts(parts.gate, request.call.name, request.detail) if is_command else None
    return CallTrial(request, verdict, judged, note)


def _try_outside(parts: Parts, detail: str) -> CallTrial:
    """A command for the world outside of the sandbox, as one that confines judges it, whether there is one here or not."""
    request, _ = _requested(parts, "bash", detail)
    why = TABLE["bash"].why_ask[OUTSIDE]
    verdict = parts.gate.judge("bash", "shell", request.detail, why_ask=why, is_outside=True)
    judged = judge_parts(parts.gate, "bash", request.detail, why_outside=why)
    note = "" if parts.gate.outside is not None else "nothing confines commands here, so a run would judge it as `bash`"
    return CallTrial(request, verdict, judged, note, is_outside=True)


def _requested(parts: Parts, name: str, detail: str) -> tuple[RequestedCall, str]:
    tool = parts.tools.find(name)
    near = parts.tools.closest(name) if tool is None and not name.startswith(PREFIX) else None
    if near:
        raise BadCommand(f"there is no tool {name!r}", f"did you mean: {near}")
    args, call = _arguments(name, tool, detail), ToolCall("", name, "")
    if tool is None:
        return RequestedCall(call, args=args, detail=detail), UNSEEN.format(name=name)
    if not args and name not in TABLE:
        return RequestedCall(call, tool, tool.kind, args, detail=detail), ""
    if isinstance(tool, BuiltInTool):
        normalize_paths(args, parts.place)
    return RequestedCall(call, tool, tool.kind, args, detail=tool.subject(args), paths=tuple(tool.paths(args))), ""


def _arguments(name: str, tool: Tool | None, detail: str) -> dict[str, object]:
    """Raises BadCommand: the arguments do not fit the tool, or it needs some."""
    decoded = _decoded(detail)
    if decoded is not None and tool is not None:
        try:
            return tool.check(detail)
        except ArgumentError as error:
            raise BadCommand(f"bad arguments for {name}: {error}", "write them as the model would, as JSON") from error
    row = TABLE.get(name)
    if row is None or not row.subject:
        return {}
    if not detail and not row.default:
        raise BadCommand(f"{name} needs its {row.subject}", f"cru permissions test {name} '…'")
    return {row.subject: detail} if detail else {}


def _decoded(detail: str) -> dict[str, Any] | None:
    """The arguments of a call, if that is what it is."""
    if not detail.lstrip().startswith("{") or len(detail) > MOST_ARGUMENT:
        return None
    try:
        return msgspec.json.decode(detail, type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def verdict_lines(gate: Gate, trial: CallTrial) -> Iterator[str]:
    """The verdict, who decided, and the parts of a command."""
    request, verdict = trial.request, trial.verdict
    detail = _safe(request.detail)
    yield f"{verdict.decision:<5}  {_safe(trial.name)}{': ' if detail else ''}{detail}"
    yield f"  {_safe(verdict.reason)}"
    yield f"  decided by {describe_decider(gate, request, verdict)}"
    judged = trial.parts
    is_said = judged is None or verdict.decision == "allow" or judged.unclear in verdict.reason
    unclear = "" if judged is None or is_said else judged.unclear
    if judged is not None and (len(judged.parts) > 1 or unclear):
        yield "its parts, each by itself:"
        for part in judged.parts:
            rule = f"`{_safe(part.rule.text)}`" if part.rule is not None else _safe(part.reason)
            yield f"  {part.decision:<5}  {_safe(part.text)}  ({rule})"
        if judged.more:
            yield f"  … {judged.more} more"
        if unclear:
            yield f"  no allow rule with a star covers the whole: it has {unclear}"
    if trial.note:
        yield f"  {_safe(trial.note)}"


def describe_decider(gate: Gate, request: RequestedCall, verdict: Verdict) -> str:
    """The rule with its layer, file and line; the place; or the mode."""
    if verdict.source is not None:
        row = describe_rule(verdict.source, verdict.decision)
        return f"the rule `{_safe(row.rule)}` ({row.decision}): {', '.join(filter(None, (_safe(row.layer), _safe(row.place))))}"
    if verdict.needs_rule:
        return "the tool: no mode allows this, only a rule or a person"
    table = decide(gate.mode, request.kind, request.call.name)
    if verdict.decision == "ask" and table == "allow":
        return "the place that it touches"
    return f"the mode {gate.mode}"


def revoke(parts: Parts, text: str) -> Iterator[str]:
    """Take back what answers and hooks allow by this rule, here and everywhere. Raises BadCommand that says where a rule stands that is
    nobody's answer, NotStored."""
    gate, tools = parts.gate, (*TABLE, *parts.tools.names())
    rows = [row for row in list_rules(gate, tools) if row.rule == text]
    going = [row for row in rows if row.revocable]
    if not going:
        raise _not_revocable([row.rule for row in list_rules(gate, tools) if row.revocable], text, rows)
    gate.grants.remove(text)
    gate.grants.remove_of_hooks(text)
    for row in going:
        yield f"taken back: {row.decision} {_safe(row.rule)}  ({_safe(row.layer)})"
    for row in rows:
        if not row.revocable:
            yield f"stays: {row.decision} {_safe(row.rule)}  ({_safe(row.layer)}, {_safe(row.place)})"


def _not_revocable(kept: list[str], text: str, rows: list[RuleRow]) -> BadCommand:
    if not rows:
        hint = did_you_mean(text, kept) or ("`cru permissions` lists them" if kept else "no answer is kept here")
        return BadCommand(f"there is no rule `{_safe(text)}`", hint)
    row = rows[0]
    if row.by:
        return BadCommand(
            f"`{_safe(text)}` was given by {_safe(row.by)}, which alone takes back what forbids or asks",
            f"delete its entry: {row.place}" if row.place else "it ends with the session",
        )
    where = _safe(row.place or row.layer)
    return BadCommand(f"`{_safe(text)}` is no answer, but a rule of {where}", f"take it out there: {where}")


def _safe(text: str) -> str:
    return visible(fold_blanks(text.replace("\n", "\\n")))
