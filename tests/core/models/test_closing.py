"""What reads a reply is closed by whoever began it: what is left to the event loop costs it a task and a wake-up each round."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from tests.core.models.harness import Harness, request_of
from tests.core.models.wire import Step, delta, finish, serve, sse, stream, whole

from cru.core.models.protocol import ModelError

MESSAGE = {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}
REPLIES: dict[str, Step] = {
    "a stream with an end mark": stream(sse(delta(content="hello"), finish())),
    "a stream with something behind its end mark": stream(sse(delta(content="hello"), finish()), b": bye\n\n"),
    "a stream without one": stream(sse(delta(content="hello"), finish(), done=False)),
    "a whole message": whole(MESSAGE),
    "a stream that breaks the protocol": stream(b"data: {\n\n", b"data: [DONE]\n\n"),
}


@pytest.mark.parametrize("kind", REPLIES)
def test_nothing_is_left_to_the_event_loop(kind: str) -> None:
    left: list[str] = []

    async def main() -> None:
        hooks = sys.get_asyncgen_hooks()

        def note(generator: Any) -> None:
            left.append(generator.__qualname__)
            if hooks.finalizer is not None:
                hooks.finalizer(generator)

        async with serve(REPLIES[kind]) as wire:
            sys.set_asyncgen_hooks(finalizer=note)
            try:
                await Harness(wire.url).ask(request_of("hi"))
            except ModelError:
                assert kind == "a stream that breaks the protocol"
            finally:
                sys.set_asyncgen_hooks(finalizer=hooks.finalizer)

    asyncio.run(main())
    assert left == []
