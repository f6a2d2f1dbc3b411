"""What adapters share on the way out: parameters by their OpenAI names as each provider takes them (what it cannot take is named, not
sent), and bytes that are encoded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct

from cru.core.base.values.messages import Image, Message, ToolCall, ToolSpec
from cru.core.models.protocol import LONGEST_ID, LONGEST_NAME, NAME_CHARACTERS, RequestBody, Say

if TYPE_CHECKING:
    from cru.core.models.images import ImageWriter
    from cru.core.models.valid_history import UniqueIds


class ProviderParameters(Struct, frozen=True):
    """The parameters of a request in a provider's own words.

    fields: as they are sent
    dropped: names of those that the provider cannot take
    """

    fields: dict[str, object]
    dropped: tuple[str, ...] = ()


NOT_FIELDS = ("prompt_caching", "reasoning", "parallel_tool_calls", "tool_choice")


def openai_parameters(parameters: dict[str, object], provider: str, has_tools: bool) -> ProviderParameters:
    """For OpenAI-compatible servers. Names outside the table (top_k, min_p, …) pass as they are: such servers know their own."""
    fields = {key: value for key, value in parameters.items() if key not in NOT_FIELDS and value is not None}
    if provider == "openai" and "max_tokens" in fields:
        fields["max_completion_tokens"] = fields.pop("max_tokens")
    if has_tools:
        fields |= {
            key: parameters[key] for key in ("parallel_tool_calls", "tool_choice") if parameters.get(key) is not None
        }
    reasoning = table_of(parameters.get("reasoning"))
    if not reasoning:
        return ProviderParameters(fields)
    if provider == "openrouter":
        return ProviderParameters({**fields, "reasoning": reasoning})
    if "effort" in reasoning:
        fields["reasoning_effort"] = reasoning["effort"]
    elif reasoning.get("enabled") is False:
        fields["reasoning_effort"] = "none"
    unknown = [key for key in reasoning if key not in ("effort", "enabled")]
    return ProviderParameters(fields, tuple(f"reasoning.{key}" for key in unknown))


def table_of(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


decode_object = msgspec.json.Decoder(dict[str, object]).decode


def valid_calls(calls: tuple[ToolCall, ...], id_characters: str) -> Sequence[ToolCall]:
    """The calls of a message with ids, names and arguments that every server takes; the same object if they are so already."""
    try:
        for call in calls:
            if not call.name or len(call.name) > LONGEST_NAME or call.name.strip(NAME_CHARACTERS):
                raise ValueError(call.name)
            if not call.id or len(call.id) > LONGEST_ID or call.id.strip(id_characters):
                raise ValueError(call.id)
            if call.arguments:
                decode_object(call.arguments)  # its values, too: numbers may be out of range
    except (ValueError, RecursionError):  # msgspec's DecodeError is a ValueError
        from cru.core.models.valid_history import valid_call

        return [valid_call(call, id_characters) for call in calls]
    return calls


def valid_id(identity: str, characters: str) -> str:
    """The id of a call as servers take it."""
    if identity and len(identity) <= LONGEST_ID and not identity.strip(characters):
        return identity
    from cru.core.models import valid_history

    return valid_history.valid_id(identity, characters)


def tool_schema(tool: ToolSpec) -> dict[str, object]:
    """The schema of a tool's arguments as strict servers take it: an object with properties, without a choice at its top."""
    schema = tool.parameters
    if schema.get("type") == "object" and "properties" in schema and not {"oneOf", "anyOf", "allOf"} & schema.keys():
        return schema
    from cru.core.models.valid_history import valid_schema

    return valid_schema(schema)


BLOCK_BYTES = 128 << 10
_BLOCK_MESSAGES = 16
_SLACK = 64
_REMEMBERED = 2


class Notation(Protocol):
    """How an adapter writes messages."""

    def encode(self, message: Message) -> bytes:
        """One message, or what is left of it; b"" if nothing is."""
        ...

    def join(self, messages: Sequence[Message], fragments: Sequence[bytes]) -> bytes:
        """Encoded messages as elements of an array, with commas between them."""
        ...

    def may_part(self, messages: Sequence[Message], fragments: Sequence[bytes], at: int) -> bool:
        """Whether what stands before message `at` is written the same whatever follows that message."""
        ...


