"""What a model's stream is made of. Every adapter yields these and nothing else; the last one is an End."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from cru.values.messages import Thinking, Usage


class Text(Struct, frozen=True):
    """A piece of the answer."""

    text: str


class Thought(Struct, frozen=True):
    """A piece of visible reasoning."""

    text: str


class ThoughtBlock(Struct, frozen=True):
    """A whole reasoning block, to be kept in the log and sent back."""

    block: Thinking


class CallPart(Struct, frozen=True):
    """A fragment of a tool call. `index` tells calls of one reply apart; id and name come once, arguments in pieces."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class End(Struct, frozen=True):
    """The reply is whole. reason: stop, tool_calls, length, content_filter or the provider's own word."""

    reason: str = "stop"
    usage: Usage = Usage()


Delta: TypeAlias = Text | Thought | ThoughtBlock | CallPart | End
