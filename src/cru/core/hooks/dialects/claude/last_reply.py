"""What SessionStart says of the conversation that is resumed: how old its last reply is, and how large its context was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cru.core.base.values.messages import ANCHOR, MESSAGE, TOOL_CALL, Entry
from cru.core.turn.history import INPUT_TOKENS

CACHE_SECONDS = 300
"""How long providers keep a prompt cached after its last use, as cru asks for it."""


def describe_last_reply(entries: Sequence[Entry], now: float) -> dict[str, Any]:
    """Return the fields about the last reply in the entries of a log; none if there is no reply."""
    last = next(_replies(entries), None)
    if last is None:
        return {}
    seconds = max(0, round(now - last.timestamp))
    uncompacted = list(_replies(_after_compaction(entries)))
    fields: dict[str, Any] = {"seconds_since_last_response": seconds}
    if used := next(filter(None, map(_used_tokens, uncompacted)), 0):
        fields["context_tokens"] = used
    # The first request after a compaction begins with other words than those that are cached.
    return {**fields, "prompt_cache_likely_expired": seconds >= CACHE_SECONDS or not uncompacted}


def _replies(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The newest first."""
    return (
        entry
        for entry in reversed(entries)
        if entry.entry_type == TOOL_CALL or (entry.entry_type == MESSAGE and entry.role == "agent")
    )


def _after_compaction(entries: Sequence[Entry]) -> Sequence[Entry]:
    anchor = next((at for at in range(len(entries) - 1, -1, -1) if entries[at].entry_type == ANCHOR), -1)
    return entries[anchor + 1 :]


def _used_tokens(entry: Entry) -> int:
    """Input and output of the request that the reply came from, 0 if its provider did not count."""
    read = int(entry.metadata.get(INPUT_TOKENS, 0))
    return read and read + int(entry.metadata.get("output_tokens", 0))
