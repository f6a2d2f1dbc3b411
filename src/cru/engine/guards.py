"""Guards against runs that go nowhere: the same call over and over, empty replies, no progress."""

from __future__ import annotations

from collections import Counter, deque
from typing import Literal

from cru.engine.turn import Turn

LOOP_WINDOW = 10
LOOP_MOST = 5
EMPTY_RETRIES = 2

Key = tuple[str, str, int]
Step = Literal["", "nudge", "ask", "stop"]
STEPS: tuple[Step, ...] = ("nudge", "ask", "stop")

NUDGE = (
    "This same call has now given the same result {count} times. "
    "Do not repeat it: change the approach, or say what blocks you."
)


class LoopGuard:
    """Sees every call with its result. The same more than LOOP_MOST times in LOOP_WINDOW rounds: nudge, then ask, then stop."""

    def __init__(self) -> None:
        self._rounds: deque[list[Key]] = deque(maxlen=LOOP_WINDOW)
        self._warned: Counter[Key] = Counter()
        self._now: set[Key] = set()

    def next_round(self) -> None:
        self._rounds.append([])
        self._now.clear()

    def seen(self, name: str, arguments: str, result: str) -> tuple[Step, int]:
        """Take one finished call; says what to do now and how often it was seen."""
        key = (name, arguments, hash(result))
        if not self._rounds:
            self.next_round()
        self._rounds[-1].append(key)
        count = sum(calls.count(key) for calls in self._rounds)
        if count <= LOOP_MOST or key in self._now:  # one step a round: the model must see each
            return "", count
        self._now.add(key)
        self._warned[key] += 1
        return STEPS[min(self._warned[key], len(STEPS)) - 1], count

    def forgive(self, name: str, arguments: str, result: str) -> None:
        """A person said: go on."""
        self._warned.pop((name, arguments, hash(result)), None)
        self._rounds.clear()


def progress(turn: Turn, response: str) -> int:
    """How many legs in a row gave the same reply without any new tool result."""
    same = turn.last_response == response and turn.results == turn.results_before
    turn.no_progress = turn.no_progress + 1 if same else 0
    turn.last_response, turn.results_before = response, turn.results
    return turn.no_progress
