"""Which hooks of a project a person has accepted: each by its definition and by the files that its command names (docs/hooks.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.trust.budget import LookupBudget
from cru.extensions.hooks.trust.fingerprint import Fingerprint, definition, key_of, relative, stat, take_fingerprint
from cru.permissions.json_file import HookJudgement
from cru.permissions.trust import TrustStore

if TYPE_CHECKING:
    from cru.extensions.hooks.loader import MissingHook

REVIEW = "so the hook does not run (`cru hooks review`)"
TOO_MUCH = "it names more files than cru looks at, so it cannot be accepted"


class HookTrust:
    """What a person has said about the hooks of this session's project; what somebody says meanwhile, elsewhere, counts at once.

    Nothing of what a stranger names is looked at: only of definitions that somebody has judged, and of no more than the budget."""

    def __init__(self, store: TrustStore, about: SessionFacts) -> None:
        self.store = store
        self._about = about
        self._stamp: tuple[int, ...] | None = None
        self._said: Mapping[str, HookJudgement] = {}
        self._looks: dict[bytes, Fingerprint] = {}
        self._budget = LookupBudget()

    def is_trusted(self, entry: HookEntry) -> bool:
        return self._judged(entry) is True

    def is_refused(self, entry: HookEntry) -> bool:
        return self._judged(entry) is False

    def is_judged(self, entry: HookEntry) -> bool:
        return self._judged(entry) is not None

    def is_settled(self, entry: HookEntry) -> bool:
        """Whether the last word about this definition is that it may be gone, or that it is refused."""
        said = self._earlier(entry)
        return bool(said) and not said[-1].accepted

    def said(self) -> Mapping[str, HookJudgement]:
        """All that was said about hooks, by fingerprint, the newest last."""
        return self._answers()

    def settle(self, lost: Iterable[MissingHook]) -> None:
        """A person has seen that these are not there any more as they were. Raises NotStored."""
        from cru.extensions.hooks.trust.missing import mark

        self.store.judge_hooks(dict(map(mark, lost)))

    def digest(self, entry: HookEntry) -> str:
        """What is written behind its id to accept it as it is now."""
        return self._look(entry).digest

    def accepted(self, entry: HookEntry) -> HookJudgement | None:
        """What was accepted last of this very definition, whatever its files are now; of an older record, of this file and command."""
        return next((said for said in reversed(self._earlier(entry)) if said.accepted), None)

    def differs(self, entry: HookEntry) -> str:
        """How it differs from what was accepted last, for a person; "" if nothing was."""
        before = self.accepted(entry)
        if before is None:
            return ""
        now = self._look(entry)
        if now.over:
            return f"accepted earlier; now {TOO_MUCH}"
        files = {relative(file.path, self._about): file for file in now.files}
        changed = [file.path for name, file in files.items() if before.files.get(name) != file.digest]
        gone = [os.path.join(self._about.root, name) for name in before.files if name not in files]
        what = ", ".join([*changed, *gone]) if before.key and (changed or gone) else "what it runs has"
        return f"accepted earlier, {what} changed since"

    def changed(self, entry: HookEntry) -> str:
        """Why a hook that was trusted when the session read it must not run now; "" if it may."""
        key = definition(entry)
        before = self._looks.get(key)
        if before is None or any(stat(path) != seen for path, seen in before.stats):
            now = take_fingerprint(entry, self._about)
            if before is not None and now.fingerprint != before.fingerprint:
                return f"{', '.join(_differing(before, now))} changed after you trusted it, {REVIEW}"
            before = self._looks[key] = now
        said = self._answers().get(before.fingerprint)
        if said is None or not said.accepted or before.over:
            return f"your trust in it was taken back, {REVIEW}"
        return ""

    def files(self, entries: Iterable[HookEntry]) -> list[str]:
        """The project's files that make up these entries: what must not change without a question."""
        entries = list(entries)
        named = [file.path for entry in entries for file in self._look(entry).files]
        return list(dict.fromkeys([*(str(entry.source.path) for entry in entries), *named]))

    def note(self, entries: list[tuple[HookEntry, Fingerprint]], *, accepted: bool) -> None:
        """A person has looked, and said so. Raises NotStored."""
        from cru.extensions.hooks.trust.accepted_copies import keep, sweep

        said = {}
        for entry, seen in entries:
            files = {relative(file.path, self._about): file.digest for file in seen.files} if accepted else {}
            where = os.path.realpath(entry.source.path)
            said[seen.fingerprint] = HookJudgement(accepted, where, entry.label, seen.key, files)
        if accepted:
            keep(self._about.home, (file for _, seen in entries for file in seen.files))
        self.store.judge_hooks(said)
        sweep(self._about.home, {digest for one in self._answers().values() for digest in one.files.values()})

    def _judged(self, entry: HookEntry) -> bool | None:
        if not self._earlier(entry):
            return None
        seen = self._look(entry)
        said = self._answers().get(seen.fingerprint)
        return None if said is None or (said.accepted and seen.over) else said.accepted

    def _earlier(self, entry: HookEntry) -> list[HookJudgement]:
        """All that was said of this definition, the newest last."""
        answers = self._answers()
        if not answers:
            return []
        key, file = key_of(entry), os.path.realpath(entry.source.path)
        return [
            said
            for said in answers.values()
            if (said.key == key if said.key else (said.file, said.what) == (file, entry.label))
        ]

    def _look(self, entry: HookEntry) -> Fingerprint:
        key = definition(entry)
        if key not in self._looks:
            self._looks[key] = take_fingerprint(entry, self._about, self._budget)
        return self._looks[key]

    def _answers(self) -> Mapping[str, HookJudgement]:
        """What trust.json says now; it is read again when it has changed."""
        stamp = self.store.stamp()
        if stamp != self._stamp:
            self._stamp, self._said = stamp, self.store.hooks()
        return self._said


def _differing(before: Fingerprint, now: Fingerprint) -> list[str]:
    files = {file.path: file.digest for file in before.files}
    return [file.path for file in now.files if files.pop(file.path, "") != file.digest] + list(files)
