"""Notices that a turn goes round in circles, however long the circle is (docs/decisions/turns.md)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import IntEnum

CallKey = tuple[str, str, int]
"""Name, arguments, hash of the result."""
NUDGE_AT, ASK_AT = 5, 10
"""Rounds without progress after which the model is told and a person is asked."""
RECOVERY = 2
"""So many of them a round with progress makes up for."""


class LoopStep(IntEnum):
    """What is to be done now; each but the last once, until the turn has recovered."""

    GO_ON = 0
    NUDGE = 1
    ASK = 2
    STOP = 3


class LoopGuard:
    """Sees the rounds of a turn, over all its legs. A round makes progress if a call gave a result that it has not given before.

    rounds: without progress, less those that were made up for
    """

    def __init__(self, most: int) -> None:
        """most: rounds without progress after which the turn is stopped; 0: never"""
        self.rounds = 0
        self._steps = (NUDGE_AT, ASK_AT, most or sys.maxsize)
        self._seen: set[CallKey] = set()
        self._step = LoopStep.GO_ON

    def take_calls(self, calls: Iterable[CallKey]) -> LoopStep:
        """Count a round: its calls, without those that were refused. There are none in an empty reply."""
        new = set(calls) - self._seen
        self._seen |= new
        if not new:
            return self._count()
        self.rounds -= RECOVERY
        if self.rounds <= 0:
            self.forgive()
        return LoopStep.GO_ON

    def take_reply(self, text: str) -> LoopStep:
        """Count a final reply after which the agent is to go on by itself. Other words alone are no progress, and no repetition."""
        key = ("", "", hash(text))
        if key in self._seen:
            return self._count()
        self._seen.add(key)
        return LoopStep.GO_ON

    def forget(self) -> None:
        """The model knows earlier results no longer: to see them again is progress."""
        self._seen.clear()

    def forgive(self) -> None:
        """All is made up for, or a person said: go on."""
        self.rounds, self._step = 0, LoopStep.GO_ON

    def _count(self) -> LoopStep:
        self.rounds += 1
        due = LoopStep(sum(self.rounds >= least for least in self._steps))
        if due is not LoopStep.STOP and due <= self._step:  # it was taken
            return LoopStep.GO_ON
        self._step = due
        return due
