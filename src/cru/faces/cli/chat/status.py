"""The chat's status line: project, model, mode, how full the window is, what it has cost, and what plugins say about themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cru.engine.session import Session
from cru.events.payloads import ModelSelected
from cru.events.stream import Published

MODEL = 30
"""Characters of a model's name that are shown."""


class StatusLine:
    """Of one session. `plugins`: what they say, on one line."""

    def __init__(self, session: Session, plugins: Callable[[], str]) -> None:
        self._parts, self._plugins = session.parts, plugins
        self._model = ""
        session.parts.bus.stream.subscribe(self._take_model, ModelSelected)

    def _take_model(self, item: Published[ModelSelected]) -> None:
        name = item.payload.model.rpartition("/")[2]  # of a scripted model a path, of others the vendor is in front
        self._model = name if len(name) <= MODEL else f"{name[: MODEL - 1]}…"

    def text(self) -> str:
        return " · ".join(part for part in self._words() if part)

    def _words(self) -> Iterator[str]:
        yield self._parts.root.name
        yield self._model
        yield self._parts.gate.mode
        yield self._spent()
        yield self._plugins()

    def _spent(self) -> str:
        """Tokens of the last prompt, and what the session has cost."""
        session = self._parts.ledger.session.totals
        if not session.requests:
            return ""
        prompt = self._parts.ledger.prompt.totals
        tokens = f"{_short(session.tokens)} tokens"
        if prompt.requests != session.requests:
            tokens = (
                f"{_short(prompt.tokens)} tokens, {_short(session.tokens)} in all"
                if prompt.requests
                else f"{tokens} in all"
            )
        return f"{tokens}, ${session.cost:.2f}" if session.cost else tokens


def _short(number: int) -> str:
    """1234 as 1.2k."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.1f}k" if number < 100_000 else f"{number // 1_000}k"
