"""What happens when a model of a category fails: the next one answers, within the same round (docs/decisions/models.md)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cru.core.events.stream import ReplyDropped
from cru.core.models.protocol import ModelError, NoModel
from cru.core.turn.parts import Parts, ResolvedModel

REFUSALS = ("refusal", "content_filter")
"""Ends of replies, as adapters call them, by which a model or its provider refuses to answer."""


class EndedReply(Protocol):
    """reason: why it ended, as adapters call it"""

    reason: str


R = TypeVar("R", bound=EndedReply)


class FailedTry(Struct, frozen=True):
    """A model that failed in this round: its label or its name, and why."""

    model: str
    why: str


async def choose_next(parts: Parts, failed: ResolvedModel, tries: list[FailedTry]) -> ResolvedModel | None:
    """The first model of a category that has not failed in this round, beginning with this one; None if none is left. Those that cannot
    be asked at all are told, and added to the tries."""
    resolved, waiting = failed, list(failed.fallbacks)
    while any(resolved.label == known.model for known in tries):
        if not waiting:
            return None
        name = waiting.pop(0)
        if any(name == known.model for known in tries):
            continue
        try:
            chosen = await parts.models.choose(name)
        except NoModel as error:
            tries.append(FailedTry(name, error.message))
            parts.bus.stream.warn(f"category {failed.category}: left out is {name} ({error.message})")
            continue
        resolved = replace(chosen, category=failed.category, fallbacks=tuple(waiting))
    return resolved


async def fall_back(
    parts: Parts, failed: ResolvedModel, why: str, tries: list[FailedTry], shown: str = ""
) -> ResolvedModel | None:
    """The model that answers instead, told to the person and in the trace; None if there is none. shown: what the failed one had said
    so far, which counts no more."""
    tries.append(FailedTry(failed.label, why))
    following = await choose_next(parts, failed, tries)
    if following is None:
        return None
    facts, dropped = {}, ""
    if shown.strip():
        facts, dropped = {"shown": shown}, f"; what {failed.label} has said so far does not count"
        parts.bus.stream.tell(ReplyDropped(failed.label, following.label))
    parts.recorder.fallback(failed=failed.label, why=why, next=following.label, category=failed.category, **facts)
    parts.bus.stream.warn(
        f"{failed.label} failed: {why}; {following.label} answers instead (category {failed.category}){dropped}"
    )
    return following


async def ask_beside(parts: Parts, resolved: ResolvedModel, ask: Callable[[ResolvedModel], Awaitable[R]]) -> R:
    """The reply to a request that is no leg's (a summary, a question of a plugin), of the next model of a category where one fails or
    refuses. Raises what `ask` raises."""
    tries: list[FailedTry] = []
    while True:
        why, failure, reply = "", None, None
        try:
            reply = await ask(resolved)
        except ModelError as error:
            if not (resolved.category and error.others_may_answer):
                raise
            why, failure = error.message, error
        if reply is not None and (reply.reason not in REFUSALS or not resolved.category):
            return reply
        following = await fall_back(parts, resolved, why or "it refused", tries)
        if following is None:
            if reply is not None:
                return reply
            assert failure is not None
            raise name_tries(failure, tries)
        resolved = following


def name_tries(error: ModelError, tries: list[FailedTry]) -> ModelError:
    """The error of the last model, which names the others that failed before it."""
    if len(tries) > 1:
        before = "; ".join(f"{tried.model} ({tried.why})" for tried in tries[:-1])
        error.message = f"{error.message}; before it failed: {before}"
    return error
