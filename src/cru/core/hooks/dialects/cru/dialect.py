"""cru's own hooks: every event of the catalog, flat entries, answers in our own words."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cru.core.base.values.mcp_names import double_name
from cru.core.events.catalog import ALIASES, BY_NAME, CATALOG, EventRow
from cru.core.events.stamp import Event
from cru.core.guard.rules import paths, rules
from cru.core.guard.rules.modes import KINDS
from cru.core.hooks.dialects import FOOTPRINTS
from cru.core.hooks.dialects.cru import output
from cru.core.hooks.dialects.cru.config import read_entries
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import (
    ConfigFormat,
    Dialect,
    EventMapping,
    Events,
    LaunchRules,
    Matching,
    ParsedFile,
)
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing import common
from cru.core.hooks.parsing.bounded_regex import finds_any
from cru.core.turn.turn import TYPED_SOURCES

# Names of Claude and Crush → our event, and the values of its identifier, or the sources of a prompt, that they mean.
SYNONYMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "SessionStart": ("session:started", ()),
    "SessionEnd": ("session:ended", ()),
    "UserPromptSubmit": ("message:received", TYPED_SOURCES),
    "PreToolUse": ("tool:before_call", ()),
    "PermissionRequest": ("permission:requested", ()),
    "PermissionResult": ("permission:resolved", ()),
    "PostToolUse": ("tool:completed", ()),
    "PostToolUseFailure": ("tool:failed", ()),
    "PostToolBatch": ("tool:batch_completed", ()),
    "PreCompact": ("context:overflow", ("auto", "manual")),
    "PostCompact": ("session:compacted", ()),
    "TurnStart": ("leg:started", ()),
    "TurnEnd": ("turn:complete", ()),
    "Stop": ("turn:complete", ("done",)),
    "StopFailure": ("turn:complete", ("error",)),
    "Interrupt": ("turn:complete", ("interrupted",)),
}
_FOLDED = {name.lower(): name for name in (*SYNONYMS, "SubagentStart", "SubagentStop")}
# What matchers can look at, where that is a closed list.
SUBJECTS: dict[str, tuple[str, ...]] = {
    "turn:complete": ("done", "cancelled", "halted", "interrupted", "error"),
    "context:overflow": ("auto", "manual", "none"),
}
# Our tools → their kind in rules, and the argument that a rule's glob is about.
DETAILS: dict[str, tuple[str, str]] = {
    "bash": ("shell", "command"), "fetch": ("fetch", "url"), "read": ("read", "file_path"), "ls": ("read", "path"),
    "glob": ("read", "path"), "grep": ("read", "path"), "write": ("write", "file_path"), "edit": ("write", "file_path"),
}  # fmt: skip


def _read(source: HookSource, below: Sequence[ParsedFile], facts: SessionFacts) -> ParsedFile:
    return read_entries(source, EVENTS, canonical)


def canonical(event: str) -> str:
    """The name as the table has it: other systems' names in any spelling."""
    return event if event in EVENTS else _FOLDED.get(event.replace("_", "").lower(), event)


def _matcher_fits(entry: HookEntry, event: Event, subject: str) -> bool:
    """An unanchored regular expression on what the event is about, in our words."""
    words = (subject, double_name(subject))  # a tool of an MCP server goes by either name
    return not entry.matcher or finds_any(entry.matcher, words)


def _stdin(mapping: EventMapping, event: Event, facts: SessionFacts) -> bytes:
    return common.to_json_line(fields(event, mapping.name, facts))


def _environment(entry: HookEntry, mapping: EventMapping, event: Event, facts: SessionFacts) -> dict[str, str]:
    env = {
        "CRU_HOOK": mapping.name, "CRU_SESSION_ID": event.stamp.session_id, "CRU_RUN_ID": event.stamp.run_id,
        "AI_AGENT": "cru",
    }  # fmt: skip
    tool = common.tool_name(event) if hasattr(event.payload, "args") else ""
    if tool:
        env |= {
            "CRU_TOOL_NAME": tool,
            "CRU_TOOL_ARGS": common.to_json_line(common.tool_arguments(event)).decode().rstrip("\n"),
        }
    return {**env, **entry.env}


