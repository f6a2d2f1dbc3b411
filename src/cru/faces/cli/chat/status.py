"""The chat's status line: project, context, model, mode, how full the window is, its cost, what plugins say, the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cru.core.base.values.errors import CruError
from cru.core.conversations.identity import DEFAULT
from cru.core.events.payloads import ModelSelected
from cru.core.events.stream import Published
from cru.core.turn.session import Session

if TYPE_CHECKING:
    from cru.core.turn.compaction import Fill

SANDBOX = {"off": "sandbox off", "none": "no sandbox"}
"""What is said of the session's commands where nothing confines them."""
MODEL = 30
"""Characters of a model's name that are shown."""


class StatusLine:
    """Of one session. `plugins`: what they say, on one line."""

    def __init__(self, session: Session, plugins: Callable[[], str]) -> None:
        self._parts, self._plugins = session.parts, plugins
        self._model = ""
        self._fill: Fill | None = None
        session.parts.bus.stream.subscribe(self._take_model, ModelSelected)

    def _take_model(self, item: Published[ModelSelected]) -> None:
        name = item.payload.model.rpartition("/")[2]  # of a scripted model a path, of others the vendor is in front
        self._model = name if len(name) <= MODEL else f"{name[: MODEL - 1]}…"

    async def measure(self) -> None:
        """Look how full the model's window is; after each turn."""
        from cru.core.turn import compaction

        try:
            self._fill = compaction.fill(
                self._parts, await self._parts.models.choose(""), self._parts.prompt.sections()
            )
        except CruError:
            self._fill = None  # of a model that cannot be asked: the next prompt says why

    def text(self) -> str:
        return " · ".join(part for part in self._words() if part)

    def _words(self) -> Iterator[str]:
        yield self._parts.place.root.name
        yield self._context()
        yield self._model
        yield self._parts.gate.mode
        yield f"{self._fill.percent:.0f} % full" if self._fill is not None and self._fill.limit else ""
        yield self._spent()
        yield self._plugins()
        confined_by = self._parts.services.sandbox.state
        yield SANDBOX.get(confined_by, "sandbox") if confined_by else ""

    def _context(self) -> str:
        """The context, if it is not the one that a project has by itself."""
        name = self._parts.store.name
        return "" if name in (self._parts.place.root.name, DEFAULT) else name

    def _spent(self) -> str:
        """Tokens of the last prompt, and what the session has cost."""
        session = self._parts.models.ledger.session.totals
        if not session.requests:
            return ""
        prompt = self._parts.models.ledger.prompt.totals
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
