"""What a killed or failed run left undone, from the log alone (docs/decisions/0002-resume.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from cru.engine.attach import attach
from cru.engine.history import PROMPT_SOURCES
from cru.engine.turn import Prompt, Source
from cru.events.payloads import Attachment
from cru.values.entries import LEG_ENDED, MESSAGE, RESOLVED, Entry

GO_ON = "[Your last reply was cut off. Go on where it stopped.]"
RETRY = ("error", "interrupted")


def unfinished(entries: Sequence[Entry], root: Path) -> Prompt | None:
    """The last prompt whose leg has not ended, or ended by an error or an interruption; None if all is done."""
    at = next((i for i in range(len(entries) - 1, -1, -1) if _is_prompt(entries[i])), -1)
    if at < 0:
        return None
    prompt, after = entries[at], entries[at + 1 :]
    about = [e for e in after if e.metadata.get("ref") == prompt.id]
    ended = [e.metadata.get("cause") for e in about if e.entry_type == LEG_ENDED]
    if ended and ended[-1] not in RETRY:
        return None
    resolutions = [e for e in about if e.entry_type == RESOLVED]
    if any(e.metadata.get("blocked") for e in resolutions):
        return None
    cut = bool(ended) and any(e.entry_type == MESSAGE and e.metadata.get("partial") for e in after)
    return Prompt(
        prompt.content,
        cast(Source, prompt.metadata.get("source", "user")),
        () if resolutions else _attachments(prompt.metadata, root),
        ref=prompt.id,
        resolved=bool(resolutions),
        before=(GO_ON,) if cut else (),
        model=str(prompt.metadata.get("model", "")),
    )


def _is_prompt(entry: Entry) -> bool:
    return entry.entry_type == MESSAGE and entry.metadata.get("source") in PROMPT_SOURCES


def _attachments(metadata: dict[str, Any], root: Path) -> tuple[Attachment, ...]:
    return tuple(attach(path, root) for path in metadata.get("attachments", ()))
