"""How much other people's code may say: a person reads no million of characters, and no hundred thousand lines."""

from __future__ import annotations

LONGEST_NOTICE = 8_000
"""Characters of a message for a person."""
LONGEST_REASON = 8_000
"""Characters of why something was refused."""
LONGEST_VALUE = 16_000_000
"""Characters of a text that a handler puts into an event."""
ALLOWANCE = 100_000
"""Characters that one owner may say at once: a few hundred messages."""
PER_SECOND = 1_000
"""Characters that it may say again each second."""
LINE = 100
"""What a message costs beside its characters."""


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]} [… {len(text) - limit:,} more characters are left out]"


def is_too_large(value: object) -> bool:
    """Whether a text, or one in a table, has more characters than an event may hold."""
    if type(value) is str:
        return len(value) > LONGEST_VALUE
    if type(value) is dict:
        return sum(len(item) for item in value.values() if type(item) is str) > LONGEST_VALUE
    return False