class _Block(Struct, frozen=True):
    """A run of messages, joined.

    end: the number of messages up to its end
    data: their bytes
    """

    end: int
    data: bytes


class _Conversation:
    """The messages of the last request of a conversation: those that stood in the request before it too are joined into blocks."""

    def __init__(self, notation: Notation) -> None:
        self._notation = notation
        self._ids: set[str] = set()
        self._scanned = 0
        self._unique: UniqueIds | None = None
        self._messages: Sequence[Message] = ()
        self._blocks: list[_Block] = []
        self._fragments: dict[int, tuple[Message, bytes]] = {}

    def begins_like(self, messages: Sequence[Message]) -> bool:
        return bool(messages and self._messages) and messages[0] is self._messages[0]

    def encode(self, messages: Sequence[Message]) -> list[bytes]:
        """The messages as parts of an array; a comma belongs between two of them."""
        same = _count_same(self._messages, messages)
        self._messages = tuple(messages)
        messages = self._with_unique_ids(self._messages, same)
        blocks = self._blocks
        while blocks and blocks[-1].end >= same:  # what follows a block must be the same too: see Notation.may_part
            blocks.pop()
        start = blocks[-1].end if blocks else 0
        tail = messages[start:]
        fragments = self._encode_each(tail)
        cut = self._seal(start, tail, fragments, same - 1 - start)
        parts = [block.data for block in blocks]
        if rest := self._notation.join(tail[cut:], fragments[cut:]):
            parts.append(rest)
        return parts

    def _with_unique_ids(self, messages: Sequence[Message], same: int) -> Sequence[Message]:
        """Return messages in which no two calls have the same id; `same` of them are those of the last request."""
        if self._unique is None:
            if same < self._scanned:
                self._scanned = 0
                self._ids.clear()
            ids = [call.id for message in messages[self._scanned :] for call in message.calls]
            if len(ids) == len(set(ids)) and self._ids.isdisjoint(ids):
                self._ids.update(ids)
                self._scanned = len(messages)
                return messages
            from cru.core.models.valid_history import UniqueIds

            self._unique = UniqueIds()
        return self._unique.apply(messages, same)

    def _encode_each(self, messages: Sequence[Message]) -> list[bytes]:
        known, encode = self._fragments, self._notation.encode
        fragments: list[bytes] = []
        for message in messages:
            entry = known.get(id(message))
            if entry is None:
                entry = known[id(message)] = message, encode(message)
            fragments.append(entry[1])
        if len(known) > 2 * len(messages) + _SLACK:
            self._fragments = {id(message): known[id(message)] for message in messages}
        return fragments

    def _seal(self, start: int, messages: Sequence[Message], fragments: Sequence[bytes], most: int) -> int:
        """Join the first messages, `most` at most, into a block, if that is worth it; how many they were."""
        if most <= 0 or (most < _BLOCK_MESSAGES and sum(map(len, fragments[:most])) < BLOCK_BYTES):
            return 0
        while most and not self._notation.may_part(messages, fragments, most):
            most -= 1
        if data := self._notation.join(messages[:most], fragments[:most]):
            self._blocks.append(_Block(start + most, data))
            for message in messages[:most]:
                self._fragments.pop(id(message), None)
        return most if data else 0


class ConversationEncoder:
    """Messages as bytes, each encoded once: messages are immutable, so the same object has the same bytes. Requests of a conversation
    that begin alike share the very same parts. Two conversations are remembered: the agent's, and one beside it."""

    def __init__(self, notation: Notation) -> None:
        self._notation = notation
        self._recent: list[_Conversation] = []

    def encode(self, messages: Sequence[Message]) -> list[bytes]:
        """The messages as parts of an array; a comma belongs between two of them."""
        known = (conversation for conversation in self._recent if conversation.begins_like(messages))
        conversation = next(known, None) or _Conversation(self._notation)
        self._recent = [conversation, *(other for other in self._recent if other is not conversation)][:_REMEMBERED]
        return conversation.encode(messages)


def _count_same(old: Sequence[Message], new: Sequence[Message]) -> int:
    """How many messages both begin with, the same objects."""
    shortest = min(len(old), len(new))
    if all(map(is_, old, new)):
        return shortest
    return next(number for number, pair in enumerate(zip(old, new, strict=False)) if pair[0] is not pair[1])


