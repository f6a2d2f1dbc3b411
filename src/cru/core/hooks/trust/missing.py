"""Hooks of a project that a person accepted and that are not there any more as they were: changed, gone, or switched off by the project
itself. People rely on them, so a start tells it, until somebody says in a review that it is to be so (docs/decisions/hook-trust.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from cru.core.guard.trust.stored import HookJudgement
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import Dialect
from cru.core.hooks.model.status import Activation, EntryStatus, LoadedHooks, MissingHook
from cru.core.hooks.trust.fingerprint import key_of

REPLACED = "accepted earlier, its entry changed since"
PRESENT = (Activation.ACTIVE, Activation.UNTRUSTED, Activation.REFUSED)
"""What waits for trust is told as changed."""


def find_missing(
    loaded: LoadedHooks, files: Iterable[str], judgements: Mapping[str, HookJudgement]
) -> list[MissingHook]:
    """Of what was said about hooks of these files, what was accepted last and is not there as it was."""
    of_project = [status for status in loaded.known if status.entry.of_project]
    present = {key for status in of_project if _is_present(status) for key in _keys(status.entry)}
    off = {_name(status.entry) for status in of_project if status.state is Activation.DISABLED}
    files = set(files)
    newest = {
        (judgement.file, judgement.key or judgement.what): judgement
        for judgement in judgements.values()
        if judgement.file in files
    }
    return [
        MissingHook(file, judgement.what, judgement.key, (file, judgement.what) in off)
        for (file, key), judgement in newest.items()
        if judgement.accepted and (file, key) not in present
    ]


def _is_present(status: EntryStatus) -> bool:
    """Also what a person ended: refused it, or switched it off in a file of their own."""
    return status.state in PRESENT or status.is_ended_by_user


def _keys(entry: HookEntry) -> list[tuple[str, str]]:
    """(file, key), and what older records have in the key's place."""
    file = os.path.realpath(entry.source.path)
    entry = replace(entry, enabled=True) if entry.off_by_user else entry
    return [(file, key_of(entry)), (file, entry.label)]


def note_missing(loaded: LoadedHooks, missing: list[MissingHook]) -> None:
    """An entry that waits in the place of a missing one, with its name or command, says so; all others are told by themselves."""
    waiting = loaded.of(Activation.UNTRUSTED)
    missing_names = {(hook.file, hook.label) for hook in missing}
    for status in waiting:
        if _name(status.entry) in missing_names and not status.changed:
            status.detail, status.changed = REPLACED, True
    waiting_names = {_name(status.entry) for status in waiting}
    loaded.missing = [hook for hook in missing if (hook.file, hook.label) not in waiting_names]


def _name(entry: HookEntry) -> tuple[str, str]:
    return os.path.realpath(entry.source.path), entry.label


def list_project_files(dialects: Iterable[Dialect], facts: SessionFacts) -> list[str]:
    """Where a project's hooks may stand, whether the files are there or not."""
    places = [path for dialect in dialects for layer, path in dialect.places(facts) if layer == "project"]
    real = [path for place in places for path in (os.path.realpath(place), _in_real_folder(place))]
    return list(dict.fromkeys(real))


def _in_real_folder(path: str | os.PathLike[str]) -> str:
    """The file by its real folder and its own name: a link that somebody put into its place does not hide it."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
