"""A handler that says beforehand that an event is none of its business is skipped: it costs nothing, and the journal says why."""

from __future__ import annotations

import msgspec
from tests.core.events.world import CALL, World

from cru.core.events.answers import Answer, cancel, transform
from cru.core.events.journal import HandlerRecord, SkipKind, SkipReason
from cru.core.events.stamp import Event

MISMATCH = SkipReason(SkipKind.MISMATCH, "bash")


class Choosy:
    """Denies, unless it declines."""

    def __init__(self, reason: SkipReason | None) -> None:
        self.reason = reason
        self.asked: list[Event] = []
        self.called = 0

    def declines(self, event: Event) -> SkipReason | None:
        self.asked.append(event)
        return self.reason

    def __call__(self, event: Event) -> Answer:
        self.called += 1
        return cancel("no")


def test_it_is_journalled_as_skipped_and_has_no_part_in_the_outcome() -> None:
    world, choosy = World(), Choosy(MISMATCH)
    world.on("tool:before_call", choosy, owner="choosy")
    outcome = world.send()
    assert (outcome.by, outcome.answer.decision, choosy.called) == ("", "none", 0)
    assert [(one.owner, one.skipped, one.skip) for one in world.line.heard] == [
        ("choosy", "does not match bash", MISMATCH)
    ]
    assert choosy.asked[0].payload == CALL and choosy.asked[0].name == "tool:before_call"


def test_one_that_does_not_decline_is_called() -> None:
    world, choosy = World(), Choosy(None)
    world.on("tool:before_call", choosy, owner="choosy")
    assert world.send().by == "choosy" and choosy.called == 1


def test_it_is_asked_about_what_earlier_ones_made_of_the_event() -> None:
    world, choosy = World(), Choosy(MISMATCH)
    world.on("tool:before_call", transform(args={"command": "nice ls"}), owner="first")
    world.on("tool:before_call", choosy, owner="choosy")
    world.send()
    assert choosy.asked[0].payload.args == {"command": "nice ls"}  # type: ignore[attr-defined]


def test_once_is_not_used_up_by_declining() -> None:
    world, choosy = World(), Choosy(MISMATCH)
    world.on("tool:before_call", choosy, owner="choosy", once=True)
    world.send()
    choosy.reason = None
    world.send()
    world.send()
    assert choosy.called == 1


def test_nobody_is_asked_after_the_chain_has_ended() -> None:
    world, choosy = World(), Choosy(MISMATCH)
    world.on("tool:before_call", cancel("no"), owner="first")
    world.on("tool:before_call", choosy, owner="choosy")
    world.send()
    assert not choosy.asked and world.line.heard[1].skipped == "cancelled by first"


def test_lines_of_older_and_later_versions_are_read() -> None:
    older = msgspec.json.decode(b'{"owner": "a", "skipped": "not a PreToolUse"}', type=HandlerRecord)
    assert (older.skipped, older.skip) == ("not a PreToolUse", None)
    later = msgspec.json.decode(
        b'{"owner": "a", "skipped": "?", "skip": {"kind": "from tomorrow"}}', type=HandlerRecord
    )
    assert later.skip is not None and later.skip.kind is SkipKind.UNKNOWN
    kinds = [kind for kind in SkipKind if kind is not SkipKind.UNKNOWN]
    assert all(SkipReason(kind, "x").text for kind in kinds)
