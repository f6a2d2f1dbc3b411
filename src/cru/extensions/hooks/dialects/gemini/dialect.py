"""Gemini CLI's hooks: nested groups in settings.json, decisions in JSON or by exit status."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cru.events.stamp import Event
from cru.extensions.hooks.dialects.gemini.config import read_entries
from cru.extensions.hooks.dialects.gemini.events import moments
from cru.extensions.hooks.model import tool_names
from cru.extensions.hooks.model.entry import DialectName, HookEntry, HookFileProblem, HookSource, Layer
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import EventMapping
from cru.extensions.hooks.parsing import common

SYSTEM = Path("/etc/gemini-cli/settings.json")


class Gemini:
    """See dialect.Dialect. Equal are entries with the same name and command."""

    name: DialectName = "gemini"
    runs_equal_once = True

    def __init__(self) -> None:
        self._off: dict[Path, frozenset[str]] = {}
        self.events: Mapping[str, Sequence[EventMapping]] = moments()

    def places(self, about: SessionFacts) -> list[tuple[Layer, Path]]:
        self._off.clear()
        return [
            ("system", SYSTEM),
            ("user", about.user_home / ".gemini" / "settings.json"),
            ("project", about.root / ".gemini" / "settings.json"),
        ]

    def parse(self, source: HookSource) -> tuple[list[HookEntry], list[HookFileProblem]]:
        """A name that a file switches off is off in the files above it, too; a project cannot switch off what the user has."""
        below = frozenset[str]().union(*self._off.values())
        found, problems, switches = read_entries(source, self.events, below)
        if source.layer != "project":
            self._off[source.path] = switches.disabled
        return found, problems

    def matches(self, entry: HookEntry, event: Event, subject: str) -> bool:
        """Tools: an unanchored regular expression on any name that Gemini, or cru, has for it; an invalid one, and what is no tool:
        the very text."""
        matcher = entry.matcher
        if matcher in ("", "*"):
            return True
        if not event.name.startswith("tool:"):
            return matcher == subject
        known = tool_names.names("gemini", subject)
        try:
            wanted = re.compile(matcher)
        except re.error:
            return matcher in known
        return any(wanted.search(name) for name in known)

    def stdin(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> bytes:
        stamp = event.stamp
        time = datetime.fromtimestamp(stamp.timestamp, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        known: dict[str, Any] = {
            "session_id": stamp.session_id, "transcript_path": str(about.transcript()), "cwd": str(about.cwd),
            "hook_event_name": moment.name, "timestamp": time, "is_sub_agent": stamp.is_sub_agent, "agent_id": stamp.agent_id,
        }  # fmt: skip
        return common.one_line({**known, **(moment.fields(event, about) if moment.fields else {})})

    def environment(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> dict[str, str]:
        return {
            "GEMINI_PROJECT_DIR": str(about.root), "GEMINI_CWD": str(about.cwd), "CLAUDE_PROJECT_DIR": str(about.root),
            "GEMINI_SESSION_ID": event.stamp.session_id, "GEMINI_PLANS_DIR": str(about.folder / "plans"), **entry.env,
        }  # fmt: skip
