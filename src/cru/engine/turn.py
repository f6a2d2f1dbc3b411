"""What lives as long as a prompt, a turn, or the way to the next request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, field

from cru.events.answers import Answer, Inject
from cru.events.payloads import Attachment

Cause = Literal["done", "cancelled", "halted", "interrupted", "error"]
USER, AGENT = "call_user", "call_agent"
PromptSource = Literal["user", "queue", "command", "inbox", "continuation", "recurse", "task"]


class Prompt(Struct, frozen=True):
    """One prompt on its way into a leg. `ref` is its log entry if it is there already (--resume), `resolved` whether it was
    decided then; `before` and `after` are injects that travel with it; `model` holds for this leg only; `command` is what was typed if
    a command gave it; `literal`: it is no command, whatever it begins with."""

    text: str
    source: PromptSource = "user"
    attachments: tuple[Attachment, ...] = ()
    ref: str = ""
    resolved: bool = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    model: str = ""
    command: str = ""
    literal: bool = False


class PendingContext(Struct):
    """Context and injects that wait for the next request."""

    context: list[str] = field(default_factory=list)
    injects: list[Inject] = field(default_factory=list)

    def take(self, texts: Iterable[str], inject: Inject | None) -> None:
        self.context.extend(texts)
        if inject is not None:
            self.injects.append(inject)

    def drain(self) -> str:
        """Everything as one text, in order; empty afterwards."""
        texts = [*self.context, *(i.content for i in self.injects)]
        self.context.clear()
        self.injects.clear()
        return "\n\n".join(texts)


class Turn(Struct):
    """One user prompt until idle. fuel < 0 means no limit; fallback: who has the word after the running leg's final reply."""

    id: str
    fuel: int
    fallback: str = USER
    continuations: int = 0
    recursions: int = 0
    no_progress: int = 0
    last_response: str | None = None
    results: int = 0
    results_before: int = 0


class LegResult(Struct, frozen=True):
    """How a leg ended. `response` is the text of its last reply; `error` the message for a person; `hint` the next step."""

    cause: Cause
    response: str = ""
    ref: str = ""
    rounds: int = 0
    reason: str = ""
    error: str = ""
    hint: str = ""
    code: int = 0
    recurse: str | None = None


class TurnStopped(Exception):
    """Ends a leg early with a cause."""

    def __init__(self, cause: Cause, reason: str = "") -> None:
        super().__init__(reason)
        self.cause: Cause = cause
        self.reason = reason


def stop_for(answer: Answer, what: str) -> TurnStopped:
    """The Stop that a cancel or halt means."""
    return TurnStopped("halted" if answer.halt else "cancelled", answer.reason or f"{what} was cancelled")
