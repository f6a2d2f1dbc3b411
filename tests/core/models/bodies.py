"""Requests of one session as hooks, compactions and side requests leave them; their bodies' hashes stand in bodies.json."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from tests.core.models.harness import LS

from cru.core.base.values.messages import Message, Request, Span, Thinking, ToolCall, ToolSpec

HASHES = Path(__file__).with_name("bodies.json")
PROVIDERS = ("openai", "openai_compatible", "openrouter", "anthropic", "scripted", "local")
SYSTEM = (Span("base", "file", "You are “helpful”."), Span("empty", "x", ""), Span("date", "clock", "Today."))
READ = ToolSpec("read", "Read a file", {"type": "object", "properties": {"path": {"type": "string"}}})
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s1"}


def _round(rng: random.Random, number: int) -> list[Message]:
    """A prompt with or without attachments, and what came of it."""
    size = rng.choice([3, 40, 40, 3000, 90_000])
    attached = rng.choice(["", "\n\n## Attached: a.txt\né “x”\u2028"])
    messages = [Message("user", f"prompt {number} " + 'ab\n"\\' * size + attached, ref=f"m{number}")]
    calls = tuple(
        ToolCall(f"c{number}|{i}", "ls", rng.choice(["{}", '{"path":"x y"}', "{bad", ""]))
        for i in range(rng.randrange(4))
    )
    thinking = (
        Thinking("anthropic", "hm", SIGNED),
        Thinking("openrouter", "so", {"reasoning_details": [{"text": "so"}]}),
    )
    text = rng.choice(["", "   ", f"reply {number}"])
    messages.append(Message("assistant", text, calls, thinking=thinking[: rng.randrange(3)], ref=f"r{number}"))
    messages += [
        Message("tool", "out " * rng.randrange(2000), call_id=call.id, is_error=rng.random() < 0.2) for call in calls
    ]
    if rng.random() < 0.2:
        messages.append(Message("user", "from a hook"))
    if calls:
        messages.append(Message("assistant", f"done {number}"))
    return messages


def _rewritten(rng: random.Random, messages: list[Message]) -> list[Message]:
    """What a handler of message:before_send may make of them, for one request."""
    at = rng.randrange(len(messages))
    old = messages[at]
    match rng.randrange(6):
        case 0:
            return messages[at:]
        case 1:
            return [*messages[:at], *messages[at + 1 :]]
        case 2:
            return [*messages[:at], Message(old.role, "cut", old.calls, old.call_id, ref=old.ref), *messages[at + 1 :]]
        case 3:
            return [Message(m.role, m.content, m.calls, m.call_id, m.is_error, m.thinking, m.ref) for m in messages]
        case 4:
            return [*messages[:at], old, Message("user", "added"), *messages[at:]]
        case _:
            return list(reversed(messages))


def session(provider: str) -> Iterator[Request]:
    """The requests that one model object is asked for, in order."""
    rng = random.Random(f"bodies of {provider}")
    messages: list[Message] = []
    tools: tuple[ToolSpec, ...] = (LS, READ)
    for number in range(60):
        messages += _round(rng, number)
        parameters: dict[str, object] = {"temperature": 0.5, "prompt_caching": number % 20 < 15}
        spans = SYSTEM if number % 30 < 25 else SYSTEM[: number % 2]
        yield Request("m1", spans, tuple(messages), tools, parameters)
        if number % 4 == 1:
            yield Request("m1", spans, tuple(_rewritten(rng, messages)), tools, parameters)
        if number % 10 == 3:
            yield Request("m1", (), (Message("user", f"a title for {number}"),), (), {})
        if number == 40:
            del messages[: len(messages) // 2]
            tools = (LS,)
    yield Request("other", (), (), (), {})
