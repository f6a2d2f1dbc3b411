"""One hook of one tool entry as a handler of the bus."""

from __future__ import annotations

from cru.events.answers import PASS, Answer
from cru.events.journal import SkipKind, SkipReason
from cru.events.stamp import Event
from cru.extensions.executables.calls import ProgramContext, call_hook
from cru.extensions.executables.executable import Executable
from cru.extensions.executables.hooks.hook import HookAnswerContext, LegFacts, ProgramHook, ignore_answer
from cru.extensions.executables.hooks.output import read_answer


class HookCall:
    """Runs the program with the hook's payload. That it fails is told like the failure of any handler, and ends no turn."""

    copies = True

    def __init__(
        self, hook: ProgramHook, executable: Executable, tool: str, facts: LegFacts, where: ProgramContext
    ) -> None:
        self._hook = hook
        self._executable = executable
        self._tool = tool
        self._facts = facts
        self._where = where

    def declines(self, event: Event) -> SkipReason | None:
        """Why the hook does not mean this event; one that cannot be judged is not passed by."""
        if self._hook.hears is None:
            return None
        try:
            means = self._hook.hears(event, self._facts)
        except Exception as error:  # noqa: BLE001  the boundary around tools and their arguments: reported, and the hook is asked
            self._warn(f"cannot tell whether it applies: {type(error).__name__}: {error}")
            return None
        return None if means else SkipReason(SkipKind.OTHER_EVENT, self._hook.name)

    async def __call__(self, event: Event) -> Answer:
        """Raises HookFailed."""
        hook, facts = self._hook, self._facts
        printed = await call_hook(self._executable, hook.name, hook.payload(event, facts), self._where)
        said = read_answer(printed) if hook.effect is not ignore_answer else None
        if said is None:
            return PASS
        run = HookAnswerContext(event, facts, self._executable.name, self._tool, facts.group(event, hook.name))
        if run.group.ended_by:
            return Answer(note=f"not looked at: {run.group.ended_by} had the last word")
        answer = hook.effect(run, said)
        for text in run.odd:
            self._warn(text)
        return answer

    def _warn(self, text: str) -> None:
        self._facts.parts.bus.stream.warn(f"{self._executable.name}: {self._hook.name}: {text}", self._executable.name)
