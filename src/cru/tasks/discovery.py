"""Where agent cards are looked for. The first place of a name wins; cards of a project count once a person has trusted them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from msgspec import Struct, field

from cru.config.closest import did_you_mean
from cru.files.regular import read_regular
from cru.permissions.trust import TrustStore
from cru.tasks import BadCard, CardOrigin, CardPlaces, NoSuchAgent
from cru.tasks.cards import LIMIT_BYTES, AgentCard, parse_card
from cru.tools.protocol import AGENT_ALIASES


class CardFile(Struct, frozen=True):
    """A card as it was read."""

    path: Path
    text: str


class Cards(Struct):
    """All cards.

    by_name: those that can be used
    awaiting_trust: files of a project that nobody has accepted as they are
    problems: what is wrong with the others
    """

    by_name: dict[str, AgentCard] = field(default_factory=dict)
    awaiting_trust: list[CardFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def read_untrusted(self) -> tuple[list[AgentCard], list[str]]:
        """The cards that await trust, and what is wrong with the others. Only who shows them reads them: a stranger's files must not
        cost each start anything."""
        cards, problems = [], []
        for file in self.awaiting_trust:
            try:
                cards.append(parse_card(file.text, file.path, CardOrigin.UNTRUSTED, file.path.stem))
            except BadCard as error:
                problems.append(error.message)
        return cards, problems

    def find(self, name: str) -> AgentCard:
        """Raises NoSuchAgent with the closest name."""
        name = AGENT_ALIASES.get(name, name)
        card = self.by_name.get(name)
        if card is not None:
            return card
        if any(card.name == name for card in self.read_untrusted()[0]):
            raise NoSuchAgent(f"the agent {name} comes from a project that is not trusted", "a person runs: cru trust")
        near = did_you_mean(name, self.by_name)
        raise NoSuchAgent(f"there is no agent {name!r}", near or f"there are: {', '.join(self.by_name)}")


def load_cards(places: CardPlaces) -> Cards:
    """Look through every place; what is wrong with a card is among the problems."""
    cards = Cards()
    trust = TrustStore(places.home / "trust.json")
    for origin, folder in places.folders():
        if origin is CardOrigin.PROJECT and folder.is_dir() and not _is_below(folder, places.root):
            cards.problems.append(f"{folder} leads out of the project and is not read")
            continue
        for file in card_files(folder):
            _load(cards, trust, origin, file, places.root)
    return cards


def _is_below(path: Path, folder: Path) -> bool:
    """Where it really leads."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def card_files(folder: Path) -> list[Path]:
    """The Markdown files of a folder, sub-folders included, by name."""
    return sorted(Path(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".md"))


def _load(cards: Cards, trust: TrustStore, origin: CardOrigin, file: Path, root: Path) -> None:
    try:
        text = _read(file, root if origin is CardOrigin.PROJECT else None)
        if origin is CardOrigin.PROJECT and not trust.is_trusted(file, text):
            cards.awaiting_trust.append(CardFile(file, text))
            return
        card = parse_card(text, None if origin is CardOrigin.BUNDLED else file, origin, file.stem)
    except BadCard as error:
        cards.problems.append(error.message)
        return
    first = cards.by_name.setdefault(card.name, card)
    if first is card:
        cards.problems += card.problems
    elif origin is not CardOrigin.BUNDLED:
        cards.problems.append(f"{file} is not used: {first.file} is a card of the same name, and comes first")


def _read(file: Path, inside: Path | None) -> str:
    """Raises BadCard."""
    if inside is not None and not _is_below(file, inside):
        raise BadCard(f"{file} leads out of the project and is not read")
    try:
        data = read_regular(file, LIMIT_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise BadCard(f"{file} is too large for a card: the limit is {LIMIT_BYTES} bytes") from error
        raise BadCard(f"{file} cannot be read: {error.strerror or error}") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadCard(f"{file}: not UTF-8") from error


def describe_cards(places: CardPlaces) -> str:
    """The agents that did not come with cru, for the system prompt; "" if there are none."""
    own = [card for card in load_cards(places).by_name.values() if card.origin is not CardOrigin.BUNDLED]
    return "\n".join(f"{card.name}: {card.description}" for card in own)
