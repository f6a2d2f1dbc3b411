"""The leg as a state machine: one table of transitions. The drawing in docs/turn.md is made from it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from cru.core.turn import BadTransition


class LegState(StrEnum):
    IDLE = "idle"
    RECEIVING = "receiving"
    PREPARING = "preparing"
    CALLING = "calling"
    RESPONDING = "responding"
    TOOLING = "tooling"
    SETTLING = "settling"


S = LegState
STOP = "cancelled, halted, interrupted or error"

TRANSITIONS: dict[tuple[LegState, LegState], str] = {
    (S.IDLE, S.RECEIVING): "a prompt, or --resume",
    (S.RECEIVING, S.PREPARING): "the prompt is accepted",
    (S.RECEIVING, S.SETTLING): f"{STOP}; or resumed with a final reply",
    (S.PREPARING, S.CALLING): "the request is ready",
    (S.PREPARING, S.TOOLING): "resumed: calls without a result run again",
    (S.PREPARING, S.SETTLING): STOP,
    (S.CALLING, S.RESPONDING): "the reply is whole",
    (S.CALLING, S.PREPARING): "the request was too large and the context is compacted",
    (S.CALLING, S.SETTLING): STOP,
    (S.RESPONDING, S.TOOLING): "the reply asks for tools",
    (S.RESPONDING, S.SETTLING): f"final; or {STOP}",
    (S.TOOLING, S.PREPARING): "every call has a result",
    (S.TOOLING, S.SETTLING): f"a tool ended the turn; out of fuel; or {STOP}",
    (S.SETTLING, S.RECEIVING): "a queued prompt, or an inject",
    (S.SETTLING, S.IDLE): "nothing is left to do",
}


class StateMachine:
    """Where a session is. `watch` hears every transition as (old, new)."""

    def __init__(self, watch: Callable[[LegState, LegState], None]) -> None:
        self.state = LegState.IDLE
        self._watch = watch

    def to(self, new: LegState) -> None:
        """Go to a state; raises BadTransition where the table has no arrow."""
        if (self.state, new) not in TRANSITIONS:
            raise BadTransition(f"no transition from {self.state} to {new}")
        old, self.state = self.state, new
        self._watch(old, new)


def mermaid() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> idle"]
    lines += [f"    {old} --> {new}: {why}" for (old, new), why in TRANSITIONS.items()]
    return "\n".join(lines)
