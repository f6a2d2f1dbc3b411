"""The port that every model adapter fills, the errors it may raise, and what sends its requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import Delta, Request

if TYPE_CHECKING:
    from cru.core.base.net import Response


class ModelError(CruError):
    """A request could not be answered. `retryable` says whether the same request may succeed later, `others_may_answer` whether
    another model of a category is asked.

    ModelError
    ├── NoModel           nothing is configured (exit 5)
    │   └── NoModelNamed    no setting says which one; a person may be asked
    ├── ModelUnavailable  connection refused or lost, 5xx, 408/409/429 after all retries
    ├── ModelRefused      4xx: key, bad request
    │   ├── OutOfCredit     402, quota
    │   └── ContentRefused  the provider's rules forbid the content
    ├── ContextTooLong    the provider says that the request is too large
    └── BrokenReply       the stream ended early or cannot be understood
    """

    retryable = False
    others_may_answer = False
    status: int = 0
    """Of the response, 0 if there was none."""
    retry_after: float | None = None
    """Seconds that the server asks to wait before the next try."""


class NoModel(ModelError):
    code = 5


class NoModelNamed(NoModel):
    pass


class ModelUnavailable(ModelError):
    retryable = True
    others_may_answer = True


class ModelRefused(ModelError):
    pass


class OutOfCredit(ModelRefused):
    others_may_answer = True


class ContentRefused(ModelRefused):
    others_may_answer = True


class ContextTooLong(ModelError):
    others_may_answer = True


class BrokenReply(ModelError):
    others_may_answer = True

    def __init__(self, message: str, hint: str = "", *, retryable: bool = True) -> None:
        super().__init__(message, hint)
        self.retryable = retryable


Say = Callable[[str], None]
"""Takes a sentence for the user."""


class RequestBody(Struct, frozen=True):
    """The bytes of a request. What it shares with the request before it are the very same objects, so that nobody reads them again.

    parts: in order
    """

    parts: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(map(len, self.parts))

    def join(self) -> bytes:
        """The whole, copied."""
        return b"".join(self.parts)


class Model(Protocol):
    """One model of one provider. `encode` is pure: equal requests give equal bytes, and a request that only adds messages
    shares all bytes up to the first added one. `stream` sends such bytes and yields deltas, the last one an End;
    cancelling it closes the connection."""

    provider: str
    name: str

    def encode(self, request: Request) -> RequestBody: ...

    def stream(self, body: RequestBody) -> AsyncGenerator[Delta, None]: ...

    async def close(self) -> None: ...


Auth = Callable[[str, str], Awaitable[Mapping[str, str]]]
"""Headers for a request, from (provider, model)."""


class Sender(Protocol):
    """What sends a request and gives the answer as it comes."""

    async def post_stream(self, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Response: ...


class AuthenticatedSender:
    """Adds what `auth` gives to each request. Raises what it raises; then nothing is sent."""

    def __init__(self, sender: Sender, auth: Auth, provider: str, model: str) -> None:
        self._sender, self._auth, self._about = sender, auth, (provider, model)

    async def post_stream(self, url: str, headers: Mapping[str, str], body: Sequence[bytes]) -> Response:
        more = await self._auth(*self._about)
        return await self._sender.post_stream(url, {**headers, **more} if more else headers, body)


NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
"""Of names of tools, as every provider takes them."""
ID_CHARACTERS = NAME_CHARACTERS + ".:"
"""Of ids of calls in OpenAI's language: some models want their own `functions.ls:0` back."""
LONGEST_NAME = 64
LONGEST_ID = 40
"""Characters of an id of a call, as OpenAI takes them, also behind routers; vLLM makes ids of 46."""


def tell_dropped(announced: set[str], say: Say, provider: str, name: str) -> None:
    if name not in announced:
        announced.add(name)
        say(f"{provider} does not take the parameter `{name}`; it is left out")
