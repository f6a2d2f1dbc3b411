"""Verification in a session: whether files changed, and what becomes of a turn whose command fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cru.core.base.config.layers import Settings
from cru.core.compose.start import Start
from cru.core.events.answers import PASS, Answer, Inject, OutcomeKind, TurnOutcome
from cru.core.events.payloads import (
    MessageReceived,
    SessionStarted,
    ToolCompleted,
    ToolFailed,
    TurnComplete,
    TurnEnding,
)
from cru.core.events.stamp import Event
from cru.core.events.stream import StatusChanged
from cru.core.guard.shell.readers import only_reads
from cru.core.turn.check_command import run_check
from cru.core.turn.parts import Parts
from cru.core.turn.turn import TYPED_SOURCES
from cru.features.verify import VerifySettings, VerifyTable

OWNER, PENDING = "verify", "verify-pending"
"""The name of its handlers, and of the context's file that says that something is to be verified."""
HAS_RUN = ("failed", "timeout", "interrupted")
"""Why a call failed that may have changed something."""
FAILED = "[The work is not done: {why}\n\nFix the cause. `{command}` runs again when you end your turn.]"


def find_verification(start: Start, settings: Settings) -> SessionVerification | None:
    """Return what verifies turns; None if no command is configured."""
    chosen = settings.of(VerifyTable).verify
    return SessionVerification(chosen) if chosen.command.strip() else None


class SessionVerification:
    """The command as a part of a session."""

    readable = ()

    def __init__(self, settings: VerifySettings) -> None:
        self._settings = settings

    def secrets(self, env: Mapping[str, str]) -> Iterable[str]:
        return ()

    def join(self, parts: Parts) -> None:
        """Register the handlers."""
        verification = Verification(parts, self._settings)
        registry = parts.bus.registry
        registry.on("session:started", verification.start, owner=OWNER, where=OWNER)
        registry.on("message:received", verification.begin, owner=OWNER, where=OWNER)
        registry.on("tool:completed", verification.note_call, owner=OWNER, where=OWNER, scope="tree")
        registry.on("tool:failed", verification.note_call, owner=OWNER, where=OWNER, scope="tree")
        registry.on("turn:complete", verification.note_end, owner=OWNER, where=OWNER)
        limit = self._settings.timeout + 60  # run_check ends the command before
        registry.on("turn:ending", verification.verify, owner=OWNER, where=OWNER, limit=limit, on_error="deny")


class Verification:
    """Runs the command where a turn would end, if files changed since it passed last.

    Whether they did is known from what undo records. Where it records nothing (it is off; a command outside of git; a tool of a
    server), a call that may have written counts as a change, and so does a turn that an earlier process began.
    """

    def __init__(self, parts: Parts, settings: VerifySettings) -> None:
        self._parts = parts
        self._settings = settings
        self._attempts = self._unseen = self._verified = 0
        self._failed_at = -1
        self._is_kept = bool(parts.store.read_text(PENDING))

    def start(self, event: Event[SessionStarted]) -> Answer:
        """What an earlier run changed, and did not see pass, is verified at the next end."""
        self._unseen += event.payload.source == "resume" or bool(self._parts.store.read_text(PENDING))
        return PASS

    def begin(self, event: Event[MessageReceived]) -> Answer:
        """Count anew for each prompt of a person."""
        if event.stamp.source in TYPED_SOURCES:
            self._attempts, self._failed_at = 0, -1
        return PASS

    def note_call(self, event: Event[ToolCompleted] | Event[ToolFailed]) -> Answer:
        """Count a call that may have changed files which undo does not see."""
        payload, keeper = event.payload, self._parts.services.changes.known
        if isinstance(payload, ToolFailed) and payload.which not in HAS_RUN:
            return PASS
        tool = self._parts.tools.find(payload.name)
        kind = tool.kind if tool is not None else "tool"
        is_seen = keeper is not None and not keeper.has_failed
        if kind == "shell":
            is_watched = is_seen and keeper is not None and keeper.watcher is not None
            self._unseen += not is_watched and not only_reads(str(payload.args.get("command", "")))
        elif kind in ("write", "tool"):
            self._unseen += not is_seen or kind == "tool"
        return PASS

    async def note_end(self, event: Event[TurnComplete]) -> Answer:
        """Keep that something is to be verified, whatever becomes of this turn, this process or this prompt."""
        self._keep_pending(await self._count_changes() != self._verified)
        return PASS

    def _keep_pending(self, is_pending: bool) -> None:
        if is_pending != self._is_kept:
            self._parts.store.write_text(PENDING, "yes\n" if is_pending else "")
            self._is_kept = is_pending

    async def verify(self, event: Event[TurnEnding]) -> Answer:
        """Run the command if it must; let the turn end, continue it with the output, or end it as failed."""
        changes = await self._count_changes()
        command = self._settings.command
        if changes == self._verified:
            return PASS
        if changes == self._failed_at:  # nothing was changed since it failed
            return self._give_up("gave_up", f"`{command}` failed, and nothing was changed after that")
        why = await self._run()
        if not why:
            self._verified, self._attempts = changes, 0
            self._keep_pending(False)
            return Answer(outcome=TurnOutcome("done", evidence=(f"`{command}` passed",)))
        self._failed_at = changes
        self._attempts += 1
        if self._attempts > self._settings.attempts:
            return self._give_up("failed", f"`{command}` failed after {self._settings.attempts} attempts to fix it")
        self._parts.bus.stream.warn(f"verify: `{command}` failed; the model gets the output", OWNER)
        failed = self._outcome("failed", f"`{command}` failed")
        return Answer(inject=Inject(FAILED.format(why=why, command=command)), outcome=failed)

    def _give_up(self, kind: OutcomeKind, why: str) -> Answer:
        return Answer(outcome=self._outcome(kind, why))

    def _outcome(self, kind: OutcomeKind, why: str) -> TurnOutcome:
        return TurnOutcome(kind, f"verify: {why}", (f"make `{self._settings.command}` pass",))

    async def _count_changes(self) -> int:
        """Return how many changes there were in this session, as far as anyone can tell."""
        keeper = self._parts.services.changes.known
        if keeper is None:
            return self._unseen
        await keeper.settle()
        return self._unseen + keeper.store.changed

    async def _run(self) -> str:
        show = self._parts.bus.stream.tell
        show(StatusChanged(OWNER, OWNER, f"verify: running {self._settings.command}"))
        try:
            return await run_check(self._settings.command, self._settings.timeout, self._parts)
        finally:
            show(StatusChanged(OWNER, OWNER, ""))
