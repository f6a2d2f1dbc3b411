"""Which prompt a killed or failed run left unfinished, from the log alone (docs/decisions/0002-resume.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

from cru.core.base.values.messages import LEG_ENDED, RESOLVED, Entry
from cru.core.turn import log_writer
from cru.core.turn.parts import CardMark
from cru.core.turn.prompts import (
    RETRY,
    attachments,
    by_agent,
    is_final,
    is_prompt,
    last_said,
)
from cru.core.turn.turn import Prompt, PromptSource

GO_ON = "[Your last reply was cut off. Go on where it stopped.]"


def find_unfinished(entries: Sequence[Entry], root: Path) -> Prompt | None:
    """The last prompt whose leg has not ended, or ended by an error or an interruption; None if all is done."""
    at = next((i for i in range(len(entries) - 1, -1, -1) if is_prompt(entries[i])), -1)
    if at < 0:
        return None
    prompt, after = entries[at], entries[at + 1 :]
    related = [e for e in after if e.metadata.get("ref") == prompt.id]
    ended = [e.metadata.get("cause") for e in related if e.entry_type == LEG_ENDED]
    if ended and ended[-1] not in RETRY:
        return None
    resolutions = [e for e in related if e.entry_type == RESOLVED]
    if any(e.metadata.get("blocked") for e in resolutions):
        return None
    last = last_said(after)
    cut = last is not None and by_agent(last) and not is_final(last)
    return Prompt(
        prompt.content,
        cast(PromptSource, prompt.metadata.get("source", "user")),
        () if resolutions else attachments(prompt.metadata, root),
        ref=prompt.id,
        resolved=bool(resolutions),
        before=(GO_ON,) if cut else (),
        model=next((str(e.metadata["model"]) for e in (*resolutions, prompt) if e.metadata.get("model")), ""),
        command=str(prompt.metadata.get("command", "")),
    )


def find_card_mark(newest_first: Iterable[Entry]) -> CardMark | None:
    """The card that the last prompt was asked under, None: under none."""
    mark = next((entry.metadata.get(log_writer.CARD) for entry in newest_first if is_prompt(entry)), None)
    return CardMark(str(mark.get("name", "")), str(mark.get("digest", ""))) if isinstance(mark, dict) else None
