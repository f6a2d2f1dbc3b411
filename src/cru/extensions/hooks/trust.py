"""Which hooks of a project a person has accepted: each by its definition and by the files that its command names (docs/hooks.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from cru.extensions.hooks.dialect import About
from cru.extensions.hooks.entry import Entry
from cru.extensions.hooks.looks import Look, definition, look, stat
from cru.permissions.store import Judged
from cru.permissions.trust import Trust

REVIEW = "so the hook does not run (`cru hooks review`)"


class HookTrust:
    """What a person has said about the hooks of this session's project; what somebody says meanwhile, elsewhere, counts at once."""

    def __init__(self, store: Trust, about: About) -> None:
        self.store = store
        self._about = about
        self._stamp: tuple[int, ...] | None = None
        self._said: Mapping[str, Judged] = {}
        self._looks: dict[bytes, Look] = {}

    def is_trusted(self, entry: Entry) -> bool:
        return self._judged(entry) is True

    def is_refused(self, entry: Entry) -> bool:
        return self._judged(entry) is False

    def changed(self, entry: Entry) -> str:
        """Why a hook that was trusted when the session read it must not run now; "" if it may."""
        key = definition(entry)
        before = self._looks.get(key)
        if before is None or any(stat(path) != seen for path, seen in before.stats):
            now = look(entry, self._about)
            if before is not None and now.fingerprint != before.fingerprint:
                return f"{', '.join(_differing(before, now))} changed after you trusted it, {REVIEW}"
            before = self._looks[key] = now
        said = self._answers().get(before.fingerprint)
        if said is None or not said.accepted:
            return f"your trust in it was taken back, {REVIEW}"
        return ""

    def files(self, entries: Iterable[Entry]) -> list[str]:
        """The project's files that make up these entries: what must not change without a question."""
        entries = list(entries)
        named = [file.path for entry in entries for file in self._look(entry).files]
        return list(dict.fromkeys([*(str(entry.source.path) for entry in entries), *named]))

    def note(self, entries: list[tuple[Entry, Look]], *, accepted: bool) -> None:
        """A person has looked, and said so. Raises NotStored."""
        said = {
            look.fingerprint: Judged(accepted, os.path.realpath(entry.source.path), entry.label)
            for entry, look in entries
        }
        self.store.judge_hooks(said)

    def _judged(self, entry: Entry) -> bool | None:
        answers = self._answers()
        if not answers:
            return None
        said = answers.get(self._look(entry).fingerprint)
        return None if said is None else said.accepted

    def _look(self, entry: Entry) -> Look:
        key = definition(entry)
        if key not in self._looks:
            self._looks[key] = look(entry, self._about)
        return self._looks[key]

    def _answers(self) -> Mapping[str, Judged]:
        """What trust.json says now; it is read again when it has changed."""
        stamp = self.store.stamp()
        if stamp != self._stamp:
            self._stamp, self._said = stamp, self.store.hooks()
        return self._said


def _differing(before: Look, now: Look) -> list[str]:
    files = {file.path: file.digest for file in before.files}
    return [file.path for file in now.files if files.pop(file.path, "") != file.digest] + list(files)
