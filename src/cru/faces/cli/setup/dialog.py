"""What the questions of a set-up have in common: a list to choose from, a key that is not shown, and the model out of a provider's list."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from getpass import getpass

from cru.core.base.values.errors import CruError
from cru.core.models.listing import ListedModel
from cru.core.models.providers import ANTHROPIC, KEYED, OPENAI, OPENROUTER
from cru.faces.cli.console import is_dumb_terminal, printable
from cru.faces.cli.dialogs.choices import Choices, Selection
from cru.faces.cli.dialogs.line_editor import LineEditor
from cru.faces.cli.dialogs.plugin_dialogs import choose

KEY_STARTS = (("sk-or-", OPENROUTER), ("sk-ant-", ANTHROPIC), ("sk-", OPENAI))
"""How keys begin, and whose they are then."""
_USUAL = {
    OPENROUTER: re.compile(r"anthropic/claude-sonnet-[\d.]+"),
    ANTHROPIC: re.compile(r"claude-sonnet-.*"),
    OPENAI: re.compile(r"gpt-\d+(\.\d+)?"),
}
"""Names of the models that most people begin with; the first in the list is proposed."""


class SetupDialog:
    """Questions on the terminal `fd`. Each answer may be None: the person cancelled. Raises OSError if the terminal has gone."""

    def __init__(self, fd: int) -> None:
        self._line = LineEditor(fd)

    def say(self, text: str) -> None:
        self._line.write(f"{printable(text)}\n")

    def complain(self, error: CruError) -> None:
        self.say("\n  ".join([f"  {error.message}", *error.hint.splitlines()]))

    async def choose(
        self, title: str, labels: Sequence[str], about: Sequence[str] = (), marked: int = 0, *, filters: bool = False
    ) -> int | None:
        """The index of what was chosen; Enter takes `marked`."""
        selection = await choose(
            self._line, title, Choices(tuple(labels), tuple(about), filters=filters, marked=(marked,) if labels else ())
        )
        return selection.selected[0] if selection is not None and selection.selected else None

    async def option(
        self, title: str, labels: Sequence[str], about: Sequence[str], takes: Callable[[str], str]
    ) -> Selection | None:
        """One of the labels, or words that `takes` knows (Choices.takes)."""
        return await choose(self._line, title, Choices(tuple(labels), tuple(about), marked=(0,), takes=takes))

    async def text(self, hint: str) -> str | None:
        typed = await self._line.read(hint)
        return typed.strip() or None if typed is not None else None

    async def key(self, provider: str) -> str | None:
        """A pasted key; nothing of it is shown."""
        hint = f"key for {provider}" if provider else "key"
        if is_dumb_terminal():
            typed: str | None = await asyncio.to_thread(partial(getpass, f"  {hint} > "))
        else:
            typed = await self._line.read(f"{hint} (it is not shown)", hidden=True)
        return "".join((typed or "").split()) or None

    async def provider_of(self, key: str) -> str | None:
        """Whose key it is: its beginning says so, else the person."""
        if provider := provider_by_key(key):
            return provider
        names = [row.name for row in KEYED]
        at = await self.choose("Whose key is it?", names)
        return None if at is None else names[at]

    async def model(self, provider: str, models: Sequence[ListedModel], name: str = "") -> str | None:
        """A model's id, out of the list or, if there is none, typed. name: the provider's for people"""
        name = name or provider
        if not models:
            return await self.text(f"the id of a model of {name}")
        usual = _USUAL.get(provider)
        at = next((at for at, model in enumerate(models) if usual and usual.fullmatch(model.id)), 0)
        title = f"Which model? {name} has {len(models)}"
        chosen = await self.choose(title, [m.id for m in models], [about_model(m) for m in models], at, filters=True)
        return None if chosen is None else models[chosen].id


def provider_by_key(key: str) -> str:
    """Whose key it is by its beginning, "" if that says nothing."""
    return next((provider for start, provider in KEY_STARTS if key.startswith(start)), "")


def about_model(model: ListedModel) -> str:
    """Its name, window and price, as far as they are known."""
    parts = [model.label, f"{model.context_window:,} tokens" if model.context_window else ""]
    if model.price is not None:
        parts.append(f"${model.price.input:g} in, ${model.price.output:g} out")
    return ", ".join(filter(None, parts))
