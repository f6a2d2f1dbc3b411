"""Where agent cards are looked for. The strongest place of a name decides, even if its card cannot be used: no card of a weaker place
stands in for it. Cards of a project count once a person has trusted them."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cru.core.agents import BadCard, CardOrigin, CardPlaces, NoSuchAgent
from cru.core.agents.cards import LIMIT_BYTES, AgentCard, parse_card
from cru.core.base.config.closest import did_you_mean
from cru.core.base.files.front_matter import NoFrontMatter
from cru.core.base.files.regular import read_regular
from cru.core.base.values.visible import visible
from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.tools.protocol import AGENT_ALIASES

if TYPE_CHECKING:
    from cru.core.turn.parts import Parts

MOST_READ = 20
"""Cards that await trust and may have a name that is asked for, of which so many are read; after that it is taken for theirs."""
MOST_FILES = 300
"""Files of one place that are looked at: a stranger's folder must not cost each start anything."""


class CardState(Enum):
    USABLE = "usable"
    BAD = "bad"
    """It cannot be used as it is written."""
    TEXT = "text"
    """It has no front matter: it may be a text about the cards beside it."""
    AWAITING = "awaiting"
    """Of a project; nobody has accepted it."""
    CHANGED = "changed"
    """Of a project; somebody had accepted it, as it was before."""


UNTRUSTED = (CardState.AWAITING, CardState.CHANGED)


class CardFile(Struct, frozen=True):
    """A file that may be a card.

    name: of its agent; as long as nobody has accepted the file, and so nobody has read it, the file's name
    text: of one that nobody has accepted
    faults: why it cannot be used, a sentence each
    """

    path: Path
    origin: CardOrigin
    state: CardState
    name: str
    card: AgentCard | None = None
    text: str = ""
    faults: tuple[str, ...] = ()


class Cards(Struct):
    """All cards.

    files: the strongest first
    by_name: those that are usable; one that awaits trust may yet claim the name (`find`)
    problems: what is wrong with places and cards, for who wants to know all
    judges_calls: as of CardPlaces
    """

    files: tuple[CardFile, ...] = ()
    by_name: dict[str, AgentCard] = {}
    problems: tuple[str, ...] = ()
    judges_calls: Callable[[str], bool] = bool
    _read: dict[Path, CardFile] = field(default_factory=dict)

    def read_all(self) -> list[CardFile]:
        """The same files, with what those say that await trust. Who only starts does not read them: a stranger's files must not cost
        each start anything."""
        return [self._read_file(file) for file in self.files]

    def _read_file(self, file: CardFile) -> CardFile:
        if file.state not in UNTRUSTED:
            return file
        if file.path not in self._read:
            self._read[file.path] = _read_untrusted(file, self.judges_calls)
        return self._read[file.path]

    def find(self, name: str) -> AgentCard:
        """Raises NoSuchAgent with the closest name, or why the card that has this name cannot be used."""
        name = AGENT_ALIASES.get(name, name)
        read = 0
        for file in self.files:
            if file.state in UNTRUSTED:
                if not _may_be_called(file, name):
                    continue
                read += 1
                if read > MOST_READ:
                    raise _why_not(replace(file, name=name))
                file = self._read_file(file)
            if file.name == name:
                if file.card is None or file.state is not CardState.USABLE:
                    raise _why_not(file)
                return file.card
        near = did_you_mean(name, self.by_name)
        raise NoSuchAgent(f"there is no agent {name!r}", near or f"there are: {', '.join(self.by_name)}")


def _may_be_called(file: CardFile, name: str) -> bool:
    """Whether it is worth a look: the name, or another one of the same agent, stands in it."""
    names = (name, *(alias for alias, own in AGENT_ALIASES.items() if own == name))
    return file.path.stem in names or any(word in file.text for word in names)


def _why_not(file: CardFile) -> NoSuchAgent:
    if file.state is CardState.CHANGED:
        text = f"the card of the agent {file.name} has changed since it was trusted ({file.path})"
        return NoSuchAgent(text, "a person runs: cru trust")
    if file.state is CardState.AWAITING:
        text = f"the agent {file.name} comes from a project that is not trusted ({file.path})"
        return NoSuchAgent(text, "a person runs: cru trust")
    return NoSuchAgent(
        f"the agent {file.name} cannot be used: {'; '.join(file.faults)}", "mend its card, or take it away"
    )


def _read_untrusted(file: CardFile, judges_calls: Callable[[str], bool]) -> CardFile:
    try:
        card = parse_card(file.text, file.path, CardOrigin.UNTRUSTED, file.path.stem, judges_calls)
    except BadCard as error:
        return replace(file, name=error.name, faults=error.faults)
    return replace(file, name=card.name, card=card)


_LOADED: dict[CardPlaces, tuple[tuple[object, ...], Cards]] = {}
"""What was read, as long as no file has changed."""
JUST_NOW = 50_000_000
"""Nanoseconds: a file that was written this short ago may be written again, and its times stay the same."""


def load_cards(places: CardPlaces) -> Cards:
    """Look through every place; files that are as they were at the last look are not read again."""
    paths = [(origin, folder, _card_files(folder)) for origin, folder in places.folders()]
    trust = TrustStore(places.home / "trust.json")
    stamp = tuple(
        _stamp(file) for file in (places.home / "trust.json", *(f for _, _, (files, _) in paths for f in files))
    )
    known = _LOADED.get(places)
    if known is not None and known[0] == stamp:
        return known[1]
    loader = _Loader(places, trust)
    for origin, folder, (files, problems) in paths:
        loader.load_place(origin, folder, files, problems)
    cards = loader.result()
    _LOADED.clear()  # of one project at a time
    if time.time_ns() - max((changed for *_, changed in stamp), default=0) > JUST_NOW:
        _LOADED[places] = (stamp, cards)
    return cards


