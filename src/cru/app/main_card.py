"""The card of the main agent, if the command line names one (`--agent NAME`): its run is narrowed as that of a sub-agent would be."""

from __future__ import annotations

from typing import Any

from cru.config.layers import CONTEXT, Layer
from cru.engine.parts import Parts
from cru.tasks import BadCard, CardPlaces
from cru.tasks.cards import AgentCard, Isolation
from cru.tasks.discovery import load_cards
from cru.tools.builtin import NarrowedTools


def find_card(name: str, places: CardPlaces) -> AgentCard:
    """Raises NoSuchAgent, BadCard."""
    card = load_cards(places).find(name)
    if card.isolation is not Isolation.NONE:
        raise BadCard(
            f"the agent {card.name} works in a worktree of its own, which the main agent cannot",
            "let the model call it: `task`",
        )
    return card


def card_layer(name: str, places: CardPlaces) -> Layer:
    """What the card says of settings: above every file, below the command line. Raises NoSuchAgent, BadCard."""
    card = find_card(name, places)
    settings: dict[str, Any] = {}
    if card.model:
        settings["model"] = card.model
    if card.fuel:
        settings["fuel"] = card.fuel
    if card.temperature is not None:
        settings["api"] = {"temperature": card.temperature}
    if card.timeout:
        settings["budget"] = {"max_seconds": card.timeout}
    return Layer(CONTEXT, settings, str(card.file or f"the card {card.name}"))


async def narrow_tools(parts: Parts, card: AgentCard) -> None:
    """Leave the main agent the tools that its card allows, once plugins have brought theirs and rules were checked against all."""
    for problem in card.problems:
        parts.bus.stream.warn(problem)
    parts.tools = NarrowedTools(parts.tools, card.narrowed_to(()))