def fields(event: Event, name: str, facts: SessionFacts) -> dict[str, object]:
    """What every hook of ours reads: where it is, whose event it is, and the payload's fields flat beside that."""
    stamp = event.stamp
    known: dict[str, object] = {
        "event": event.name, "hook_event_name": name, "session_id": stamp.session_id, "run_id": stamp.run_id,
        "context": facts.context, "context_dir": str(facts.folder), "cwd": str(facts.root), "project_root": str(facts.root),
        "mode": facts.mode(), "is_sub_agent": stamp.is_sub_agent, "agent_id": stamp.agent_id, "agent_type": stamp.agent_type,
        "parent_call_id": stamp.parent_call_id, "depth": stamp.depth, "seq": stamp.dispatch_seq,
        "is_continuation": stamp.is_continuation, "source": stamp.source, "purpose": stamp.purpose, "timestamp": stamp.timestamp,
    }  # fmt: skip
    payload = msgspec.to_builtins(event.payload, enc_hook=repr)
    if "args" in payload:
        known |= {
            "tool_name": common.tool_name(event),
            "tool_input": payload["args"],
            "tool_use_id": payload.get("call_id", ""),
        }
    return {**known, **payload}


def _condition_holds(entry: HookEntry, event: Event, facts: SessionFacts) -> bool:
    """Whether the call is what an `if` wants. What a command or a path does not tell for certain counts as wanted."""
    tool, args = common.tool_name(event), common.tool_arguments(event)
    kind, argument = DETAILS.get(tool, ("tool", ""))
    detail = str(args.get(argument, "") or "")
    roots = paths.PathRoots(paths.resolve(str(facts.root)), "", str(facts.user_home))
    located: tuple[paths.ResolvedPath, ...] = ()
    if kind in ("read", "write"):
        try:
            located = (paths.locate(roots, "read" if kind == "read" else "write", detail or "."),)
        except ValueError:
            return True
    call = paths.JudgedCall(tool, kind, detail, located, str(args.get("input_to") or ""))
    return (kind == "shell" and bool(call.command.opaque)) or rules.rule_hits(
        rules.parse_rule(entry.condition), call, roots
    )


def _answer(entry: HookEntry, event: Event, run: HookRun, facts: SessionFacts) -> HookResult:
    return output.read_output(run, event.row, entry.label)


def _mapping(name: str, row: EventRow, only: tuple[str, ...] = ()) -> EventMapping:
    """A row of the catalog; `only`: the values of its identifier (the sources of a prompt) that are meant."""
    if not row.live:
        return EventMapping(name, unavailable=f"{row.name} is not available yet")

    def ident(event: Event) -> str:
        return str(getattr(event.payload, row.ident)) if row.ident else ""

    def accepts(event: Event, facts: SessionFacts) -> bool:
        return (ident(event) if row.ident else event.stamp.source) in only

    return EventMapping(
        name, row.name, accepts=accepts if only else None, subject=ident if row.ident else None,
        subjects=SUBJECTS.get(row.name, ()), answer=_answer,
    )  # fmt: skip


AGENT_EVENTS: Events = {
    "SubagentStart": (
        EventMapping(
            "SubagentStart", "task:spawned", accepts=common.is_agent, subject=lambda event: str(event.payload.agent), answer=_answer,
            scope="tree",
        ),
    ),
    "SubagentStop": (
        EventMapping(
            "SubagentStop", "turn:complete", accepts=common.agent_ended_by("done"), subject=lambda event: event.stamp.agent_type,
            answer=_answer, scope="tree",
        ),
    ),
}  # fmt: skip
"""The beginning and the end of a sub-agent's work; matchers look at its kind."""
EVENTS: Events = {
    **{row.name: (_mapping(row.name, row),) for row in CATALOG},
    **{name: (_mapping(name, BY_NAME[event], (value,) if value else ()),) for name, (event, value) in ALIASES.items()},
    **{name: (_mapping(name, BY_NAME[event], only),) for name, (event, only) in SYNONYMS.items()},
    **AGENT_EVENTS,
}

DIALECT = Dialect(
    name="cru",
    footprint=FOOTPRINTS["cru"],
    events=EVENTS,
    config=ConfigFormat(read=_read, must_hold='on_error = "deny"'),
    matching=Matching(matcher_fits=_matcher_fits, condition_holds=_condition_holds, condition_words=KINDS),
    stdin=_stdin,
    extra_environment=_environment,
    launch=LaunchRules(
        shells={"posix": ("bash", "sh", "brush"), "windows": ("git-bash", "brush")},
        dispatches_paths=True,
        variables={"CLAUDE_PROJECT_DIR": "root"},
    ),
)
