"""What a killed or failed run left unfinished: its prompt, from the log alone (docs/decisions/turns.md), and its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

from cru.core.base.values.messages import LEG_ENDED, RESOLVED, Entry
from cru.core.turn import CardMissing, NothingToResume, log_writer
from cru.core.turn.parts import CardMark, Parts
from cru.core.turn.prompts import (
    RETRY,
    attachments,
    by_agent,
    final_reply,
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


async def tell_lost_tasks(parts: Parts) -> None:
    """Log what became of tasks whose run was killed, as a message before the next prompt. The caller holds the context's lock."""
    if parts.services.tasks.recover is not None and (report := await parts.services.tasks.recover()) is not None:
        log_writer.inject(parts, report.text, report.tasks)


async def find_unfinished_work(parts: Parts) -> tuple[Prompt | None, Prompt | None]:
    """What `--resume` goes on with: the last prompt that is not done, and one about tasks to come after it, if they are not told before
    its next request. Raises NothingToResume if there is neither, CardMissing if the prompt was asked under a card and this run has none."""
    prompt = find_unfinished(parts.store.visible(), parts.place.root)
    recover = parts.services.tasks.recover
    report = await recover() if recover is not None else None
    if report is None and prompt is None:
        raise NothingToResume("there is no unfinished prompt in this context", "cru -g 5 shows its last entries")
    mark = find_card_mark(reversed(parts.store.visible()))
    if mark is not None and parts.prompt.card is None:
        raise CardMissing(
            f"the last prompt was asked of the agent {mark.name}: nothing goes on with it without its card",
            f"add --agent {mark.name}",
        )
    if report is None:
        return prompt, None
    if prompt is None or final_reply(parts.store.visible(), prompt.ref) is not None:  # nothing more is asked in it
        return prompt, Prompt(report.text, "task", tasks=report.tasks)
    log_writer.inject(parts, report.text, report.tasks)
    return prompt, None
