"""Which hooks of a project a person has accepted: each by its definition and by the files that its command names (docs/hooks.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256

from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.guard.trust.stored import HookJudgement
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.status import REVIEW, MissingHook
from cru.core.hooks.trust.files import LookupBudget, stat
from cru.core.hooks.trust.fingerprint import Fingerprint, definition, key_of, relative, take_fingerprint

NOT_RUN = f"so the hook does not run ({REVIEW})"
TOO_MUCH = "it names more files than cru looks at, so it cannot be accepted"


class HookTrust:
    """What a person has said about the hooks of this session's project; what somebody says meanwhile, elsewhere, counts at once.

    Nothing of what a stranger names is looked at: only of definitions that somebody has judged, and of no more than the budget."""

    def __init__(self, store: TrustStore, facts: SessionFacts) -> None:
        self.store = store
        self._facts = facts
        self._stamp: tuple[int, ...] | None = None
        self._judgements: Mapping[str, HookJudgement] = {}
        self._fingerprints: dict[bytes, Fingerprint] = {}
        self._budget = LookupBudget()

    def is_trusted(self, entry: HookEntry) -> bool:
        return self._judgement(entry) is True

    def is_refused(self, entry: HookEntry) -> bool:
        return self._judgement(entry) is False

    def is_judged(self, entry: HookEntry) -> bool:
        return self._judgement(entry) is not None

    def is_settled(self, entry: HookEntry) -> bool:
        """Whether the last word about this definition is that it may be gone, or that it is refused."""
        judgements = self._judgements_of(entry)
        return bool(judgements) and not judgements[-1].accepted

    def judgements(self) -> Mapping[str, HookJudgement]:
        """All that was said about hooks, by fingerprint, the newest last; read again when trust.json has changed."""
        stamp = self.store.stamp()
        if stamp != self._stamp:
            self._stamp, self._judgements = stamp, self.store.hook_judgements()
        return self._judgements

    def settle(self, missing: Iterable[MissingHook]) -> None:
        """A person has seen that these are not there any more as they were. Raises NotStored."""
        self.store.judge_hooks(dict(map(judge_missing, missing)))

    def digest(self, entry: HookEntry) -> str:
        """What is written behind its id to accept it as it is now."""
        return self._fingerprint(entry).digest

    def accepted(self, entry: HookEntry) -> HookJudgement | None:
        """What was accepted last of this very definition, whatever its files are now; of an older record, of this file and command."""
        return next((judgement for judgement in reversed(self._judgements_of(entry)) if judgement.accepted), None)

    def describe_change(self, entry: HookEntry) -> str:
        """How it differs from what was accepted last, for a person; "" if nothing was."""
        before = self.accepted(entry)
        if before is None:
            return ""
        now = self._fingerprint(entry)
        if now.over:
            return f"accepted earlier; now {TOO_MUCH}"
        files = {relative(file.path, self._facts): file for file in now.files}
        changed = [file.path for name, file in files.items() if before.files.get(name) != file.digest]
        gone = [os.path.join(self._facts.root, name) for name in before.files if name not in files]
        subject = ", ".join([*changed, *gone]) if before.key and (changed or gone) else "what it runs has"
        return f"accepted earlier, {subject} changed since"

    def explain_revocation(self, entry: HookEntry) -> str:
        """Why a hook that was trusted when the session read it must not run now; "" if it may."""
        key = definition(entry)
        known = self._fingerprints.get(key)
        if known is None or any(stat(path) != status for path, status in known.stats):
            now = take_fingerprint(entry, self._facts)
            if known is not None and now.fingerprint != known.fingerprint:
                return f"{', '.join(_changed_files(known, now))} changed after you trusted it, {NOT_RUN}"
            known = self._fingerprints[key] = now
        judgement = self.judgements().get(known.fingerprint)
        if judgement is None or not judgement.accepted or known.over:
            return f"your trust in it was taken back, {NOT_RUN}"
        return ""

    def files(self, entries: Iterable[HookEntry]) -> list[str]:
        """The project's files that make up these entries: what must not change without a question."""
        entries = list(entries)
        named = [file.path for entry in entries for file in self._fingerprint(entry).files]
        return list(dict.fromkeys([*(str(entry.source.path) for entry in entries), *named]))

    def judge(self, entries: list[tuple[HookEntry, Fingerprint]], *, accepted: bool) -> None:
        """A person has looked, and said so. Raises NotStored."""
        from cru.core.hooks.trust.copies import keep_copies, sweep_copies

        judgements = {}
        for entry, fingerprint in entries:
            files = {relative(file.path, self._facts): file.digest for file in fingerprint.files} if accepted else {}
            where = os.path.realpath(entry.source.path)
            judgements[fingerprint.fingerprint] = HookJudgement(accepted, where, entry.label, fingerprint.key, files)
        if accepted:
            keep_copies(self._facts.home, (file for _, seen in entries for file in seen.files))
        self.store.judge_hooks(judgements)
        needed = {digest for judgement in self.judgements().values() for digest in judgement.files.values()}
        sweep_copies(self._facts.home, needed)

    def _judgement(self, entry: HookEntry) -> bool | None:
        """Whether it was accepted as it is now; None if nobody has said anything, or if it cannot be accepted."""
        if not self._judgements_of(entry):
            return None
        fingerprint = self._fingerprint(entry)
        judgement = self.judgements().get(fingerprint.fingerprint)
        return None if judgement is None or (judgement.accepted and fingerprint.over) else judgement.accepted

    def _judgements_of(self, entry: HookEntry) -> list[HookJudgement]:
        """All that was said of this definition, the newest last."""
        judgements = self.judgements()
        if not judgements:
            return []
        key, place = key_of(entry), (os.path.realpath(entry.source.path), entry.label)
        return [
            judgement
            for judgement in judgements.values()
            if (judgement.key == key if judgement.key else (judgement.file, judgement.what) == place)
        ]

    def _fingerprint(self, entry: HookEntry) -> Fingerprint:
        key = definition(entry)
        if key not in self._fingerprints:
            self._fingerprints[key] = take_fingerprint(entry, self._facts, self._budget)
        return self._fingerprints[key]


def judge_missing(missing: MissingHook) -> tuple[str, HookJudgement]:
    """The record that a person has seen it, and said that the project may do without: the newest of its hook, so it is asked again once
    the hook was accepted again."""
    text = "\0".join(("gone", missing.file, missing.key or missing.label))
    return sha256(text.encode()).hexdigest(), HookJudgement(False, missing.file, missing.label, missing.key)


def _changed_files(before: Fingerprint, now: Fingerprint) -> list[str]:
    files = {file.path: file.digest for file in before.files}
    return [file.path for file in now.files if files.pop(file.path, "") != file.digest] + list(files)
