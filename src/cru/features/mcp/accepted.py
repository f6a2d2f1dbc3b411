"""Which servers of other programs' settings a person has accepted, as they were: what has changed is a stranger again."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.files import read_json
from cru.core.base.files.atomic import replace_file
from cru.features.mcp import McpError
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.listing_cache import fingerprint

FILE = "mcp.json"
"""In cru's home."""
VERSION = 1


class Judgement(Struct, frozen=True):
    """name, file: for people"""

    name: str
    file: str
    decision: Literal["accepted", "rejected"]


class AcceptedFile(Struct, frozen=True):
    version: int = VERSION
    servers: dict[str, Judgement] = {}


class AcceptedServers:
    """`problem`: why the file could not be read; nothing counts as accepted then."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self.problem = ""
        self._known = self._load()

    def decision(self, definition: ServerDefinition) -> str:
        """accepted, rejected, or ""."""
        judgement = self._known.servers.get(_key(definition))
        return "" if judgement is None else judgement.decision

    def judge(self, definition: ServerDefinition, decision: Literal["accepted", "rejected"]) -> None:
        """Raises McpError if it cannot be kept."""
        if self.problem:
            raise McpError(self.problem, "mend or remove the file")
        judgement = Judgement(definition.name, definition.origin, decision)
        self._known = replace(self._known, servers={**self._known.servers, _key(definition): judgement})
        try:
            replace_file(self._path, msgspec.json.encode(self._known) + b"\n", make_folders=True)
        except OSError as error:
            raise McpError(f"{self._path} cannot be written: {error.strerror}") from error

    def _load(self) -> AcceptedFile:
        try:
            known = read_json(self._path, AcceptedFile)
        except FileNotFoundError:
            return AcceptedFile()
        except (OSError, msgspec.MsgspecError) as error:
            self.problem = f"{self._path} cannot be read: {error}"
            return AcceptedFile()
        if known.version != VERSION:
            self.problem = f"{self._path} is of another version of cru"
            return AcceptedFile()
        return known


def _key(definition: ServerDefinition) -> str:
    text = f"{definition.origin}\0{definition.name}\0{fingerprint(definition)}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
