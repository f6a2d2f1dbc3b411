"""What a model reads and says: messages, tool calls, thinking, requests, usage; and the deltas of its stream."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct, field

if TYPE_CHECKING:
    from cru.core.base.values.interruptions import Delayed

Role = Literal["user", "assistant", "tool"]


class ToolCall(Struct, frozen=True):
    """One call that a model asked for. `arguments` is the raw JSON text as the model wrote it (may be invalid)."""

    id: str
    name: str
    arguments: str = "{}"


class Thinking(Struct, frozen=True, omit_defaults=True):
    """A reasoning block. `data` is the provider's own block, sent back unchanged, and only to that provider."""

    provider: str
    text: str = ""
    data: dict[str, Any] = {}


class Image(Struct, frozen=True, omit_defaults=True):
    """An image that a context keeps.

    digest: SHA-256 of its bytes in hex, which names its file
    name: what people call it
    size: bytes
    width, height: pixels, 0: not known
    """

    digest: str
    media_type: str
    name: str = ""
    size: int = 0
    width: int = 0
    height: int = 0

    @property
    def about(self) -> str:
        """ "a.png, 640x480 png, 12 kB" """
        pixels = f"{self.width}x{self.height} " if self.width and self.height else ""
        return f"{self.name}, {pixels}{self.media_type.removeprefix('image/')}, {-(-self.size // 1000)} kB"

    @property
    def tokens(self) -> int:
        """What it takes of a model's window, roughly: 750 pixels make a token, and large images are scaled down."""
        return min(self.width * self.height // 750 or 1600, 1600)


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of a conversation; `ref` is the id of the log entry it comes from ("" if made for one request)."""

    role: Role
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    is_error: bool = False
    thinking: tuple[Thinking, ...] = ()
    ref: str = ""
    images: tuple[Image, ...] = ()


class Span(Struct, frozen=True):
    """One section of the system prompt. `origin` says where it comes from (a file, a setting, a plugin)."""

    name: str
    origin: str
    text: str


class ToolSpec(Struct, frozen=True):
    """A tool as the model sees it; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


class FailureKind(StrEnum):
    """Why a call came to nothing (`ToolFailed.which`): refused (policy to error), not as its schema says, failed, or not run to its end."""

    POLICY = "policy"
    HOOK = "hook"
    HUMAN = "human"
    TIMEOUT = "timeout"
    ERROR = "error"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    FAILED = "failed"
    HALTED = "halted"
    INTERRUPTED = "interrupted"


ALWAYS_TOLD = frozenset(FailureKind) - {
    FailureKind.HUMAN,
    FailureKind.FAILED,
    FailureKind.HALTED,
    FailureKind.INTERRUPTED,
}
"""Why a call came to nothing, as far as nobody else says so."""


class OfferedNote(Struct, frozen=True):
    """A note that may stand beside a prompt. index: from 1; path: below the vault; snippet: what the model reads of it"""

    index: int
    title: str = ""
    path: str = ""
    score: float = 0.0
    snippet: str = ""


class Request(Struct, frozen=True):
    """Everything that one model request contains. `parameters` are sampling options by their OpenAI names; `load_image` gives the bytes
    of an image in its messages, None if they are not there."""

    model: str
    system: tuple[Span, ...] = ()
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    parameters: dict[str, Any] = {}
    load_image: Callable[[Image], bytes | None] | None = None


class Usage(Struct, frozen=True):
    """Tokens of one request as the provider counted them. `input` includes cache reads and writes.

    cost: US dollars; None: not known
    is_estimated: the provider counted nothing, so the tokens are estimated from the sizes of the texts
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None
    is_estimated: bool = False

    @property
    def tokens(self) -> int:
        return self.input + self.output


def system_text(spans: tuple[Span, ...]) -> str:
    """The system prompt as one text: spans in order, a blank line between."""
    return "\n\n".join(s.text for s in spans if s.text)


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
    """A fragment of a tool call. `index` tells calls of one reply apart; the id comes once, name and arguments in pieces."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class End(Struct, frozen=True):
    """The reply is whole. reason: stop, tool_calls, length, content_filter or the provider's own word."""

    reason: str = "stop"
    usage: Usage = Usage()


Delta: TypeAlias = "Text | Thought | ThoughtBlock | CallPart | End | Delayed"


MESSAGE = "message"
TOOL_CALL = "tool_call"
TOOL_RESULT = "tool_result"
RESOLVED = "message_resolved"
LEG_ENDED = "leg_ended"
ANCHOR = "anchor"
UNANSWERED = "unanswered"
"""The reason of a resolution that takes a prompt without an answer out of what the model sees."""


class Entry(Struct, frozen=True, omit_defaults=True, gc=False):
    """id is a UUIDv4, timestamp unix seconds; metadata holds what chibi has no field for (docs/contexts.md)."""

    id: str
    timestamp: int
    from_: str = field(name="from", default="")
    to: str = ""
    content: str = ""
    entry_type: str = MESSAGE
    role: str = ""
    tool_call_id: str = ""
    metadata: dict[str, Any] = {}
    flow_control: bool = False
