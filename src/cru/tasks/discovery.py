"""Where agent cards are looked for. The first place of a name wins; cards of a project count once a person has trusted them."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct, field

from cru.config.closest import did_you_mean
from cru.files.regular import read_regular
from cru.permissions.trust import TrustStore
from cru.tasks import BadCard, CardOrigin, CardPlaces, NoSuchAgent
from cru.tasks.cards import LIMIT_BYTES, AgentCard, parse_card


class Cards(Struct):
    """All cards.

    by_name: those that can be used
    untrusted: those of a project that nobody has accepted as they are
    problems: what is wrong with the others
    """

    by_name: dict[str, AgentCard] = field(default_factory=dict)
    untrusted: list[AgentCard] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def find(self, name: str) -> AgentCard:
        """Raises NoSuchAgent with the closest name."""
        card = self.by_name.get(name)
        if card is not None:
            return card
        if any(card.name == name for card in self.untrusted):
            raise NoSuchAgent(f"the agent {name} comes from a project that is not trusted", "a person runs: cru trust")
        near = did_you_mean(name, self.by_name)
        raise NoSuchAgent(f"there is no agent {name!r}", near or f"there are: {', '.join(self.by_name)}")


def load_cards(places: CardPlaces) -> Cards:
    """Look through every place; what is wrong with a card is among the problems."""
    cards = Cards()
    trust = TrustStore(places.home / "trust.json")
    for origin, folder in places.folders():
        for file in card_files(folder):
            _load(cards, trust, origin, file, places.root)
    return cards


def card_files(folder: Path) -> list[Path]:
    """The Markdown files of a folder, sub-folders included, by name."""
    return sorted(Path(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".md"))


def _load(cards: Cards, trust: TrustStore, origin: CardOrigin, file: Path, root: Path) -> None:
    try:
        text = _read(file, root if origin is CardOrigin.PROJECT else None)
        if origin is CardOrigin.PROJECT and not trust.is_trusted(file, text):
            origin = CardOrigin.UNTRUSTED
        card = parse_card(text, None if origin is CardOrigin.BUNDLED else file, origin, file.stem)
    except BadCard as error:
        cards.problems.append(error.message)
        return
    if origin is CardOrigin.UNTRUSTED:
        cards.untrusted.append(card)
        return
    first = cards.by_name.setdefault(card.name, card)
    if first is card:
        cards.problems += card.problems
    elif origin is not CardOrigin.BUNDLED:
        cards.problems.append(f"{file} is not used: {first.file} is a card of the same name, and comes first")


def _read(file: Path, inside: Path | None) -> str:
    """Raises BadCard."""
    if inside is not None and not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(inside)):
        raise BadCard(f"{file} leads out of the project and is not read")
    try:
        data = read_regular(file)
    except OSError as error:
        raise BadCard(f"{file} cannot be read: {error.strerror or error}") from error
    if len(data) > LIMIT_BYTES:
        raise BadCard(f"{file} is too large for a card: {len(data)} bytes, the limit is {LIMIT_BYTES}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadCard(f"{file}: not UTF-8") from error


def describe_cards(places: CardPlaces) -> str:
    """The agents that did not come with cru, for the system prompt; "" if there are none."""
    own = [card for card in load_cards(places).by_name.values() if card.origin is not CardOrigin.BUNDLED]
    return "\n".join(f"{card.name}: {card.description}" for card in own)
