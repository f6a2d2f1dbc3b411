"""What the start of a session needs to know of a dialect: where its files lie. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from cru.extensions.hooks.model.entry import Layer


class HookLocations(Struct, frozen=True):
    """Where somebody stands.

    home: cru's home folder
    user_home: the user's
    root: the project
    cwd: the working directory
    env: the environment of the session
    """

    home: Path
    user_home: Path
    root: Path
    cwd: Path
    env: Mapping[str, str]


class Footprint(Struct, frozen=True, kw_only=True):
    """All that is known of a dialect before it is loaded.

    order: its place when answers are composed, the lowest first
    places: its configuration files, the lowest layer first; they need not exist
    own: whether it is cru's own: nobody is asked about the user's own files
    """

    order: int
    places: Callable[[HookLocations], list[tuple[Layer, Path]]]
    own: bool = False
