"""Notice a turn that changes nothing in the world, however its words vary (docs/decisions/turns.md)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from enum import IntEnum
from time import monotonic
from typing import NamedTuple

NUDGE_AT, ASK_AT = 5, 10
"""Rounds without progress after which the model is told, and a person asked."""
IDLE, UNPROVEN, RECOVERY = 5, 2, 10
"""Fifths of a round: what a round without progress counts, one whose progress cannot be seen, and what one with progress makes up for."""
LONGEST_LOOK = 2000
"""Characters at each end of a result that are compared; more would cost every round too much."""
ACTING, POLLING = ("write", "message", "tool"), ("read", "fetch", "query", "shell")
"""Kinds of tools that do something beside giving a result, as far as is known, and kinds with which something may be waited for."""
_VARYING = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # a UUID
    r"|0[xX][0-9a-fA-F]+|\b(?=[a-f]*\d)[0-9a-f]{7,}\b"  # an address, a hash
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])\w{16,}\b"  # a token
    r"|/(?:var/)?tmp/\S+|\d+(?:[.,:]\d+)*"  # a temporary path; a number, time or date
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_DONE_ITEM = re.compile(r"^[ \t]*[-*+] \[[xX]\] (.+)$", re.MULTILINE)


class CountedCall(NamedTuple):
    """A call that ran, or that a handler answered.

    kind: of its tool
    """

    name: str
    arguments: str
    result: str
    kind: str = "tool"
    is_error: bool = False


class LoopStep(IntEnum):
    """What is to be done now; each but the last once, until the turn has recovered."""

    GO_ON = 0
    NUDGE = 1
    ASK = 2
    STOP = 3


class LoopGuard:
    """Counts the rounds of a turn, over all its legs, that change nothing.

    A round makes progress if a file has new content, a todo of the list is done, a result has a word that neither an earlier result nor
    the call has, or a tool that acts is called with new arguments. What is only a number, time, hash, address or temporary path is no
    news.

    rounds: without progress since the last one with progress
    wait: seconds until the next request, since the model polls
    """

    def __init__(self, most: int, longest_wait: float = 0) -> None:
        """most: rounds without progress after which the turn is stopped, 0: never; longest_wait: seconds between two equal polls"""
        self.rounds = 0
        self.wait = 0.0
        self._stop_at = (most or sys.maxsize) * IDLE
        self._longest_wait = longest_wait
        self._weight = self._changes = self._polls = 0
        self._polled_at = 0.0
        self._has_progressed = True
        self._calls: dict[tuple[str, str], int] = {}
        self._before = self._now = set[tuple[str, str]]()
        self._words: set[str] = set()
        self._done_items: set[str] = set()
        self._step = LoopStep.GO_ON

    def take_calls(self, calls: Iterable[CountedCall], changes: int = 0) -> LoopStep:
        """Count a round: its calls, without those that were refused. There are none in an empty reply. `changes`: how many new states of
        files are known in this session."""
        self.wait = 0.0
        self._before, self._now = self._now, set[tuple[str, str]]()
        has_changed, self._changes = changes > self._changes, changes
        weight = -1
        for call in calls:
            own = self._weigh(call)
            weight = own if weight < 0 else min(weight, own)
        if not has_changed and weight:
            return self._count(weight if weight > 0 else IDLE)
        self._polls = 0
        self._progress()
        return LoopStep.GO_ON

    def take_reply(self) -> LoopStep:
        """Count a final reply after which the agent is to go on by itself. Words alone are no progress, whatever they tick off."""
        had_progress, self._has_progressed = self._has_progressed, False
        return LoopStep.GO_ON if had_progress else self._count(IDLE)

    def forget(self) -> None:
        """The model knows earlier results no longer: to see them again is progress."""
        self._calls.clear()
        self._words.clear()

    def forgive(self) -> None:
        """All is made up for, or a person said: go on."""
        self.rounds = self._weight = 0
        self._step = LoopStep.GO_ON

    def _progress(self) -> None:
        self._has_progressed = True
        if self._weight <= RECOVERY:
            self.rounds, self._weight, self._step = 0, 0, LoopStep.GO_ON
        else:
            self.rounds, self._weight = max(self.rounds - RECOVERY // IDLE, 0), self._weight - RECOVERY

    def _weigh(self, call: CountedCall) -> int:
        """Return 0 for progress, else what the round counts if no other call of it made progress."""
        key, result = (call.name, call.arguments), hash(call.result)
        self._now.add(key)
        before = self._calls.get(key)
        self._calls[key] = result
        if call.name == "update_todos":
            return 0 if self._has_new_done_item(call.arguments) else IDLE
        has_news = before != result and self._has_news(call)
        if has_news or (before is None and call.kind in ACTING and not call.is_error):
            return 0
        if before == result:
            return IDLE
        if key in self._before and (call.kind in POLLING or call.name == "task_output"):
            self._poll()
        return UNPROVEN

    def _has_news(self, call: CountedCall) -> bool:
        """Whether the result has a word that no earlier result has, without what varies and the words of the call's own arguments."""
        text = call.result
        if len(text) > 2 * LONGEST_LOOK:
            text = f"{text[:LONGEST_LOOK]}\n{text[-LONGEST_LOOK:]}"
        words = set(_WORD.findall(_VARYING.sub("#", text).lower()))
        news = words - self._words
        self._words |= words
        return bool(news) and not news.issubset(_WORD.findall(call.arguments[: 2 * LONGEST_LOOK].lower()))

    def _has_new_done_item(self, text: str) -> bool:
        done = set(_DONE_ITEM.findall(text.replace("\\n", "\n"))) - self._done_items
        self._done_items |= done
        return bool(done)

    def _poll(self) -> None:
        """Space equal polls: 1, 2, 4 … seconds from one to the next."""
        target, self._polls = min(2.0**self._polls, self._longest_wait), self._polls + 1
        now = monotonic()
        self.wait = max(self._polled_at + target - now, 0.0) if self._polls > 1 else 0.0
        self._polled_at = now + self.wait

    def _count(self, weight: int) -> LoopStep:
        self.rounds += 1
        self._weight += weight
        steps = (LoopStep.NUDGE, NUDGE_AT * IDLE), (LoopStep.ASK, ASK_AT * IDLE), (LoopStep.STOP, self._stop_at)
        due = max((step for step, least in steps if self._weight >= least), default=LoopStep.GO_ON)
        if due is not LoopStep.STOP and due <= self._step:  # it was taken
            return LoopStep.GO_ON
        self._step = due
        return due