class PlainNotation:
    """Each message is an element of its own, or none."""

    def __init__(self, encode: Callable[[Message], bytes]) -> None:
        self.encode = encode

    def join(self, messages: Sequence[Message], fragments: Sequence[bytes]) -> bytes:
        return b",".join(filter(None, fragments))

    def may_part(self, messages: Sequence[Message], fragments: Sequence[bytes], at: int) -> bool:
        return True


class PictureSource:
    """What writes the images of an adapter's messages, made with the first one.

    setting: whether settings say that the model takes images; None: as its id tells
    """

    def __init__(self, provider: str, name: str, setting: bool | None, say: Say) -> None:
        self._facts = provider, name, setting, say
        self._writer: ImageWriter | None = None
        self.load: Callable[[Image], bytes | None] | None = None

    @property
    def is_used(self) -> bool:
        """Whether there was an image."""
        return self._writer is not None

    @property
    def takes_images(self) -> bool:
        from cru.core.models.images import takes_images

        _, name, setting, _ = self._facts
        return takes_images(name) if setting is None else setting

    def writer(self) -> ImageWriter:
        if self._writer is None:
            from cru.core.models.images import ImageWriter

            provider, name, _, say = self._facts
            self._writer = ImageWriter(self.takes_images, f"{provider}:{name}", say)
        self._writer.load = self.load or (lambda _: None)
        return self._writer


def match_results(
    messages: Sequence[Message], fragments: Sequence[bytes], encode: Callable[[Message], bytes]
) -> tuple[Sequence[Message], Sequence[bytes]]:
    """Messages of which every call has its result, and every result its call; the same objects if they have."""
    results = [message.call_id for message in messages if message.role == "tool"]
    if results == [call.id for message in messages for call in message.calls]:
        return messages, fragments
    from cru.core.models.valid_history import match_results

    return match_results(messages, fragments, encode)


class ChatNotation(PlainNotation):
    """Every call has a result, and roles alternate. Images of tools' results follow the last result of their row."""

    def __init__(self, encode: Callable[[Message], bytes], pictures: PictureSource) -> None:
        super().__init__(encode)
        self._pictures = pictures

    def join(self, messages: Sequence[Message], fragments: Sequence[bytes]) -> bytes:
        messages, fragments = match_results(messages, fragments, self.encode)
        if self._pictures.is_used:
            from cru.core.models.images import join_chat

            fragments = join_chat(messages, fragments)
        else:
            roles = "".join(map(attrgetter("role"), messages))
            if all(fragments) and "useruser" not in roles and "assistantassistant" not in roles:
                return b",".join(fragments)
        from cru.core.models.valid_history import join_neighbours

        return b",".join(join_neighbours([*filter(None, fragments)]))

    def may_part(self, messages: Sequence[Message], fragments: Sequence[bytes], at: int) -> bool:
        role, before = messages[at].role, messages[at - 1]
        return bool(role not in ("tool", before.role) and not before.calls and fragments[at - 1] and fragments[at])


class PictureAdapter:
    """What adapters of models that may take images have in common."""

    _pictures: PictureSource

    @property
    def takes_images(self) -> bool:
        """Whether the model takes images, as far as it is known."""
        return self._pictures.takes_images


def assemble(opening: bytes, elements: Sequence[bytes], closing: bytes) -> RequestBody:
    """A body: `opening` ends where the array of messages begins or has its first element, `closing` ends the array."""
    parts = [opening]
    for element in elements:
        if parts[-1] is not opening or not opening.endswith(b"["):
            parts.append(b",")
        parts.append(element)
    return RequestBody((*parts, closing))


class LastValue:
    """Remembers the bytes of the last value, compared by equality (system prompt, tools)."""

    def __init__(self) -> None:
        self._value: object = None
        self._bytes = b""

    def get(self, value: object, encode: Callable[[], bytes]) -> bytes:
        if value is not self._value and value != self._value:
            self._value, self._bytes = value, encode()
        return self._bytes


class LastBytes:
    """Gives the last object again as long as the bytes are equal."""

    def __init__(self) -> None:
        self._bytes = b""

    def get(self, data: bytes) -> bytes:
        if data != self._bytes:
            self._bytes = data
        return self._bytes
