"""`cru.vault`, and `cru.kiln` of crucible: the notes, by their paths below the vault. Without a vault each name answers that nothing is
there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from cru.core.api.arguments import number, options, table, text, whole
from cru.core.api.host import BadArgument, NamespaceError, NotAvailable, host
from cru.core.api.names import tell_absent
from cru.core.base.values.errors import CruError
from cru.features.vault.front_matter import with_front_matter
from cru.features.vault.live import live_vault
from cru.features.vault.plain import plain_hit, plain_note, plain_notes
from cru.features.vault.search.modes import SearchMode

if TYPE_CHECKING:
    from cru.features.vault.live import LiveVault
    from cru.features.vault.vault import Vault

T = TypeVar("T")
Record = dict[str, Any]
NO_VAULT = "no vault is configured (`cru vault init FOLDER`)"
_SEARCH_KEYS = ("limit", "threshold", "mode")
_MODES = ("text", "semantic", "hybrid")
_NOTE_KEYS = ("path", "body", "frontmatter", "overwrite")


async def list_(limit: int | None = None) -> list[Record]:
    """vault.list(limit?) -> the notes by path: {path, title, content_hash, tags, links_to, properties, updated_at, has_embedding}.
    Raises NamespaceError.

    Example: #cru.vault.list(10) --> 0
    """
    most = None if limit is None else whole("cru.vault.list", "limit", limit, 0)

    def look(vault: Vault) -> list[Record]:
        return plain_notes(vault, vault.notes(most))

    return await ask("vault.list", look, [])


async def get(path: str) -> Record | None:
    """vault.get(path) -> the note as in `list`, or nil. Raises NamespaceError.

    Example: cru.vault.get("Home.md") --> nil
    """
    name = text("cru.vault.get", "path", path)

    def look(vault: Vault) -> Record | None:
        note = vault.get(name)
        return None if note is None else plain_note(vault, note)

    return await ask("vault.get", look, None)


async def search(query: str, opts: dict[str, Any] | None = None) -> list[Record]:
    """vault.search(text, {limit=20, threshold, mode="text"|"semantic"|"hybrid"}?) -> {{path, title, score, snippet}, ...}, the best first,
    in the language of `cru vault search`: by words, by meaning, or by both; without `mode` by both if that is installed
    (`pip install 'cru[semantic]'`). Scores compare within one search only. Raises NamespaceError.

    Example: #cru.vault.search("retry policy", {limit=5}) --> 0
    """
    where = "cru.vault.search"
    words = text(where, "text", query)
    chosen = options(where, opts, _SEARCH_KEYS)
    limit = whole(where, "limit", chosen.get("limit", 20), 1)
    threshold = chosen.get("threshold")
    least = None if threshold is None else number(where, "threshold", threshold)

    mode = chosen.get("mode")
    if mode is not None and mode not in _MODES:
        raise BadArgument(f'{where}: mode must be "text", "semantic" or "hybrid"')

    async def look(vault: LiveVault) -> list[Record]:
        result = await vault.search(words, limit, SearchMode(mode) if mode else None)
        return [plain_hit(hit) for hit in result.hits if least is None or hit.score >= least]

    return await ask_live("vault.search", look, [])


async def outlinks(path: str) -> list[str]:
    """vault.outlinks(path) -> the paths of the notes that it links to. Raises NamespaceError.

    Example: #cru.vault.outlinks("Home.md") --> 0
    """
    return await _linked("vault.outlinks", path, lambda vault, id: vault.outlinks(id))


async def backlinks(path: str) -> list[str]:
    """vault.backlinks(path) -> the paths of the notes that link to it. Raises NamespaceError.

    Example: #cru.vault.backlinks("Home.md") --> 0
    """
    return await _linked("vault.backlinks", path, lambda vault, id: vault.backlinks(id))


async def neighbors(path: str, depth: int = 1) -> list[str]:
    """vault.neighbors(path, depth=1) -> the paths of the notes that are at most so many links away, either way. Raises NamespaceError.

    Example: #cru.vault.neighbors("Home.md", 2) --> 0
    """
    most = whole("cru.vault.neighbors", "depth", depth, 0)
    return await _linked("vault.neighbors", path, lambda vault, id: vault.neighbors(id, most))


async def create_note(note: dict[str, Any]) -> str:
    """vault.create_note{path, body="", frontmatter?, overwrite=false} -> its path. Raises NamespaceError if there is no vault, or a note
    of that path and no `overwrite`.

    Example: pcall(cru.vault.create_note, {path="ideas/One"}) --> false
    """
    where = "cru.vault.create_note"
    fields = options(where, note, _NOTE_KEYS)
    path = text(where, "path", fields.get("path"))
    body = text(where, "body", fields.get("body", ""))
    properties = table(where, "frontmatter", fields.get("frontmatter"))
    overwrite = fields.get("overwrite", False)
    if not isinstance(overwrite, bool):
        raise BadArgument(f"{where}: overwrite must be true or false")
    if live() is None:
        raise NotAvailable(f"Kiln error: {NO_VAULT}")

    def write(vault: Vault) -> str:
        return vault.write(path, with_front_matter(properties, body), overwrite=overwrite)

    return await ask("vault.create_note", write, "")


def kiln() -> str:
    """paths.kiln() -> the folder of notes. Raises NamespaceError if none is configured.

    Example: pcall(cru.paths.kiln) --> false
    """
    vault = live()
    if vault is None:
        raise NamespaceError("kiln path not configured")
    return str(vault.root)


def key(name: str) -> str | None:
    """`cru.vault.active` is the name of the vault, nil without one.

    Example: cru.vault.active --> nil
    """
    vault = live()
    return vault.name if name == "active" and vault is not None else None


def live() -> LiveVault | None:
    """The vault of the session."""
    return live_vault(host().session.parts.services)


async def ask(name: str, look: Callable[[Vault], T], without: T, prefix: str = "Kiln error") -> T:
    """What `look` finds; `without` if there is no vault, which the plugin is told once. Raises NamespaceError."""
    return await ask_live(name, lambda vault: vault.run(look), without, prefix)


async def ask_live(name: str, look: Callable[[LiveVault], Awaitable[T]], without: T, prefix: str = "Kiln error") -> T:
    """The same of the vault of the session."""
    vault = live()
    if vault is None:
        tell_absent(name, NO_VAULT)
        return without
    try:
        return await look(vault)
    except NamespaceError:
        raise
    except CruError as error:
        raise NamespaceError(f"{prefix}: {error.message}", error.hint) from error


async def _linked(name: str, path: str, follow: Callable[[Vault, int], list[Any]]) -> list[str]:
    """A path that no note has is linked to nothing."""
    named = text(f"cru.{name}", "path", path)

    def look(vault: Vault) -> list[str]:
        note = vault.get(named)
        return [] if note is None else [other.path for other in follow(vault, note.id)]

    return await ask(name, look, [])
