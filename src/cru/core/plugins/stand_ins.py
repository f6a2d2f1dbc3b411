"""What stands in for a guard that was active and of which no version can be loaded: it refuses what the guard looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cru.core.events.answers import Answer
from cru.core.events.journal import SkipReason
from cru.core.events.registry import Handler, HandlerRegistry
from cru.core.events.stamp import Event

GUARDED = "tool:before_call"


class StandIn:
    """Denies the calls that a handler would have heard."""

    copies = True

    def __init__(self, handler: Handler, reason: str) -> None:
        self.declines: Callable[[Event], SkipReason | None] | None = handler.declines
        self._reason = reason

    def __call__(self, event: Event[Any]) -> Answer:
        return Answer(decision="deny", reason=self._reason, note="error")


def guards_of(registry: HandlerRegistry, owner: str, is_program: bool) -> tuple[Handler, ...]:
    """The handlers of a plugin that may refuse a call; a program's others only look on."""
    handlers = registry.by_event.get(GUARDED, ())
    return tuple(handler for handler in handlers if handler.owner == owner and (handler.hook or not is_program))


def register_stand_ins(registry: HandlerRegistry, guards: Sequence[Handler], reason: str) -> None:
    """In the name of the plugin: what drops its handlers drops these."""
    for guard in guards:
        registry.on(
            GUARDED, StandIn(guard, reason), owner=guard.owner, where=guard.where, priority=guard.priority,
            pattern=guard.pattern, scope=guard.scope, lane=guard.lane, on_error="deny", hook=guard.hook,
        )  # fmt: skip
