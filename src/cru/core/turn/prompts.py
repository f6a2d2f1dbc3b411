"""Taking in a prompt with its attachments, and what waits for the next request."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from cru.core.base.values.messages import LEG_ENDED, MESSAGE, RESOLVED, TOOL_CALL, TOOL_RESULT, UNANSWERED, Entry, Image
from cru.core.events.answers import Answer, Inject
from cru.core.events.bus import Bus
from cru.core.events.payloads import Attachment, MessageReceived
from cru.core.turn import log_writer
from cru.core.turn.commands import expand_command
from cru.core.turn.history import IMAGES, PROMPT_SOURCES
from cru.core.turn.parts import Parts
from cru.core.turn.turn import Prompt, PromptSource, stop_for

if TYPE_CHECKING:
    from cru.core.conversations.inbox import InboxMessage

RETRY = ("error", "interrupted")
REPORT: PromptSource = "task"
SHOWN = 60  # characters of a prompt in a notice


def find_unanswered(entries: Sequence[Entry]) -> Entry | None:
    """Return the last prompt if its turn failed, or was interrupted or killed, before anything of a reply came."""
    at = next((i for i in range(len(entries) - 1, -1, -1) if is_prompt(entries[i])), -1)
    if at < 0 or any(e.entry_type in (TOOL_CALL, TOOL_RESULT) or by_agent(e) for e in entries[at + 1 :]):
        return None
    related = [e.metadata for e in entries[at + 1 :] if e.metadata.get("ref") == entries[at].id]
    causes = [metadata["cause"] for metadata in related if "cause" in metadata]
    if (causes and causes[-1] not in RETRY) or any(metadata.get("blocked") for metadata in related):
        return None
    return entries[at]


def supersede(parts: Parts, prompt: Prompt, pending: PendingContext) -> tuple[Entry, ...]:
    """Return the log entries that go before a new prompt: one if the prompt before it has no answer (docs/decisions/turns.md).

    What hooks put beside that prompt, and the messages of other contexts that it took, go with the next one: nothing brings them again.
    A report of background work replaces no prompt, because the user did not send it, and is not replaced, because it comes only once.
    """
    earlier = None if prompt.ref or prompt.source == REPORT else find_unanswered(parts.store.visible())
    if earlier is None or earlier.metadata["source"] == REPORT:
        return ()
    from cru.core.turn.mail import context_beside

    carried = dict.fromkeys((*context_beside(parts.store.visible(), earlier, INBOX_CLOSE), *pending.context))
    pending.context[:] = list(carried)
    if prompt.text != earlier.content:
        parts.bus.stream.warn(f"“{shorten(earlier.content)}” had no answer; it is not sent with your next prompt")
    return (log_writer.entry(RESOLVED, metadata={"ref": earlier.id, "blocked": True, "reason": UNANSWERED}),)


def describe_unfinished(entries: Sequence[Entry]) -> str:
    """Return the beginning of the last prompt if a kill ended its leg between the beginning of a reply and its end, else ""."""
    at = next((i for i in range(len(entries) - 1, -1, -1) if is_prompt(entries[i])), -1)
    if at < 0:
        return ""
    prompt = entries[at]
    related = [e for e in entries[at + 1 :] if e.metadata.get("ref") == prompt.id]
    if any(e.entry_type == LEG_ENDED or e.metadata.get("blocked") for e in related):
        return ""
    if final_reply(entries, prompt.id) is not None or find_unanswered(entries) is not None:
        return ""
    return shorten(prompt.content)


def shorten(prompt: str) -> str:
    """Return the beginning of a prompt on one line, for a notice."""
    text = " ".join("".join(c for c in prompt[: SHOWN * 4] if c.isprintable() or c.isspace()).split())
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def final_reply(entries: Sequence[Entry], ref: str) -> str | None:
    """The text of the final reply to the prompt `ref`, None if there is none yet."""
    at = next((i for i in range(len(entries) - 1, -1, -1) if entries[i].id == ref), len(entries))
    last = last_said(entries[at + 1 :])
    return last.content if last is not None and by_agent(last) and is_final(last) else None


def last_said(entries: Sequence[Entry]) -> Entry | None:
    return next((e for e in reversed(entries) if e.entry_type in (MESSAGE, TOOL_CALL, TOOL_RESULT)), None)


def by_agent(entry: Entry) -> bool:
    return entry.entry_type == MESSAGE and entry.role in ("agent", "assistant")


def is_final(reply: Entry) -> bool:
    """A whole reply that asked for no tools: neither broken off nor torn from its calls by a kill."""
    return not reply.metadata.get("partial") and not reply.metadata.get("calls")


def is_prompt(entry: Entry) -> bool:
    return entry.entry_type == MESSAGE and entry.metadata.get("source") in PROMPT_SOURCES


def attachments(metadata: dict[str, Any], root: Path) -> tuple[Attachment, ...]:
    paths = metadata.get("attachments", ())
    if not paths:
        return ()
    from cru.core.turn.attachments import read_attachment

    images = {image["path"]: msgspec.convert(image, Image) for image in metadata.get(IMAGES, ())}
    kept = {path: Attachment(path, "", image) for path, image in images.items()}  # in the context's folder
    return tuple(kept.get(path) or read_attachment(path, root) for path in paths)


INBOX_OPEN = "[messages from other contexts]"
INBOX_CLOSE = "[end of messages]"


async def receive_prompt(
    parts: Parts, prompt: Prompt, ref: str, pending: PendingContext
) -> tuple[str, tuple[str, ...], str]:
    """Take in a prompt that is in the log as `ref`; returns the outgoing text, the context beside it, and the model that is asked for.
    Raises TurnStopped if it was cancelled or halted, and what a command raises that cannot become a prompt."""
    payload = MessageReceived(prompt.text, prompt.attachments, parts.prompt.username, ref)
    outcome = await parts.bus.dispatch(payload)
    answer = outcome.answer
    if answer.stops:
        log_writer.blocked(parts, ref, answer.reason)
        raise stop_for(answer, "the prompt")
    model = answer.inject.model if answer.inject is not None else ""
    text = outcome.payload.content
    if (
        prompt.command and prompt.text == prompt.command
    ):  # its files are read, and its commands run, now that it is accepted
        text = await expand_command(parts.services.commands, text)
    text = place_inject(answer, text)
    images, others = pick_images(parts.bus, prompt.attachments, outcome.payload.attachments)
    text = "\n\n".join([*prompt.before, *_attached(text, images, others), *prompt.after])
    context = (*pending.context, *context_texts(parts, answer))
    reading = parts.store.inbox() if parts.store.has_mail() else None
    with reading or nullcontext(()) as messages:
        text = _inbox(messages) + text
        taking = reading.taking if reading is not None else ""
        log_writer.resolved(parts, ref, prompt.text, text, context, taking, model, images)
    for problem in parts.store.new_problems():  # lines of the inbox that are no messages
        parts.bus.stream.warn(problem.text(parts.store.folder))
    pending.context.clear()
    return text, context, model or prompt.model


def place_inject(answer: Answer, text: str) -> str:
    if answer.inject is None:
        return text
    first, second = answer.inject.content, text
    if answer.inject.position == "user_suffix":
        first, second = second, first
    return f"{first}\n\n{second}"


def pick_images(
    bus: Bus, prompted: Sequence[Attachment], left: Sequence[Attachment]
) -> tuple[list[Image], list[Attachment]]:
    """What handlers left of the attachments: images of the prompt, and files; images of their own are left out, which is told."""
    if not any(attachment.image for attachment in left):
        return [], list(left)
    own = {attachment.image for attachment in prompted}
    images = [attachment.image for attachment in left if attachment.image is not None and attachment.image in own]
    for attachment in left:
        if attachment.image is not None and attachment.image not in own:
            bus.stream.warn(f"message:received: {attachment.path} is none of the prompt's images and is left out")
    return images, [attachment for attachment in left if attachment.image is None]


def _attached(text: str, images: Sequence[Image], attachments: Sequence[Attachment]) -> list[str]:
    named = "\n".join(f"[image {image.about}]" for image in images)
    return [
        *filter(None, (text, named)),
        *(f"--- FILE {a.path} ---\n{a.text}\n--- END OF {a.path} ---" for a in attachments),
    ]


def _inbox(messages: Sequence[InboxMessage]) -> str:
    if not messages:
        return ""
    lines = [_inbox_text(m) for m in messages]
    return "\n".join([INBOX_OPEN, *lines, INBOX_CLOSE]) + "\n\n"


def _inbox_text(message: InboxMessage) -> str:
    """A message whose further lines are set in: only its own first line and the marks of the block begin at the edge."""
    from cru.core.base.values.visible import set_in

    sender = message.from_.translate(str.maketrans("[]", "()"))
    return f"[From: {sender}] {set_in(message.content)}"


HEADING = "## Referenced files"
OUTSIDE = "it lies outside of the project"


class PendingContext(Struct):
    """Context and injects that wait for the next request."""

    context: list[str] = field(default_factory=list)
    injects: list[Inject] = field(default_factory=list)

    def add(self, texts: Iterable[str], inject: Inject | None) -> None:
        self.context.extend(texts)
        if inject is not None:
            self.injects.append(inject)

    @property
    def model(self) -> str:
        """The model that the last inject which names one asks for, "" if none does."""
        return last_model(self.injects)

    def drain(self) -> str:
        """Everything as one text, in order; empty afterwards."""
        texts = [*self.context, *(i.content for i in self.injects)]
        self.context.clear()
        self.injects.clear()
        return "\n\n".join(texts)


def last_model(injects: Sequence[Inject]) -> str:
    """The model that the last of them which names one asks for, "" if none does."""
    return next((inject.model for inject in reversed(injects) if inject.model), "")


def context_texts(parts: Parts, answer: Answer) -> list[str]:
    """Context in order, then one block that names the context files (docs/events.md, "What it answers"); no file is read."""
    if not answer.context_files:
        return list(answer.context)
    names = list(_project_files(parts, answer.context_files))
    block = ["\n".join([HEADING, *(f"- {path}" for path in names)])] if names else []
    return [*answer.context, *block]


def _project_files(parts: Parts, paths: Sequence[str]) -> Iterator[str]:
    """Those of the paths that are files of the project, each once, in the spelling that came first."""
    seen: set[str] = set()
    for path in paths:
        real, name, why = find_context_file(parts.place.root, path)
        if why == OUTSIDE:
            parts.bus.stream.warn(f"context file {_printable(path)} lies outside of the project and is left out")
        elif why:
            parts.bus.note("context_files", f"{path}: {why}")
        elif real not in seen:
            seen.add(real)
            yield name


def find_context_file(root: Path, path: str) -> tuple[str, str, str]:
    """Return the real path of a context file, its name as the model reads it, and why it is left out ("" if it is not)."""
    roots = tuple(dict.fromkeys((str(root), os.path.realpath(root))))
    try:
        real = os.path.realpath(root / path)
        if _relative_to(real, roots[-1:]) is None:
            return real, "", OUTSIDE
        why = "" if stat.S_ISREG(os.stat(real).st_mode) else "not a regular file"
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL, or one that cannot be encoded
        return "", "", (error.strerror or "") if isinstance(error, OSError) else str(error)
    return real, _printable(_shorten(os.path.normpath(root / path), real, roots)), why


def _shorten(path: str, real: str, roots: tuple[str, ...]) -> str:
    """Relative to the root as it was spelled, if that is the same file (`link/..` may not be), else as what it really is."""
    spelled = _relative_to(path, roots) if os.path.realpath(path) == real else None
    return spelled or _relative_to(real, roots) or real


def _relative_to(path: str, roots: tuple[str, ...]) -> str | None:
    """The path from the first of these folders that it lies in."""
    for root in roots:
        if path.startswith(root.rstrip("/") + "/"):
            return path[len(root.rstrip("/")) + 1 :]
    return None


def _printable(text: str) -> str:
    """A path that stays on its line, whatever a file may be called."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
