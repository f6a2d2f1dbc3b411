"""What built-in tools are lent: protocols, for types only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cru.core.conversations.store import FileContext


class ContextFiles(Protocol):
    """The files of one context."""

    def write_text(self, name: str, text: str) -> None: ...


class ContextHome(Protocol):
    """Where all contexts are."""

    def write_reflection(self, text: str, limit_bytes: int) -> None: ...

    def find(self, name: str) -> FileContext: ...


class WebRules(Protocol):
    """What the rules say about web addresses that no call names."""

    def why_not(self, url: str) -> str:
        """The rule that denies an address or wants a question for it, "" if none does."""
        ...

    def why_not_origin(self, url: str) -> str:
        """Why a call with this address would not run without a question, "" if it would."""
        ...

    def is_named(self, url: str) -> bool:
        """Whether an allow rule, or a kept answer, names the host."""
        ...
