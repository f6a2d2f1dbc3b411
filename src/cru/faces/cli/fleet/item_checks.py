"""What is looked at before anything of a batch runs: settings, agents, folders and attachments of all items."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from cru.core.agents import CardPlaces
from cru.core.agents.discovery import list_notices
from cru.core.base.values.errors import CruError
from cru.core.base.values.visible import visible
from cru.core.compose.main_card import find_card
from cru.core.compose.start import Start, card_places, project_root
from cru.core.turn.attachments import read_attachment
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.set_flag import add_setting
from cru.features.fleet.items import ItemFile, ItemProblem
from cru.features.fleet.records import BatchItem
from cru.features.fleet.run_task import setting_text


class ItemChecks:
    """Each agent, file and setting is looked at once, however many items name it. home: cru's."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._setting = cache(lambda key, value: _fault(lambda: add_setting({}, f"{key}={value}")))
        self._agent = cache(lambda name, cwd: _fault(lambda: find_card(name, self._places(cwd))))
        self._attachment = cache(lambda path: _fault(lambda: read_attachment(path, Path("/"))))

    def check(self, read: ItemFile, settled: Collection[str]) -> ItemFile:
        """The file with more of its lines as bad ones. settled: ids of items that do not run any more, so that their files may be gone."""
        new = [
            ItemProblem(line, text)
            for line, item in read.items
            for text in (*self._settings(item), *(() if item.id in settled else self._places_of(item)))
        ]
        bad = {problem.line for problem in new}
        items = tuple((line, item) for line, item in read.items if line not in bad)
        problems = sorted((*read.problems, *new), key=lambda problem: problem.line)
        return replace(read, items=items, problems=tuple(problems))

    def card_notices(self, items: Collection[BatchItem]) -> list[str]:
        """What each run would tell of agent cards that cannot be used."""
        folders = dict.fromkeys(item.cwd for item in items)
        places = {place.root: place for place in map(self._places, folders)}
        return list(dict.fromkeys(visible(text) for place in places.values() for text in list_notices(place)))

    def _settings(self, item: BatchItem) -> Iterator[str]:
        for key, value in item.set.items():
            if fault := self._setting(key, setting_text(value)):
                yield f"`set`: {fault.removeprefix('-s: ')}"

    def _places_of(self, item: BatchItem) -> Iterator[str]:
        if not os.path.isdir(item.cwd):
            yield f"`cwd`: there is no folder {item.cwd}"
        elif item.agent and (fault := self._agent(item.agent, item.cwd)):
            yield f"`agent`: {fault}"
        for path in item.attach:
            if fault := self._attachment(path):
                yield f"`attach`: {fault}"

    def _places(self, cwd: str) -> CardPlaces:
        folder = Path(cwd)
        root = project_root(folder, os.environ, self._home)
        return card_places(Start(self._home, "", dict(os.environ), folder, root))


def _fault(look: Callable[[], object]) -> str:
    """What is wrong, "" if nothing is."""
    try:
        look()
    except (CruError, UsageProblem) as error:
        return error.message + (f" ({error.hint})" if error.hint else "")
    return ""
