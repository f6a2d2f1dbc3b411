"""What every dispatch leaves: scope and stamp, the stream, the journal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tests.core.events.world import CALL, World

from cru.core.events import answers as a
from cru.core.events.answers import Change
from cru.core.events.bus import Bus
from cru.core.events.payloads import AgentResponded, MessageReceived, PermissionRequested, ToolCalled, TurnComplete
from cru.core.events.stamp import Event, Origin

DONE = TurnComplete("done", "text", "ref_1")


def noting(heard: list[tuple[str, str]], scope: str) -> Callable[[Event], None]:
    return lambda event: heard.append((scope, event.name))


def test_the_main_agents_handlers_do_not_hear_sub_agents_and_tree_handlers_do() -> None:
    world = World()
    child = world.bus.child(Origin("session", "run", "sub-1", "call_9", 1))
    heard: list[tuple[str, str]] = []
    for scope in ("", "main", "tree"):
        for event in ("turn:complete", "tool:called"):
            world.on(event, noting(heard, scope), scope=scope)

    async def run() -> None:
        await child.dispatch(DONE)
        await child.dispatch(ToolCalled("bash", {}, "c"))

    asyncio.run(run())
    assert heard == [("tree", "turn:complete"), ("", "tool:called"), ("tree", "tool:called")]
    assert {h.skipped for line in world.lines for h in line.heard} == {"", "main agent only"}


def test_every_delivered_event_is_stamped() -> None:
    world = World(Origin("s-1", "r-1"))
    child = world.bus.child(Origin("s-2", "r-1", "sub-1", "call_9", 2))
    child.source, child.is_continuation = "continuation", True
    stamps = []

    async def inner(event: Event) -> None:
        stamps.append(event.stamp)
        await child.dispatch(ToolCalled("bash", {}, "c"))

    world.on("tool:before_call", inner, "outer")
    world.on("tool:called", lambda e: stamps.append(e.stamp), "inner")
    before = time.time()
    world.send()
    outer, nested = stamps
    assert (outer.session_id, outer.run_id, outer.agent_id, outer.parent_call_id) == ("s-1", "r-1", "main", "")
    assert (outer.depth, outer.is_sub_agent, outer.dispatch_seq, outer.parent_seq) == (0, False, 1, 0)
    assert (outer.is_continuation, outer.source, outer.purpose) == (False, "", "")
    assert before <= outer.timestamp <= nested.timestamp <= time.time()
    assert (nested.session_id, nested.run_id, nested.agent_id, nested.parent_call_id) == (
        "s-2",
        "r-1",
        "sub-1",
        "call_9",
    )
    assert (nested.depth, nested.is_sub_agent, nested.dispatch_seq, nested.parent_seq) == (2, True, 2, 1)
    assert (nested.is_continuation, nested.source) == (True, "continuation")


def test_the_stream_gets_every_event_after_its_chain() -> None:
    world = World()
    world.on("agent:responded", a.transform(display="[hidden]"))
    world.send(AgentResponded("secret", "secret", True))
    world.send(DONE)
    first, second = world.published
    assert isinstance(first.payload, AgentResponded)
    assert (first.payload.content, first.payload.display) == ("secret", "[hidden]")
    assert first.answer.changes == (Change("display", "set", "[hidden]"),)
    assert first.stamp is not None and second.stamp is not None
    assert second.payload is DONE
    assert second.stamp.dispatch_seq == first.stamp.dispatch_seq + 1


def test_the_journal_names_what_happened_and_only_what_was_changed() -> None:
    world = World(Origin("s", "r"))
    world.on("message:received", a.transform(content="new"), "one", where="one.lua:7")
    world.send(MessageReceived("old", ref="msg_1"))
    line = world.line
    assert (line.event, line.session, line.run, line.agent, line.seq) == ("message:received", "s", "r", "main", 1)
    assert (line.ref, line.decision, line.changed) == ("msg_1", "none", {"content": "new"})
    assert (line.heard[0].owner, line.heard[0].where) == ("one", "one.lua:7")
    assert line.ms >= line.heard[0].ms >= 0
    world.send(CALL)
    assert len(world.lines) == 1, "nobody listens to the second"


def test_the_journal_names_the_call_and_what_patterns_see() -> None:
    world = World()
    world.on("permission:requested", None, pattern="read")
    world.send(PermissionRequested("bash", "shell", "ls", "call_7"))
    assert (world.line.ident, world.line.call, world.line.changed) == ("bash", "call_7", {})
    assert world.line.heard[0].skipped == "pattern read"


def test_a_journal_that_cannot_be_written_is_reported_once_and_ends_nothing() -> None:
    class Full:
        def write(self, line: object) -> None:
            raise OSError(28, "No space left on device")

    world = World()
    bus = Bus(Origin("s", "r"), world.bus.registry, world.bus.stream, Full())
    world.on("tool:before_call", a.cancel("no"))
    assert asyncio.run(bus.dispatch(CALL)).answer.reason == "no"
    assert asyncio.run(bus.dispatch(CALL)).answer.reason == "no"
    assert world.warnings == ["the journal cannot be written: [Errno 28] No space left on device"]
