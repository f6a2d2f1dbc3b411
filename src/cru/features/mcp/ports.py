"""What a server may want of whoever uses it. The composition root fills it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from cru.features.mcp import McpError


class FormField(Struct, frozen=True):
    """One thing that a server wants to know.

    kind: what its value is
    choices: what may be chosen; (): anything of its kind
    """

    name: str
    title: str
    kind: Literal["string", "number", "integer", "boolean", "array"]
    choices: tuple[str, ...] = ()
    required: bool = False


class Elicitation(Struct, frozen=True):
    """A server asks the person something: to fill a form, or to visit an address."""

    server: str
    message: str
    fields: tuple[FormField, ...] = ()
    url: str = ""


class SamplingRequest(Struct, frozen=True):
    """A server wants a text of the model.

    messages: (role, text)
    """

    server: str
    messages: tuple[tuple[str, str], ...]
    system: str = ""
    max_tokens: int = 1000


class Sample(Struct, frozen=True):
    text: str
    model: str


class ServerRequests(Protocol):
    async def elicit(self, request: Elicitation) -> dict[str, Any] | None:
        """The values of the fields; None if the person declines, or nobody is there."""
        ...

    async def sample(self, request: SamplingRequest) -> Sample:
        """Raises McpError if it is not permitted, or fails."""
        ...

    def roots(self) -> tuple[Path, ...]:
        """The folders that the work is about."""
        ...


class NoRequests:
    """Nobody is there."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def elicit(self, request: Elicitation) -> dict[str, Any] | None:
        return None

    async def sample(self, request: SamplingRequest) -> Sample:
        raise McpError("nobody is here who could permit it")

    def roots(self) -> tuple[Path, ...]:
        return (self._root,)
