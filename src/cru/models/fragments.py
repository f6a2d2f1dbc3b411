"""Each message is encoded once: its bytes are kept as long as it is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cru.values.messages import Message

_SLACK = 64


class FragmentCache:
    """Bytes of messages by identity. The message is held too, so an id cannot be taken over by another object."""

    def __init__(self, encode: Callable[[Message], bytes]) -> None:
        self._encode = encode
        self._known: dict[int, tuple[Message, bytes]] = {}

    def all(self, messages: Sequence[Message]) -> list[bytes]:
        """The bytes of each message, in order; b"" for one that is not sent."""
        known, encode = self._known, self._encode
        fragments = []
        for message in messages:
            entry = known.get(id(message))
            if entry is None:
                entry = known[id(message)] = message, encode(message)
            fragments.append(entry[1])
        if len(known) > 2 * len(messages) + _SLACK:
            self._known = {id(message): known[id(message)] for message in messages}
        return fragments


class Last:
    """Remembers the bytes of the last value, compared by equality (system prompt, tools)."""

    def __init__(self) -> None:
        self._value: object = None
        self._bytes = b""

    def get(self, value: object, encode: Callable[[], bytes]) -> bytes:
        if value is not self._value and value != self._value:
            self._value, self._bytes = value, encode()
        return self._bytes
