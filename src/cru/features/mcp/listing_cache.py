"""The tools of servers as they were last seen: the model is offered them at once, while the servers are still starting."""

from __future__ import annotations

import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import read_json
from cru.core.base.files.atomic import replace_file
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.listing import RemoteTool

if TYPE_CHECKING:
    from cru.features.mcp.listing import ServerFacts

FOLDER = "mcp_tools"
"""Below cru's home."""
VERSION = 1


class LastStart(Struct, frozen=True):
    """How the last start went; at: seconds since 1970; why, hint: it did not work; else it took so many seconds."""

    at: float
    why: str = ""
    hint: str = ""
    seconds: float = 0.0
    version: str = ""


class CachedListing(Struct, frozen=True):
    """fingerprint: of the definition that gave these tools"""

    version: int
    fingerprint: str
    tools: tuple[RemoteTool, ...] = ()
    last: LastStart | None = None


class ListingCache:
    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def load(self, definition: ServerDefinition) -> CachedListing:
        """Without tools if nothing is known, or of another definition."""
        nothing = CachedListing(VERSION, fingerprint(definition))
        try:
            listing = read_json(self._path(definition.name), CachedListing)
        except (OSError, msgspec.MsgspecError):
            return nothing
        return listing if (listing.version, listing.fingerprint) == (VERSION, nothing.fingerprint) else nothing

    def save(self, definition: ServerDefinition, facts: ServerFacts) -> None:
        """How a start went, and what tools there were. Raises OSError."""
        known = self.load(definition)
        last = LastStart(round(time.time(), 1), facts.why, facts.hint, round(facts.seconds, 3), facts.version)
        tools = known.tools if facts.why else facts.tools
        data = msgspec.json.encode(replace(known, tools=tools, last=last))
        replace_file(self._path(definition.name), data, make_folders=True, sync=False)

    def forget(self, name: str) -> None:
        """Raises OSError."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{sha256(name.encode()).hexdigest()[:16]}.json"


def fingerprint(definition: ServerDefinition) -> str:
    """What tells one definition from another, references as they are written."""
    return sha256(msgspec.json.encode(definition.server, order="sorted")).hexdigest()
