"""Claude Code's command hooks (its documentation of August 2026): settings.json of the user and of the project."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cru.events.answers import Answer
from cru.events.stamp import Event
from cru.extensions.hooks.dialects.claude import config, matching
from cru.extensions.hooks.dialects.claude.env_file import EnvFiles
from cru.extensions.hooks.dialects.claude.events import moments
from cru.extensions.hooks.model.entry import DialectName, HookEntry, HookFileProblem, HookSource, Layer
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import EventMapping
from cru.extensions.hooks.parsing import common

MODES = {"ask": "default", "auto": "acceptEdits", "plan": "plan", "trust": "bypassPermissions"}
MANAGED = Path("/etc/claude-code/managed-settings.json")
WITHHELD = "OTEL_"


class Claude:
    """See dialect.Dialect and dialect.Helping. Context that has no place on its own event waits in `_carried` for the next request."""

    name: DialectName = "claude"
    runs_equal_once = True

    def __init__(self) -> None:
        self._carried: list[str] = []
        self.events: Mapping[str, Sequence[EventMapping]] = moments(self._carried.extend, self._awaits)
        self._about: SessionFacts | None = None
        self._disabled = ""

    def _awaits(self, event: Event) -> bool:
        """Whether somebody is there who is waited for."""
        return self._about is None or self._about.sits()

    def places(self, about: SessionFacts) -> list[tuple[Layer, Path]]:
        self._about, self._disabled = about, ""
        user = Path(about.env.get("CLAUDE_CONFIG_DIR") or about.user_home / ".claude")
        project = about.root / ".claude"
        return [
            ("system", MANAGED), ("user", user / "settings.json"),
            ("project", project / "settings.json"), ("project", project / "settings.local.json"),
        ]  # fmt: skip

    def parse(self, source: HookSource) -> tuple[list[HookEntry], list[HookFileProblem]]:
        """A file's `disableAllHooks` holds for itself and for those after it; a project cannot switch off the user's hooks."""
        file = config.read(source, self.events, self._about.env if self._about is not None else {})
        if file.disabled and source.layer != "project":
            self._disabled = str(source.path)
        if file.disabled or self._disabled:
            users = self._disabled != ""
            return [replace(entry, enabled=False, off_by_user=users) for entry in file.entries], file.problems
        return file.entries, file.problems

    def matches(self, entry: HookEntry, event: Event, subject: str) -> bool:
        if entry.event not in matching.TOOL_EVENTS:
            return matching.fits(entry.event, entry.matcher, "", subject)
        if not matching.fits(entry.event, entry.matcher, subject, ""):
            return False
        if not entry.condition:
            return True
        root, home = (self._about.root, self._about.user_home) if self._about is not None else (Path.cwd(), Path.home())
        return matching.holds(entry.condition, subject, common.args(event), str(root), str(home))

    def stdin(self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts) -> bytes:
        stamp = event.stamp
        known: dict[str, Any] = {
            "session_id": stamp.session_id, "transcript_path": str(about.transcript()), "cwd": str(about.cwd),
            "permission_mode": MODES.get(about.mode(), "default"), "hook_event_name": moment.name,
            "is_sub_agent": stamp.is_sub_agent, "depth": stamp.depth,
        }  # fmt: skip
        if stamp.is_sub_agent:
            known["agent_id"] = stamp.agent_id
        return common.one_line({**known, **(moment.fields(event, about) if moment.fields else {})})

    def environment(
        self, entry: HookEntry, moment: EventMapping, event: Event, about: SessionFacts
    ) -> dict[str, str | None]:
        env: dict[str, str | None] = {name: None for name in about.env if name.startswith(WITHHELD)}
        env["CLAUDE_PROJECT_DIR"] = str(about.root)
        if moment.name == "SessionStart":
            env["CLAUDE_ENV_FILE"] = str(EnvFiles.fresh(entry, about))
        return env

    def helpers(self, entries: Sequence[HookEntry], about: SessionFacts) -> list[tuple[str, Callable[[Event], Any]]]:
        starting = [entry for entry in entries if entry.event == "SessionStart"]
        if not any(entry.event in ("SessionStart", "Notification") for entry in entries):
            return []
        found: list[tuple[str, Callable[[Event], Any]]] = [("message:before_send", self._carry)]
        if starting:
            found.append(("tool:before_call", EnvFiles(starting, about)))
        return found

    def _carry(self, event: Event) -> Answer | None:
        texts = tuple(self._carried)
        self._carried.clear()
        return Answer(context=texts) if texts else None
