"""What the handler of one hook needs of the session that it runs in; hooks/session.py fills it."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cru.core.events.stamp import Event, Stamp
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.records import HookLogLine

if TYPE_CHECKING:
    from cru.core.hooks.run.languages import HookLanguages


class HookRuntime(Protocol):
    """The session as its hooks see it.

    facts: of the main agent
    is_strict: `--strict-hooks`: a refusal that cannot be read refuses
    """

    facts: SessionFacts
    is_strict: bool

    def facts_of(self, stamp: Stamp) -> SessionFacts:
        """Of the agent that raised an event."""
        ...

    def languages(self) -> HookLanguages:
        """What runs functions in Lua and Python."""
        ...

    def claim(self, entry: HookEntry, event: Event) -> str:
        """The id of the entry that does the same thing in this firing already; "" if this one is the first."""
        ...

    def explain_revocation(self, entry: HookEntry) -> str:
        """Why a project's hook is not what a person has trusted any more; "" if it is."""
        ...

    def is_accepted(self, entry: HookEntry) -> bool:
        """Whether a person has accepted it: with `--hooks=all` others run, too."""
        ...

    async def run(self, entry: HookEntry, stdin: bytes, env: Mapping[str, str | None], stamp: Stamp) -> HookRun:
        """Run its command for the agent that raised the event; a project's only if it is still what a person has trusted, and in the
        sandbox if there is one."""
        ...

    def redact(self, result: HookResult) -> HookResult:
        """Without the keys of providers that cru knows."""
        ...

    def record(self, line: HookLogLine) -> None: ...

    def notify(self, entry: HookEntry, text: str) -> None:
        """Show the words of a hook to the person."""
        ...

    def warn(self, entry: HookEntry, text: str) -> None:
        """Tell the person what is wrong with a hook."""
        ...

    def warn_slow(self, entry: HookEntry, event: str, ms: float) -> None: ...

    def show_waiting(self, entry: HookEntry, text: str) -> None:
        """What faces show while everything waits for a hook; "" when it is over."""
        ...

    def detach(self, work: Coroutine[Any, Any, None]) -> None:
        """Let it run beside the session, until that ends."""
        ...

    def defer(self, entry: HookEntry, texts: Sequence[str]) -> None:
        """Keep what a hook wants the model to read for the next request, of this process or of a later one."""
        ...
