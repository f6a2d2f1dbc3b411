"""Search by meaning on the command line: its mode, and the notes that are embedded before it answers."""

from __future__ import annotations

import sys

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import say
from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.terminal.progress import ProgressLine
from cru.features.vault import IndexUnusable, NoEmbeddings
from cru.features.vault.search.modes import SearchMode
from cru.features.vault.semantic.model import INSTALL, is_installed
from cru.features.vault.semantic.store import Coverage
from cru.features.vault.vault import Vault

SEARCH_SECONDS = 5.0
"""So long a search waits for notes to be embedded; `cru vault index` embeds all."""


def search_mode(args: CommandArguments) -> SearchMode | None:
    """Of `--mode`; None for that of the settings. Raises UsageProblem."""
    if not args.has("--mode"):
        return None
    word = args.value("--mode", "")
    if word not in list(SearchMode):
        raise UsageProblem(f"--mode needs {', '.join(SearchMode)}, not {word}", "cru vault search TEXT --mode hybrid")
    return SearchMode(word)


def embed_for_search(vault: Vault, mode: SearchMode | None) -> None:
    """Give notes some time to be embedded, if the search needs it. Raises NoEmbeddings, IndexUnusable if the mode was asked for; else the
    result says how far it goes."""
    if (mode or vault.default_mode()) is SearchMode.TEXT:
        return
    try:
        _embed(vault, SEARCH_SECONDS)
    except (NoEmbeddings, IndexUnusable):
        if mode is not None:
            raise


def embed_all(vault: Vault) -> Coverage | None:
    """None if searches do not go by meaning. Raises NoEmbeddings."""
    return None if vault.default_mode() is SearchMode.TEXT else _embed(vault, None)


def suggest_install(vault: Vault, mode: SearchMode | None) -> None:
    """A person who searches by words is told once that there is more."""
    if mode is None and sys.stderr.isatty() and not is_installed() and vault.is_first_time("semantic suggested"):
        say(f"this went by words only; {INSTALL} finds notes by what they mean, too")


def _embed(vault: Vault, seconds: float | None) -> Coverage:
    """A terminal sees how far it is."""
    if not sys.stderr.isatty():
        return vault.embed(seconds)
    line = ProgressLine()

    def progress(done: int, of: int) -> None:
        if done < of:
            line.show(f"reading what notes mean: {done:,} of {of:,}")

    try:
        return vault.embed(seconds, progress)
    finally:
        line.clear()
