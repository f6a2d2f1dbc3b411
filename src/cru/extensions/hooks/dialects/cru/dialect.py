"""cru's own hooks: every event of the catalog, flat entries, answers in our own words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cru.events.catalog import ALIASES, BY_NAME, CATALOG, EventRow
from cru.events.stamp import Event
from cru.extensions.hooks.dialects.cru import output
from cru.extensions.hooks.dialects.cru.config import read_entries
from cru.extensions.hooks.model.entry import DialectName, HookEntry, HookFileProblem, HookSource, Layer
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import EventMapping
from cru.extensions.hooks.model.result import CommandResult, HookResult
from cru.extensions.hooks.parsing import common

FILES = ("hooks.json", "config.toml")
# Names of Claude and Crush → our event, and the values of its identifier, or the sources of a prompt, that they mean.
SYNONYMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "SessionStart": ("session:started", ()),
    "SessionEnd": ("session:ended", ()),
    "UserPromptSubmit": ("message:received", common.TYPED),
    "PreToolUse": ("tool:before_call", ()),
    "PermissionRequest": ("permission:requested", ()),
    "PermissionResult": ("permission:resolved", ()),
    "PostToolUse": ("tool:completed", ()),
    "PostToolUseFailure": ("tool:failed", ()),
    "PostToolBatch": ("tool:batch_completed", ()),
    "PreCompact": ("context:overflow", ()),
    "PostCompact": ("session:compacted", ()),
    "TurnStart": ("leg:started", ()),
    "TurnEnd": ("turn:complete", ()),
    "Stop": ("turn:complete", ("done",)),
    "StopFailure": ("turn:complete", ("error",)),
    "Interrupt": ("turn:complete", ("interrupted",)),
    "SubagentStart": ("task:spawned", ()),
    "SubagentStop": ("task:completed", ()),
}
_FOLDED = {name.lower(): name for name in SYNONYMS}
# Our tools → their kind in rules, and the argument that a rule's glob is about.
DETAILS: dict[str, tuple[str, str]] = {
    "bash": ("shell", "command"), "fetch": ("fetch", "url"), "read": ("read", "file_path"), "ls": ("read", "path"),
    "glob": ("read", "path"), "grep": ("read", "path"), "write": ("write", "file_path"), "edit": ("write", "file_path"),
}  # fmt: skip


class CruDialect:
    """See dialect.Dialect."""

    name: DialectName = "cru"
    runs_equal_once = True
    events: Mapping[str, Sequence[EventMapping]] = {}
    _root = _home = ""

    def places(self, about: SessionFacts) -> list[tuple[Layer, Path]]:
        self._root, self._home = str(about.root), str(about.user_home)
        found: list[tuple[Layer, Path]] = [("user", about.home / file) for file in FILES]
        return [*found, *(("project", about.root / ".cru" / file) for file in FILES)]

    def parse(self, source: HookSource) -> tuple[list[HookEntry], list[HookFileProblem]]:
        return read_entries(source, self.events, canonical)

    def matches(self, entry: HookEntry, event: Event, subject: str) -> bool:
        """An unanchored regular expression on what the event is about, in our words; and the rule of `if`."""
        if entry.matcher and not re.search(entry.matcher, subject):
            return False
        return not entry.condition or holds(entry.condition, event, self._root, self._home)

    def stdin(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> bytes:
        return common.one_line(fields(event, moment.name, about))

    def environment(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> dict[str, str]:
        env = {
            "CRU_HOOK": moment.name, "CRU_SESSION_ID": event.stamp.session_id, "CRU_RUN_ID": event.stamp.run_id,
            "CLAUDE_PROJECT_DIR": str(about.root), "AI_AGENT": "cru",
        }  # fmt: skip
        tool = common.tool(event) if hasattr(event.payload, "args") else ""
        if tool:
            env |= {"CRU_TOOL_NAME": tool, "CRU_TOOL_ARGS": common.one_line(common.args(event)).decode().rstrip("\n")}
        return {**env, **entry.env}


def canonical(event: str) -> str:
    """The name as the table has it: other systems' names in any spelling."""
    if event in CruDialect.events:
        return event
    return _FOLDED.get(event.replace("_", "").lower(), event)


def fields(event: Event, name: str, about: SessionFacts) -> dict[str, Any]:
    """What every hook of ours reads: where it is, whose event it is, and the payload's fields flat beside that."""
    stamp = event.stamp
    known: dict[str, Any] = {
        "event": event.name, "hook_event_name": name, "session_id": stamp.session_id, "run_id": stamp.run_id,
        "context": about.context, "context_dir": str(about.folder), "cwd": str(about.cwd), "project_root": str(about.root),
        "mode": about.mode(), "is_sub_agent": stamp.is_sub_agent, "agent_id": stamp.agent_id,
        "parent_call_id": stamp.parent_call_id, "depth": stamp.depth, "seq": stamp.dispatch_seq,
        "is_continuation": stamp.is_continuation, "source": stamp.source, "purpose": stamp.purpose, "timestamp": stamp.timestamp,
    }  # fmt: skip
    payload = msgspec.to_builtins(event.payload, enc_hook=repr)
    if "args" in payload:
        known |= {
            "tool_name": common.tool(event),
            "tool_input": payload["args"],
            "tool_use_id": payload.get("call_id", ""),
        }
    return {**known, **payload}


def holds(rule: str, event: Event, root: str, home: str) -> bool:
    """Whether the call is what an `if` wants. What a command or a path does not tell for certain counts as wanted."""
    from cru.permissions import paths, rules

    tool, args = common.tool(event), common.args(event)
    kind, argument = DETAILS.get(tool, ("tool", ""))
    detail = str(args.get(argument, "") or "")
    places = paths.PathRoots(paths.resolve(root), "", home)
    located: tuple[paths.ResolvedPath, ...] = ()
    if kind in ("read", "write"):
        try:
            located = (paths.locate(places, "read" if kind == "read" else "write", detail or "."),)
        except ValueError:
            return True
    call = paths.JudgedCall(tool, kind, detail, located)
    return (kind == "shell" and bool(call.command.opaque)) or rules.rule_hits(rules.parse_rule(rule), call, places)


def _answer(entry: HookEntry, event: Event, run: CommandResult, about: SessionFacts) -> HookResult:
    return output.said(run, event.row, entry.label)


def _moment(name: str, row: EventRow, only: tuple[str, ...] = ()) -> EventMapping:
    """A row of the catalog as a moment; `only`: the values of its identifier (the sources of a prompt) that are meant."""
    if not row.live:
        return EventMapping(name, unavailable=f"{row.name} is not available yet")

    def ident(event: Event) -> str:
        return str(getattr(event.payload, row.ident)) if row.ident else ""

    def accepts(event: Event) -> bool:
        return (ident(event) if row.ident else event.stamp.source) in only

    return EventMapping(
        name, row.name, accepts=accepts if only else None, subject=ident if row.ident else None, answer=_answer
    )


CruDialect.events = {
    **{row.name: (_moment(row.name, row),) for row in CATALOG},
    **{name: (_moment(name, BY_NAME[event], (value,) if value else ()),) for name, (event, value) in ALIASES.items()},
    **{name: (_moment(name, BY_NAME[event], only),) for name, (event, only) in SYNONYMS.items()},
}
