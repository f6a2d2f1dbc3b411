"""Which files of a project do more than inform: they run commands, bring scripts, or permit tools. Those wait for `cru trust`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from cru.core.commands.prompt_files import FileOrigin, NotTrusted, PromptFileKind, PromptPlaces
from cru.core.commands.prompt_files.expansion import runs_commands
from cru.core.commands.prompt_files.files import SKILL_FILE, PromptFile, find_files, read_file
from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.guard.trust.snapshot import Snapshot, take_snapshot

DATA = frozenset(
    {
        ".css", ".csv", ".docx", ".gif", ".html", ".jpeg", ".jpg", ".json", ".md", ".pdf", ".png", ".pptx", ".rst", ".svg", ".toml",
        ".tsv", ".ttf", ".txt", ".webp", ".xlsx", ".xml", ".xsd", ".yaml", ".yml",
    }
)  # fmt: skip
"""Suffixes of files that no program runs by itself."""
MOST_FILES = 2000


class WideningFile(Struct, frozen=True):
    """What a person is to accept: a command's file, or the folder of a skill.

    content: what the acceptance is for
    shown: (path, text) of each file of it
    """

    path: Path
    content: str
    shown: tuple[tuple[Path, str], ...]


def widens(file: PromptFile) -> bool:
    """Whether it does more than inform."""
    has_scripts = file.kind is PromptFileKind.SKILL and any(_scripts(file.folder))
    return bool(file.allowed_tools) or runs_commands(file.body) or has_scripts


def _scripts(folder: Path) -> Iterator[str]:
    count = 0
    for at, folders, names in os.walk(folder):
        folders.sort()
        for name in names:
            count += 1
            path = os.path.join(at, name)
            if (
                count > MOST_FILES
                or (os.path.splitext(name)[1].lower() not in DATA and name != SKILL_FILE)
                or os.access(path, os.X_OK)
            ):
                yield path


def is_trusted(file: PromptFile, places: PromptPlaces, store: TrustStore) -> bool:
    """Whether it may do all that it says. Raises NotAccepted if its folder cannot be judged."""
    if file.origin is FileOrigin.USER:
        return True
    widening = to_accept(file, places)
    return store.is_trusted(widening.path, widening.content)


def check_trusted(file: PromptFile, places: PromptPlaces, store: TrustStore) -> None:
    """Raises NotTrusted, NotAccepted."""
    if file.origin is FileOrigin.PROJECT and widens(file) and not is_trusted(file, places, store):
        changed = " has changed since it was trusted" if store.is_known(_accepted_path(file)) else " is not trusted"
        what = "runs commands, permits tools or has scripts"
        raise NotTrusted(f"{file.kind.value} {file.name} of this project {what}, and{changed}", "cru trust")


def to_accept(file: PromptFile, places: PromptPlaces) -> WideningFile:
    """Raises NotAccepted if its folder cannot be judged."""
    if file.kind is PromptFileKind.COMMAND:
        return WideningFile(file.path, file.text, ((file.path, file.text),))
    seen = take_snapshot(file.folder, places.root)
    return WideningFile(file.folder, f"skill {sha256(seen.listing).hexdigest()}", tuple(_texts(seen)))


def _accepted_path(file: PromptFile) -> Path:
    return file.path if file.kind is PromptFileKind.COMMAND else file.folder


def _texts(seen: Snapshot) -> Iterator[tuple[Path, str]]:
    for item in seen.files:
        is_text = b"\0" not in item.content[:1024]
        yield seen.folder / item.path, item.content.decode("utf-8", "replace") if is_text else "(no text)"


def find_widening(places: PromptPlaces) -> Iterator[PromptFile]:
    """Files of the project that wait, or have waited, for a person."""
    for kind in PromptFileKind:
        for origin, name, path in find_files(places, kind):
            if origin is FileOrigin.PROJECT:
                file = read_file(places, kind, origin, name, path)
                if not file.faults and widens(file):
                    yield file
