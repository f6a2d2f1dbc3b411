"""What became of tasks whose run was killed: it goes into the log before the next request, or becomes a prompt where none comes."""

from __future__ import annotations

from cru.core.turn import CardMissing, NothingToResume, log_writer
from cru.core.turn.parts import Parts
from cru.core.turn.prompts import final_reply
from cru.core.turn.turn import Prompt
from cru.core.turn.unfinished import find_card_mark, find_unfinished


async def tell_lost_tasks(parts: Parts) -> None:
    """A message before the prompt that comes. The context's lock is held."""
    if parts.services.recover_tasks is not None and (report := await parts.services.recover_tasks()) is not None:
        log_writer.inject(parts, report.text, report.tasks)


async def find_unfinished_work(parts: Parts) -> tuple[Prompt | None, Prompt | None]:
    """What `--resume` goes on with: the last prompt that is not done, and one about tasks to come after it, if they are not told before
    its next request. Raises NothingToResume if there is neither, CardMissing if the prompt was asked under a card and this run has none."""
    prompt = find_unfinished(parts.store.visible(), parts.root)
    recover = parts.services.recover_tasks
    report = await recover() if recover is not None else None
    if report is None and prompt is None:
        raise NothingToResume("there is no unfinished prompt in this context", "cru -g 5 shows its last entries")
    mark = find_card_mark(reversed(parts.store.visible()))
    if mark is not None and parts.card is None:
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