def _stamp(file: Path) -> tuple[str, int, int, int, int]:
    """Its change in nanoseconds is the last; all 0: it cannot be looked at."""
    try:
        status = os.stat(file)
    except OSError:
        return (str(file), 0, 0, 0, 0)
    return (str(file), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _card_files(folder: Path) -> tuple[list[Path], list[str]]:
    """The Markdown files of a folder, sub-folders included, by name, and what is wrong with it."""
    problems: list[str] = []

    def note(error: OSError) -> None:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            problems.append(f"{error.filename} cannot be looked through: {error.strerror}")

    files = []
    for at, folders, names in os.walk(folder, onerror=note):
        folders.sort()
        files += [Path(at, name) for name in sorted(names) if name.endswith(".md")]
        if len(files) > MOST_FILES:
            problems.append(f"{folder} has more than {MOST_FILES} files: the others are not read")
            break
    return sorted(files[:MOST_FILES]), problems


class _Loader:
    """Gathers what the places have."""

    def __init__(self, places: CardPlaces, trust: TrustStore) -> None:
        self._root = places.root
        self._judges_calls = places.judges_calls
        self._trust = trust
        self._files: list[CardFile] = []
        self._problems: list[str] = []

    def load_place(self, origin: CardOrigin, folder: Path, files: list[Path], problems: list[str]) -> None:
        if origin is CardOrigin.PROJECT and folder.is_dir() and not _is_below(folder, self._root):
            self._problems.append(f"{folder} leads out of the project and is not read")
            return
        self._problems += problems
        self._files += [self._load(origin, file) for file in files]

    def _load(self, origin: CardOrigin, path: Path) -> CardFile:
        try:
            text = _read(path, self._root if origin is CardOrigin.PROJECT else None)
            if origin is CardOrigin.PROJECT and not self._trust.is_trusted(path, text):
                state = CardState.CHANGED if self._trust.is_known(path) else CardState.AWAITING
                return CardFile(path, origin, state, path.stem, text=text)
            file = None if origin is CardOrigin.BUNDLED else path
            card = parse_card(text, file, origin, path.stem, self._judges_calls)
        except BadCard as error:
            is_text = isinstance(error.__cause__, NoFrontMatter)
            state = CardState.TEXT if is_text else CardState.BAD
            return CardFile(path, origin, state, error.name, faults=error.faults)
        return CardFile(path, origin, CardState.USABLE, card.name, card)

    def result(self) -> Cards:
        first: dict[str, CardFile] = {}
        for file in self._files:
            if file.state in UNTRUSTED:
                continue
            self._problems += file.faults
            before = first.setdefault(file.name, file)
            if before is file:
                self._problems += (*file.card.problems, *file.card.misspelt) if file.card is not None else ()
            elif file.origin is not CardOrigin.BUNDLED:
                self._problems.append(f"{file.path} is not used: {before.path} has the same name, and comes first")
            elif before.card is None:
                self._problems.append(f"the agent {file.name} that comes with cru does not stand in for {before.path}")
        by_name = {name: file.card for name, file in first.items() if file.card is not None}
        return Cards(tuple(self._files), by_name, tuple(self._problems), self._judges_calls)


def _is_below(path: Path, folder: Path) -> bool:
    """Where it really leads."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _read(file: Path, inside: Path | None) -> str:
    """Raises BadCard."""

    def bad(text: str) -> BadCard:
        return BadCard(file.stem, (f"{file}{text}",))

    if inside is not None and not _is_below(file, inside):
        raise bad(" leads out of the project and is not read")
    try:
        data = read_regular(file, LIMIT_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise bad(f" is too large for a card: the limit is {LIMIT_BYTES} bytes") from error
        raise bad(f" cannot be read: {error.strerror or error}") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise bad(": not UTF-8") from error


def describe_cards(places: CardPlaces) -> str:
    """The agents that did not come with cru, for the system prompt; "" if there are none."""
    own = [card for card in load_cards(places).by_name.values() if card.origin is not CardOrigin.BUNDLED]
    return "\n".join(f"{card.name}: {card.description}" for card in own)


SHOWN = 5
"""Cards that a notice names."""


def list_notices(places: CardPlaces) -> Iterator[str]:
    """What a person is told when a session begins: which cards cannot be used. `cru agents` says more."""
    cards = load_cards(places)
    bad = [file for file in cards.files if file.state is CardState.BAD]
    for file in bad[:SHOWN]:
        yield f"the agent {file.name} cannot be used: {'; '.join(file.faults)}"
    if len(bad) > SHOWN:
        yield f"{len(bad) - SHOWN} more agent cards cannot be used: `cru agents`"
    for card in cards.by_name.values():
        yield from (f"agent {card.name}: {text}" for text in card.misspelt)
    for file in cards.files:
        if file.state is CardState.TEXT and file.path.stem.casefold() != "readme" and places.is_own(file.path):
            yield f"the agent {file.name} cannot be used: {'; '.join(file.faults)}"
    for state, why in (
        (CardState.CHANGED, "changed since trusted"), (CardState.AWAITING, "this project is not trusted"),
    ):  # fmt: skip
        names = [str(file.path.relative_to(places.root)) for file in cards.files if file.state is state]
        if names:
            listed = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
            what = (
                "1 agent card of this project is"
                if len(names) == 1
                else f"{len(names)} agent cards of this project are"
            )
            yield f"{what} not used: {why} (`cru trust`): {listed}"


async def tell_cards(places: CardPlaces, parts: Parts) -> None:
    """Warn at the start of a session of cards that cannot be used: cards of the same name elsewhere do not replace them."""
    for text in list_notices(places):
        parts.bus.stream.warn(visible(text))
