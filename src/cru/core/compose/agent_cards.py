"""What a session tells of agent cards when it opens; loaded where there are some that did not come with cru."""

from __future__ import annotations

from cru.core.agents import CardPlaces
from cru.core.agents.discovery import list_notices
from cru.core.base.values.visible import visible
from cru.core.turn.parts import Parts


async def tell_cards(places: CardPlaces, parts: Parts) -> None:
    """Which cannot be used, and why: others of their names do not stand in for them."""
    for text in list_notices(places):
        parts.bus.stream.warn(visible(text))
