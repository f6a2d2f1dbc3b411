"""What names answer whose thing is not in this version: as their contract says for a machine where it is missing, so that a plugin that
looks for it lives. Each plugin is told once what it does without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cru.core.api.host import HOST, NotAvailable, Values
from cru.core.api.names import AbsentAnswer


def make_absent(name: str, answer: AbsentAnswer, reason: str) -> Callable[..., Awaitable[object]]:
    """The function behind a name of ABSENT. In Python it is awaited."""

    async def absent(*_: object, **__: object) -> object:
        tell_absent(name, reason)
        if answer is AbsentAnswer.RAISES:
            raise NotAvailable(f"cru.{name}: {reason}")
        return Values((None, f"cru.{name}: {reason}"))

    return absent


def tell_absent(name: str, reason: str) -> None:
    """Tell a plugin that calls this name without its thing; once a plugin and reason."""
    here = HOST.get(None)
    if here is None:
        return
    reasons = here.session.family_state("absent", set[tuple[str, str]])
    key = (here.plugin.name, reason)
    if key not in reasons:
        reasons.add(key)
        here.problem(f"cru.{name} does nothing: {reason}")
