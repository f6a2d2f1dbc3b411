"""Runs outside of the sandbox that a rule permits, and confined programs that could change what they do (docs/decisions/sandbox.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cru.core.guard.rules.paths import JudgedCall

LONGEST = 80
"""Characters of a command in a reason."""


class OutsideRuns:
    """Of one session. `is_confined`: whether anything confines here."""

    def __init__(self) -> None:
        self.is_confined = False
        self.runs_elsewhere: Callable[[], bool] = lambda: False
        """Whether something confined runs in another session of this project, or without one."""
        self._confined: dict[object, str] = {}
        self._by_rule: dict[str, bool] = {}
        """Commands that a rule permits and files decide, and whether nothing confined may begin while they run."""
        self._ruled: set[str] = set()
        """Commands that a rule permits."""
        self._holding: set[object] = set()
        self._let_go = asyncio.Event()

    def begin(self, name: str) -> Callable[[], None]:
        """A confined program begins; what is returned is called at its end."""
        key = object()
        self._confined[key] = name

        def end() -> None:
            self._confined.pop(key, None)

        return end

    async def wait(self) -> None:
        """Until nothing runs outside whose files must stay as they are."""
        while self._holding:
            await self._let_go.wait()

    def why_not_by_rule(self, call: JudgedCall) -> str:
        """Why no rule permits this run outside just now; "" if one may."""
        from cru.core.guard.rules.kept_rules import is_decided_by_files

        if not is_decided_by_files(call) or not (name := self._find_confined()):
            return ""
        shown = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        return (
            "no rule permits a run outside of the sandbox while something in it could change the files that decide what runs: "
            f"`{shown}` runs there"
        )

    def _find_confined(self) -> str:
        """What runs confined, "" if nothing does."""
        if self._confined:
            return next(iter(self._confined.values()))
        return "something of another session" if self.runs_elsewhere() else ""

    def judge_rule(self, call: JudgedCall, has_rule: bool) -> str:
        """Why a rule that covers this run outside does not permit it just now; "" if it does, or there is none. What is permitted is known
        when it begins."""
        if not call.is_outside:
            return ""
        self._ruled.discard(call.detail)
        from cru.core.guard.rules.kept_rules import is_decided_by_files, runs_hooks

        why_not = self.why_not_by_rule(call) if has_rule else ""
        if has_rule and not why_not and is_decided_by_files(call):
            self._by_rule[call.detail] = runs_hooks(call)
        else:
            self._by_rule.pop(call.detail, None)
        if has_rule and not why_not:
            self._ruled.add(call.detail)
        return why_not

    def permit_by_person(self, command: str) -> None:
        """A person has seen it, whatever a rule says."""
        self._ruled.discard(command)

    def is_by_rule(self, command: str) -> bool:
        """Whether a rule permits that this runs outside: nobody sees which programs it finds."""
        return command in self._ruled

    def hold(self, command: str) -> Callable[[], None] | None:
        """The run outside begins: if a rule permits it, nothing confined may run (None: something does). What is returned is called at its
        end."""
        holds = self._by_rule.pop(command, None)
        if holds is not None and self._find_confined():
            return None
        if not holds:
            return lambda: None
        key = object()
        self._holding.add(key)
        self._let_go.clear()

        def release() -> None:
            self._holding.discard(key)
            if not self._holding:
                self._let_go.set()

        return release
