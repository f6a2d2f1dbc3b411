"""A vault: a folder of Markdown notes, and an index of it. The folder is the truth; the index may be thrown away at any time.

VaultError
├── NoVault          no folder of notes is configured, or it is not there
├── NoSuchNote       there is no note of that path or title
├── NoteExists       a note would be overwritten
├── BadNotePath      a path that leads out of the vault, or is no name of a note
├── BadQuery         a search or a graph query that cannot be understood
├── NoEmbeddings     search by meaning is not installed, or its model cannot be loaded
└── IndexUnusable    the index cannot be opened or written
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, structs

from cru.core.base.values.errors import CruError


class VaultError(CruError):
    pass


class NoVault(VaultError):
    pass


class NoSuchNote(VaultError):
    pass


class NoteExists(VaultError):
    pass


class BadNotePath(VaultError):
    pass


class BadQuery(VaultError):
    """column: from 1, 0 if nobody knows."""

    def __init__(self, message: str, hint: str = "", column: int = 0) -> None:
        super().__init__(message, hint)
        self.column = column


class IndexUnusable(VaultError):
    pass


class NoEmbeddings(VaultError):
    pass


class SearchSetting(StrEnum):
    """How notes are looked for unless a search says it. AUTO: by words and by meaning if the extra `semantic` is there."""

    AUTO = "auto"
    TEXT = "text"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


class VaultSettings(Struct, frozen=True):
    """`[vault]`: where the notes are, and what of them is read.

    path: the folder; "": there is no vault
    name: what scripts call it; "": the name of the folder
    exclude: globs of paths below the folder that are left out
    max_note_kb: a larger note is listed by its name and not read
    grounding: characters of the notes that are put beside a prompt; 0: none are
    search_mode: of a search that does not say its own
    """

    path: str = ""
    name: str = ""
    exclude: list[str] = []
    max_note_kb: Annotated[int, Meta(ge=1)] = 4096
    grounding: Annotated[int, Meta(ge=0, le=100_000)] = 0
    search_mode: SearchSetting = SearchSetting.AUTO


def with_environment(settings: VaultSettings, env: Mapping[str, str]) -> VaultSettings:
    """The settings on a machine whose environment may say CRU_EMBEDDINGS=off: nothing is embedded unless a search asks for it."""
    if env.get("CRU_EMBEDDINGS") != "off":
        return settings
    return structs.replace(settings, search_mode=SearchSetting.TEXT)


def located(settings: VaultSettings, root: Path) -> VaultSettings:
    """The settings with the whole path of the folder: a relative one is below the project root."""
    if not settings.path:
        return settings
    return structs.replace(settings, path=str(root / Path(settings.path).expanduser()))


class VaultTable(Struct, frozen=True):
    """The settings of this room."""

    vault: VaultSettings = VaultSettings()


DOCS: dict[str, str] = {
    "vault": "the folder of [notes](vault.md)",
    "vault.path": "the folder with the notes, a relative one below the project root; empty: there is none",
    "vault.name": "what scripts call it (`cru.kiln.active`); empty: the name of the folder",
    "vault.exclude": "globs of paths in it that are left out, as in .gitignore: `private/`, `*.draft.md`",
    "vault.max_note_kb": "a note larger than this is listed by its name, but its text is not indexed",
    "vault.grounding": "characters of the best notes that are put beside each prompt; 0: none are",
    "vault.search_mode": "how notes are looked for unless a search says it: by words (`text`), by meaning (`semantic`), both (`hybrid`); "
    "`auto`: by both if the extra `semantic` is installed",
}
