"""Deltas: raw and at once for faces, coalesced and in order for handlers; the stream never waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.core.events.world import World
from tests.kit.growth import TIMES, assert_linear

from cru.core.events.answers import transform
from cru.core.events.bus import purpose
from cru.core.events.payloads import AgentResponded, AgentThinking, StreamingDelta
from cru.core.events.stamp import Event, Origin
from cru.core.events.stream import CHUNK, MOST


def text(payload: object) -> str:
    if isinstance(payload, AgentThinking):
        return f"<{payload.thought}>"
    assert isinstance(payload, StreamingDelta)
    return payload.delta


def listening(world: World, nap: float = 0.0) -> list[str]:
    heard: list[str] = []

    async def call(event: Event) -> None:
        heard.append(text(event.payload))
        if nap:
            await asyncio.sleep(nap)

    world.on("streaming:delta", call)
    world.on("agent:thinking", call)
    return heard


def run(world: World, body: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await body()
        await world.bus.close()

    asyncio.run(whole())


def test_faces_get_raw_deltas_at_once_and_handlers_get_them_merged_and_in_order() -> None:
    world = World()
    heard = listening(world)

    async def body() -> None:
        for part in ("a", "b"):
            world.bus.offer(AgentThinking(part))
        for number, part in enumerate(("c", "d", "e")):
            world.bus.offer(StreamingDelta(part, number))
        world.bus.offer(AgentThinking("f"))
        assert [text(item.payload) for item in world.published] == ["<a>", "<b>", "c", "d", "e", "<f>"]
        assert not heard
        await world.bus.flush()

    run(world, body)
    assert heard == ["<ab>", "cde", "<f>"]
    assert len(world.published) == 6, "what handlers got is not told to faces a second time"


def test_nothing_is_kept_for_handlers_if_nobody_listens() -> None:
    world = World()

    async def body() -> None:
        world.bus.offer(StreamingDelta("a"))
        await world.bus.flush()
        assert len(asyncio.all_tasks()) == 1

    run(world, body)
    assert not world.lines


def test_handlers_hear_after_the_window_without_a_flush() -> None:
    world = World()
    heard = listening(world)

    async def body() -> None:
        world.bus.offer(StreamingDelta("a"))
        await asyncio.sleep(0.02)
        assert not heard
        await asyncio.sleep(0.08)
        assert heard == ["a"]

    run(world, body)


def test_a_full_chunk_does_not_wait_for_the_window() -> None:
    world = World()
    heard = listening(world)

    async def body() -> None:
        world.bus.offer(StreamingDelta("x" * CHUNK))
        for _ in range(5):
            await asyncio.sleep(0)
        assert [len(part) for part in heard] == [CHUNK]

    run(world, body)


def test_flush_waits_for_a_slow_handler_and_for_what_came_meanwhile() -> None:
    world = World()
    heard = listening(world, nap=0.02)

    async def body() -> None:
        world.bus.offer(StreamingDelta("x" * CHUNK))
        while not heard:  # its handler has begun
            await asyncio.sleep(0)
        world.bus.offer(StreamingDelta("tail"))
        await world.bus.flush()
        assert heard[-1] == "tail"

    run(world, body)


def test_what_waits_for_a_slow_handler_is_bounded_and_told_once() -> None:
    world = World()
    heard = listening(world)

    async def body() -> None:
        for _ in range(3 * MOST // 4096):
            world.bus.offer(StreamingDelta("x" * 4096))
        await world.bus.flush()

    run(world, body)
    assert MOST <= sum(map(len, heard)) <= MOST + 4096
    assert [w for w in world.warnings if "too slow" in w] == world.warnings
    assert len(world.warnings) == 1


@pytest.mark.slow
def test_many_small_parts_are_merged_quickly() -> None:
    lengths = set()

    def work(parts: int) -> Callable[[], object]:
        world = World()
        heard = listening(world)

        async def body() -> None:
            for _ in range(parts):
                world.bus.offer(StreamingDelta("abcd"))
            await world.bus.flush()
            lengths.add(sum(map(len, heard)))

        return lambda: run(world, body)

    assert_linear(work, MOST // 16)
    assert lengths == {MOST // 4, MOST // 4 // TIMES}


def test_a_handler_of_deltas_that_flushes_does_not_wait_for_itself() -> None:
    world = World()
    done: list[str] = []

    async def call(event: Event) -> None:
        await world.bus.flush()
        done.append("done")

    world.on("streaming:delta", call)

    async def body() -> None:
        world.bus.offer(StreamingDelta("a"))
        await asyncio.wait_for(world.bus.flush(), 1)

    run(world, body)
    assert done == ["done"]
    assert not world.warnings


def test_a_failing_handler_of_deltas_ends_nothing() -> None:
    world = World()

    async def body() -> None:
        world.bus.offer(StreamingDelta("a"))
        await world.bus.flush()
        world.bus.offer(StreamingDelta("b"))
        await world.bus.flush()

    world.on("streaming:delta", lambda _event: 1 / 0, "bad")
    run(world, body)
    assert len(world.warnings) == 2
    assert "ZeroDivisionError" in world.warnings[0]


def test_ctrl_c_during_a_flush_passes_through_and_later_deltas_are_heard() -> None:
    world = World()
    heard: list[str] = []

    async def call(event: Event) -> None:
        await asyncio.sleep(0.05 if text(event.payload) == "a" else 0)
        heard.append(text(event.payload))

    world.on("streaming:delta", call)

    async def body() -> None:
        world.bus.offer(StreamingDelta("a"))
        task = asyncio.ensure_future(world.bus.flush())
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await asyncio.sleep(0.1)
        world.bus.offer(StreamingDelta("b"))
        await world.bus.flush()

    run(world, body)
    assert heard == ["b"], "the handler that made the reply wait is ended, too"


def test_deltas_offered_for_a_purpose_keep_it() -> None:
    world = World()
    heard: list[tuple[str, str]] = []
    world.on("streaming:delta", lambda e: heard.append((e.stamp.purpose, text(e.payload))), "other")
    world.on("streaming:delta", lambda e: heard.append(("wrong", "")), "titles", pattern="")

    async def body() -> None:
        with purpose("title", "titles"):
            world.bus.offer(StreamingDelta("a"))
        world.bus.registry.drop_owner("titles")
        world.bus.offer(StreamingDelta("b"))
        await world.bus.flush()

    run(world, body)
    assert heard == [("title", "a"), ("", "b")]


def test_a_holding_handler_keeps_deltas_from_faces_and_they_show_display() -> None:
    world = World()
    heard = listening(world)
    world.on("agent:responded", transform(display="[censored]"), hold=True)
    child = world.bus.child(Origin("s", "r", "sub", "", 1))

    async def body() -> None:
        world.bus.offer(StreamingDelta("secret"))
        assert not world.published
        child.offer(StreamingDelta("of a sub-agent"))
        assert len(world.published) == 1, "the handler does not hear sub-agents, so it holds nothing of theirs"
        await world.bus.flush()
        await world.bus.dispatch(AgentResponded("secret", "secret", True))
        await child.close()

    run(world, body)
    assert heard == ["secret"]
    last = world.published[-1].payload
    assert isinstance(last, AgentResponded)
    assert last.display == "[censored]"
