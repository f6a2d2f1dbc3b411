"""How many ways around what protects a person `make test` tries through the real command, by class. Counted are the rows of the tables."""

from __future__ import annotations

from pathlib import Path

from tests.attacks import (
    test_checkouts,
    test_commands,
    test_keys,
    test_network,
    test_paths,
    test_places,
    test_project_files,
    test_servers,
    test_texts,
)
from tests.core.guard.sandbox import escapes
from tests.hostile import streams, test_plugins, test_programs
from tests.roads import test_network_attacks

FLOOR = 300


def _path_rows() -> int:
    return sum(len(test_paths.calls_of(row, Path("/"))) for rows in test_paths.GROUPS.values() for row in rows)


def rows_by_class() -> dict[str, int]:
    """Class, as SECURITY.md calls it → rows."""
    places, checkouts, files, network = test_places, test_checkouts, test_project_files, test_network
    return {
        "paths that are read, searched, written": _path_rows(),
        "files that run later, repositories of strangers": sum(
            map(len, (places.RUN_LATER, places.NOTED, checkouts.PLACES, checkouts.BARE, checkouts.INNER, checkouts.LAYOUTS))
        ),
        "checkouts that stop or start something": len(checkouts.GIT_FILES) + 20 + len(checkouts.FILTERS) + len(checkouts.PATHS),
        "files that cru reads by itself, mentions": len(files.FILES) * len(files.KINDS) + len(files.ROADS) * len(files.OUTER),
        "notes": sum(map(len, files.NOTES.values())),
        "commands": len(test_commands.ROWS),
        "the sandbox": len(escapes.ESCAPES),
        "the network": len(test_network_attacks.HERE) + len(test_network_attacks.PRIVATE) + len(network.ROADS) * len(network.CODES)
        + len(network.INNER),
        "what a project says before it is accepted": len(network.UNTRUSTED) + len(network.FILES),
        "texts that a person reads": len(test_texts.PLACES) * len(test_texts.ROWS),
        "secrets": len(test_keys.KEYS) + len(test_keys.ROADS) + len(test_keys.TOLD) + len(test_keys.WIDENED),
        "MCP servers": len(test_servers.NAMES) + 4,
        "hostile extensions and streams": len(test_plugins.SHORT) + len(test_programs.SHORT) + len(streams.SHORT_STREAMS),
    }  # fmt: skip


def table() -> str:
    rows = rows_by_class()
    lines = [f"| {name} | {count} |" for name, count in rows.items()]
    return "\n".join(["| what is tried | rows |", "|---|---|", *lines, f"| together | {sum(rows.values()):,} |"])
