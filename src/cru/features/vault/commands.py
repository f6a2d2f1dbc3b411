"""/vault: the notes of this session, as the person asks for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from cru.core.base.config.closest import did_you_mean
from cru.core.base.values.visible import visible
from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand
from cru.core.turn.commands import CommandResult
from cru.features.vault.index.records import NoteRecord
from cru.features.vault.live import LiveVault, live_vault
from cru.features.vault.tools import hit_lines, note_line
from cru.features.vault.vault import Vault

NONE = "no vault is configured: `cru vault init FOLDER` makes one"
SHOWN_HITS = 10
SHOWN_PROBLEMS = 5


async def vault(context: CommandContext, words: str) -> CommandResult:
    """How it stands; `search WORDS`, `read NOTE`, `links NOTE`. Raises BadCommand, VaultError."""
    live = live_vault(context.session.parts.services)
    if live is None:
        return CommandResult(NONE)
    verb, _, rest = words.strip().partition(" ")
    if not verb:
        return CommandResult(await live.run(_status))
    show = VERBS.get(verb)
    if show is None:
        raise BadCommand(f"/vault has no `{verb}`", did_you_mean(verb, VERBS) or f"it has {', '.join(VERBS)}")
    if not rest.strip():
        raise BadCommand(f"/vault {verb} needs {'words' if show is _search else 'a note'}", f"/vault {verb} …")
    return CommandResult(await show(rest.strip(), live))


def _status(vault: Vault) -> str:
    counts = vault.counts()
    lines = [
        f"{visible(vault.name)}  {visible(str(vault.root))}",
        f"{counts.notes:,} notes, {counts.links:,} links, {counts.dangling:,} links to nothing, {counts.tags:,} tags, "
        f"{counts.tasks:,} tasks",
        *(f"problem: {visible(path)}: {visible(problem)}" for path, problem in counts.problems[:SHOWN_PROBLEMS]),
    ]
    more = len(counts.problems) - SHOWN_PROBLEMS
    return "\n".join([*lines, *([f"… and {more:,} more: `cru vault`"] if more > 0 else [])])


async def _search(words: str, live: LiveVault) -> str:
    result = await live.search(words, SHOWN_HITS)
    lines = [line for hit in result.hits for line in hit_lines(hit)] or ["no note has that"]
    return "\n".join([*lines, *([f"({result.notice})"] if result.notice else [])])


async def _read(name: str, live: LiveVault) -> str:
    return await live.run(partial(_text, name))


async def _links(name: str, live: LiveVault) -> str:
    return await live.run(partial(_links_of, name))


def _text(name: str, vault: Vault) -> str:
    note = vault.find(name)
    return "\n".join([note_line(note.path, note.title), "", visible(vault.read(note.path), keep="\n\t").rstrip("\n")])


def _links_of(name: str, vault: Vault) -> str:
    note = vault.find(name)
    dangling = [link for link in vault.dangling() if link.path == note.path]
    lines = [
        *(_arrow("->", other) for other in vault.outlinks(note.id)),
        *(_arrow("<-", other) for other in vault.backlinks(note.id)),
        *(f"  -> {visible(link.target)}  (line {link.line}: there is no such note)" for link in dangling),
    ]
    return "\n".join([visible(note.path), *(lines or ["  no links"])])


def _arrow(mark: str, note: NoteRecord) -> str:
    return f"  {mark} {note_line(note.path, note.title)}"


VERBS: dict[str, Callable[[str, LiveVault], Awaitable[str]]] = {"search": _search, "read": _read, "links": _links}
