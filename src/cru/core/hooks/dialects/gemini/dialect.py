"""Gemini CLI's hooks as one record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from cru.core.events.stamp import Event
from cru.core.hooks.dialects import FOOTPRINTS
from cru.core.hooks.dialects.gemini.config import FOLDERS, read_entries
from cru.core.hooks.dialects.gemini.events import EVENTS
from cru.core.hooks.dialects.gemini.permissions import TOOLS
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import ConfigFormat, Dialect, EventMapping, LaunchRules, Matching, ParsedFile
from cru.core.hooks.parsing import common
from cru.core.hooks.parsing.bounded_regex import finds_any


def _read(source: HookSource, below: Sequence[ParsedFile], facts: SessionFacts) -> ParsedFile:
    return read_entries(source, EVENTS, frozenset[str]().union(*(file.disables for file in below)))


def _matcher_fits(entry: HookEntry, event: Event, subject: str) -> bool:
    """Tools: an unanchored regular expression on any name that Gemini, or cru, has for it; an invalid one, and what is no tool:
    the very text."""
    matcher = entry.matcher
    if matcher in ("", "*"):
        return True
    if not event.name.startswith("tool:"):
        return matcher == subject
    known = TOOLS.names(subject)
    try:
        return finds_any(matcher, known)
    except re.error:
        return matcher in known


def _stdin(mapping: EventMapping, event: Event, facts: SessionFacts) -> bytes:
    stamp = event.stamp
    time = datetime.fromtimestamp(stamp.timestamp, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    known: dict[str, object] = {
        "session_id": stamp.session_id, "transcript_path": str(facts.transcript()), "cwd": str(facts.root),
        "hook_event_name": mapping.name, "timestamp": time, "is_sub_agent": stamp.is_sub_agent, "agent_id": stamp.agent_id,
    }  # fmt: skip
    if stamp.is_sub_agent:
        known |= {"agent_type": stamp.agent_type, "depth": stamp.depth}
    return common.to_json_line({**known, **(mapping.fields(event, facts) if mapping.fields else {})})


def _environment(entry: HookEntry, mapping: EventMapping, event: Event, facts: SessionFacts) -> dict[str, str]:
    return {
        "GEMINI_SESSION_ID": event.stamp.session_id, "GEMINI_PLANS_DIR": str(facts.folder / "plans"), **entry.env,
    }  # fmt: skip


DIALECT = Dialect(
    name="gemini",
    footprint=FOOTPRINTS["gemini"],
    events=EVENTS,
    config=ConfigFormat(read=_read, counts_milliseconds=True),
    matching=Matching(matcher_fits=_matcher_fits),
    stdin=_stdin,
    extra_environment=_environment,
    tools=TOOLS,
    launch=LaunchRules(shells={"posix": ("bash", "sh", "brush"), "windows": ("powershell",)}, variables=FOLDERS),
)
