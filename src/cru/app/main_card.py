"""The card of the main agent, if the command line names one (`--agent NAME`): its run is narrowed as that of a sub-agent would be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cru.config.layers import CONTEXT, Layer
from cru.engine.parts import Parts
from cru.tasks import BadCard, CardPlaces
from cru.tasks.cards import AgentCard, Isolation
from cru.tasks.discovery import load_cards
from cru.tasks.model_names import FAMILIES
from cru.tools.builtin import NarrowedTools


def find_card(name: str, places: CardPlaces) -> AgentCard:
    """Raises NoSuchAgent, BadCard."""
    card = load_cards(places).find(name)
    if card.isolation is not Isolation.NONE:
        fault = f"the agent {card.name} works in a worktree of its own: the main agent cannot, a sub-agent (`task`) can"
        raise BadCard(card.name, (fault,))
    return card


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
    return "" if card.model.partition("[")[0].casefold() in FAMILIES else card.model


async def narrow_tools(parts: Parts, card: AgentCard) -> None:
    """Leave the main agent the tools that its card allows, once plugins have brought theirs and rules were checked against all."""
    for problem in card.problems:
        parts.bus.stream.warn(problem)
    parts.tools = NarrowedTools(parts.tools, card.narrowed_to(()))
