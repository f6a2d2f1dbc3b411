"""The dialects of command hooks. Each is a folder: its `FOOTPRINT` says where its files lie, `dialect.DIALECT` all the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cru.extensions.hooks.model.locations import Footprint
    from cru.extensions.hooks.model.mapping import Dialect


def find_footprints() -> dict[str, Footprint]:
    """The footprint of every dialect by its name, in the order in which their hooks compose."""
    footprints: dict[str, Footprint] = {
        name: import_module(f"{__name__}.{name}").FOOTPRINT
        for folder in __path__
        for name in os.listdir(folder)
        if os.path.exists(os.path.join(folder, name, "__init__.py"))
    }
    return dict(sorted(footprints.items(), key=lambda item: item[1].order))


def foreign_names() -> list[str]:
    """The dialects of other programs."""
    return [name for name, footprint in find_footprints().items() if not footprint.own]


def load_dialect(name: str) -> Dialect:
    dialect: Dialect = import_module(f"{__name__}.{name}.dialect").DIALECT
    return dialect


def load_dialects(names: Iterable[str] | None = None) -> dict[str, Dialect]:
    """These dialects, or all of them, in the order in which their hooks compose."""
    selection = None if names is None else set(names)
    return {name: load_dialect(name) for name in find_footprints() if selection is None or name in selection}
