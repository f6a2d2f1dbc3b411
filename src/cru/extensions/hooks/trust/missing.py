"""Hooks of a project that a person accepted and that are not there any more as they were: changed, gone, or switched off by the project
itself. People rely on them, so a start tells it, until somebody says in a review that it is to be so (docs/decisions/0009)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256

from msgspec.structs import replace

from cru.extensions.hooks.loader import EntryStatus, LoadedHooks, MissingHook
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import Dialect
from cru.extensions.hooks.trust.fingerprint import key_of
from cru.permissions.json_file import HookJudgement

REPLACED = "accepted earlier, its entry changed since"


def find(loaded: LoadedHooks, files: Iterable[str], said: Mapping[str, HookJudgement]) -> list[MissingHook]:
    """Of what was said about hooks of these files, what was accepted last and is not there as it was."""
    known = [one for one in loaded.known if one.entry.of_project]
    there = {key for one in known if _is_there(one) for key in _keys(one.entry)}
    off = {_name(one.entry) for one in known if one.state == "disabled"}
    wanted = set(files)
    last = {(said.file, said.key or said.what): said for said in said.values() if said.file in wanted}
    return [
        MissingHook(file, one.what, one.key, (file, one.what) in off)
        for (file, key), one in last.items()
        if one.accepted and (file, key) not in there
    ]


def _is_there(one: EntryStatus) -> bool:
    """Also what a person ended: refused it, or switched it off in a file of their own; what waits is told as changed."""
    return one.state in ("active", "untrusted", "refused") or (
        one.state == "disabled" and (one.entry.enabled or one.entry.off_by_user)
    )


def _keys(entry: HookEntry) -> list[tuple[str, str]]:
    """(file, key), and what older records have in the key's place."""
    file = os.path.realpath(entry.source.path)
    entry = replace(entry, enabled=True) if entry.off_by_user else entry
    return [(file, key_of(entry)), (file, entry.label)]


def join(loaded: LoadedHooks, lost: list[MissingHook]) -> None:
    """Note them: one that waits in the place of a lost one, with its name or command, says so; all others are told by themselves."""
    waiting = {_name(one.entry): one for one in loaded.of("untrusted")}
    for name in {(one.file, one.label) for one in lost}.intersection(waiting):
        for known in loaded.of("untrusted"):
            if _name(known.entry) == name and not known.changed:
                known.why, known.changed = f"{REPLACED}: `cru hooks review`", True
    loaded.lost = [one for one in lost if (one.file, one.label) not in waiting]


def _name(entry: HookEntry) -> tuple[str, str]:
    return os.path.realpath(entry.source.path), entry.label


def mark(lost: MissingHook) -> tuple[str, HookJudgement]:
    """The record that a person has seen it, and said that the project may do without: the newest of its hook, so it is asked again once
    the hook was accepted again."""
    fingerprint = sha256("\0".join(("gone", lost.file, lost.key or lost.label)).encode()).hexdigest()
    return fingerprint, HookJudgement(False, lost.file, lost.label, lost.key)


def files_of(dialects: Iterable[Dialect], about: SessionFacts) -> list[str]:
    """Where a project's hooks may stand, whether the files are there or not."""
    places = [path for dialect in dialects for layer, path in dialect.places(about) if layer == "project"]
    real = [path for place in places for path in (os.path.realpath(place), standing(place))]
    return list(dict.fromkeys(real))


def standing(path: str | os.PathLike[str]) -> str:
    """The file by its real folder and its own name: a link that somebody put into its place does not hide it."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
