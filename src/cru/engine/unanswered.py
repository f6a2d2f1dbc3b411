"""A prompt whose turn failed before the model answered: it leaves what the model sees when another prompt follows (decision 0137)."""

from __future__ import annotations

from collections.abc import Iterator

from cru.engine import log_writer
from cru.engine.parts import Parts
from cru.engine.prompts import INBOX_CLOSE, PendingContext, shorten
from cru.engine.turn import Prompt
from cru.values.messages import RESOLVED, UNANSWERED, Entry


def set_aside(parts: Parts, earlier: Entry, prompt: Prompt, pending: PendingContext) -> Entry:
    """Return the log entry that does it, to be written with the prompt that follows. What hooks put beside the earlier prompt, and the
    messages of other contexts that it took, go with the next one: nobody would bring them again."""
    carried = dict.fromkeys((*_carried(parts.store.visible(), earlier), *pending.context))
    pending.context[:] = list(carried)
    if prompt.text != earlier.content:
        parts.bus.stream.warn(f"“{shorten(earlier.content)}” had no answer; it is not sent with your next prompt")
    return log_writer.entry(RESOLVED, metadata={"ref": earlier.id, "blocked": True, "reason": UNANSWERED})


def _carried(entries: list[Entry], earlier: Entry) -> Iterator[str]:
    resolutions = [e for e in entries if e.entry_type == RESOLVED and e.metadata.get("ref") == earlier.id]
    for resolution in resolutions:
        block, mark, _ = resolution.content.partition(f"\n{INBOX_CLOSE}")
        if resolution.metadata.get("inbox") and mark:
            yield block + mark
    yield from resolutions[-1].metadata.get("context", ()) if resolutions else ()
