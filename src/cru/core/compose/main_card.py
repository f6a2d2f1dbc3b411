"""The card of the main agent, if the command line names one (`--agent NAME`): its run is narrowed as that of a sub-agent would be."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cru.core.agents import BadCard, CardPlaces, TaskTable
from cru.core.agents.cards import AgentCard, Isolation, is_plain
from cru.core.agents.discovery import load_cards
from cru.core.agents.model_names import FAMILIES, NamedModels, choose_model
from cru.core.base.config.layers import CONTEXT, Layer, Settings
from cru.core.conversations.entries import LOG
from cru.core.conversations.log_tail import newest_entries
from cru.core.models import ModelSettings
from cru.core.tools.builtin import NarrowedTools
from cru.core.turn.parts import CardMark, Parts
from cru.core.turn.unfinished import find_card_mark


def find_card(name: str, places: CardPlaces) -> AgentCard:
    """Raises NoSuchAgent, BadCard."""
    card = load_cards(places).find(name)
    if card.isolation is not Isolation.NONE:
        fault = f"the agent {card.name} works in a worktree of its own: the main agent cannot, a sub-agent (`task`) can"
        raise BadCard(card.name, (fault,))
    return card


def mark_of(card: AgentCard) -> CardMark:
    """What the log has of a card: it shows whether the card is still the same."""
    content = msgspec.json.encode(replace(card, file=None, problems=()))
    return CardMark(card.name, hashlib.sha256(content).hexdigest())


def resumed_card(context: Path, places: CardPlaces) -> str:
    """The name of the card that the last prompt of a context was asked under, "": under none. Raises NoSuchAgent, BadCard (also if it has
    changed since), StoreUnreadable."""
    mark = find_card_mark(newest_entries(context / LOG, []))
    if mark is None:
        return ""
    if mark_of(find_card(mark.name, places)) != mark:
        fault = f"the agent {mark.name} has changed since the last prompt was asked of it; --agent {mark.name} goes on as it is now"
        raise BadCard(mark.name, (fault,))
    return mark.name


def card_layer(name: str, places: CardPlaces, below: Sequence[Layer | None]) -> Layer:
    """What the card says of settings: above every file (`below`), below the command line. Raises NoSuchAgent, BadCard."""
    card = find_card(name, places)
    settings: dict[str, Any] = {}
    model = _model_of(card, below)
    if model:
        settings["model"] = model
    if card.fuel:
        settings["fuel"] = card.fuel
    if card.temperature is not None:
        settings["api"] = {"temperature": card.temperature}
    if card.timeout:
        settings["budget"] = {"max_seconds": card.timeout}
    return Layer(CONTEXT, settings, str(card.file or f"the card {card.name}"))


def _model_of(card: AgentCard, layers: Sequence[Layer | None]) -> str:
    """ "" if the settings' own model answers: nothing says which one a name of Claude Code's families is."""
    for layer in reversed(layers):
        table: Any = layer.data.get("agents") if layer is not None else None
        aliases = table.get("model_aliases") if isinstance(table, dict) else None
        if isinstance(aliases, dict) and isinstance(aliases.get(card.model), str):
            return str(aliases[card.model])
        named: Any = layer.data if layer is not None else {}
        if any(isinstance(named.get(table), dict) and card.model in named[table] for table in ("models", "categories")):
            return card.model
    return "" if card.model.partition("[")[0].casefold() in FAMILIES else card.model


async def narrow_tools(parts: Parts, card: AgentCard) -> None:
    """Leave the main agent the tools that its card allows, once plugins have brought theirs and rules were checked against all."""
    for problem in card.problems:
        parts.bus.stream.warn(problem)
    if card.tools and all(map(is_plain, card.tools)) and not any(map(card.narrowed_to(None), parts.tools.names())):
        fault = f"the agent {card.name} cannot be used: none of its tools is here ({', '.join(card.tools)})"
        raise BadCard(card.name, (fault,))
    parts.tools = NarrowedTools(parts.tools, card.narrowed_to(None))


async def tell_model(parts: Parts, card: AgentCard, settings: Settings) -> None:
    """That another model than the card's answers, as a sub-agent of that card tells it."""

    async def own_model() -> str:
        return (await parts.models.choose("")).model.name

    chosen_models = settings.of(ModelSettings)
    names = (*(name for name, about in chosen_models.models.items() if about.model), *chosen_models.categories)
    models = NamedModels(settings.of(TaskTable).agents.model_aliases, lambda: names)
    chosen = await choose_model(card.model, models, own_model, "the configured one")
    if chosen.problem:
        parts.bus.stream.warn(f"agent {card.name}: {chosen.problem}")
