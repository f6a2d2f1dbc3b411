"""Which of the entries that were read may run, and why the others do not: shared by loading, trust, records and reports."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct, field

from cru.core.base.config.closest import did_you_mean
from cru.core.hooks.errors import NoEntry
from cru.core.hooks.model.entry import HookEntry, HookFileProblem, HookSource
from cru.core.hooks.model.mapping import ForeignSettings

REVIEW = "`cru hooks review`"


class Activation(StrEnum):
    """Whether an entry runs in a session. The values stand in `hooks.jsonl` and in `cru hooks list`."""

    ACTIVE = "active"
    DISABLED = "disabled"
    UNTRUSTED = "untrusted"
    REFUSED = "refused"
    NOT_ACCEPTED = "not accepted"
    BROKEN = "broken"
    UNAVAILABLE = "not available yet"
    NO_EVENT = "no moment"


AWAITING_REVIEW = (Activation.UNTRUSTED, Activation.NOT_ACCEPTED)
NEVER_RUNNING = (Activation.NO_EVENT, Activation.UNAVAILABLE)
"""Nothing that a person can do makes them run."""


class EntryStatus(Struct):
    """One entry that was read, and whether it runs.

    detail: of a broken entry its problem, of an untrusted one how it differs from what was accepted ("" if nothing was), of a refused
        one what a person names to take that back, of one without an event why there is none
    changed: a person had accepted it as it was before
    """

    entry: HookEntry
    state: Activation
    detail: str = ""
    changed: bool = False

    @property
    def why(self) -> str:
        """Why it does not run, for a person; "" if it does, or if there is no more to say than its state."""
        match self.state:
            case Activation.UNAVAILABLE:
                return f"handlers of type {self.entry.kind} are not available yet"
            case Activation.DISABLED:
                return "`cru hooks enable` brings it back" if self.entry.enabled else "in its own file"
            case Activation.REFUSED:
                return f"`cru hooks review --trust {self.detail}` takes that back"
            case Activation.NOT_ACCEPTED:
                return REVIEW
            case Activation.UNTRUSTED:
                return f"{self.detail or 'nobody has accepted it yet'}: {REVIEW}"
        return self.detail

    @property
    def is_ended_by_user(self) -> bool:
        """Whether a person switched it off: in their settings, or in another program's own file of theirs."""
        return self.state is Activation.DISABLED and (self.entry.enabled or self.entry.off_by_user)


class MissingHook(Struct, frozen=True):
    """A hook of the project that a person accepted and that nobody ended.

    file: where it stood
    label: what people called it
    key: of its definition, "" in older records
    off: it stands there still, switched off in a file of the project
    """

    file: str
    label: str
    key: str
    off: bool = False

    @property
    def why(self) -> str:
        return f"accepted earlier, {'switched off' if self.off else 'gone or changed'} in {self.file}"


class LoadedHooks(Struct):
    """Everything that was read, in order.

    problems: what is wrong or odd in the files
    sources: the files that were read
    missing: what a person had accepted of the project's files and that is not there as it was
    settings: what the files say beside hooks
    unaccepted: ids of those that run although nobody has accepted them (`--hooks=all`)
    """

    known: list[EntryStatus] = field(default_factory=list)
    problems: list[HookFileProblem] = field(default_factory=list)
    sources: list[HookSource] = field(default_factory=list)
    missing: list[MissingHook] = field(default_factory=list)
    settings: list[tuple[HookSource, ForeignSettings]] = field(default_factory=list)
    unaccepted: frozenset[str] = frozenset()

    def active(self) -> list[HookEntry]:
        return [status.entry for status in self.known if status.state is Activation.ACTIVE]

    def waiting(self) -> list[HookEntry]:
        """Those that await a person's trust."""
        return [status.entry for status in self.of(*AWAITING_REVIEW)]

    def of(self, *states: Activation) -> list[EntryStatus]:
        return [status for status in self.known if status.state in states]

    def find(self, word: str) -> EntryStatus:
        """The entry of an id, or of the beginning of one, with or without the dialect's name. Raises NoEntry."""
        by_id = {status.entry.id: status for status in self.known}
        if word in by_id:
            return by_id[word]
        matches = [id for id in by_id if word and (id.startswith(word) or id.partition("-")[2].startswith(word))]
        if len(matches) == 1:
            return by_id[matches[0]]
        if matches:
            raise NoEntry(f"{word} may be {' or '.join(matches)}", "type more of it")
        hint = did_you_mean(word, by_id) or "`cru hooks list` shows those that are there"
        raise NoEntry(f"there is no hook {word}", hint)


class LoadPolicy(Struct, frozen=True):
    """What decides whether an entry may run.

    accepted: dialects whose user files a person has accepted
    disabled: ids
    by_project: ids that a project leaves out, which counts for its own entries only
    is_trusted: asked only about what the project brings
    is_refused: asked about other programs' files too
    describe_change: of what is not trusted, how it differs from what was accepted; "" if nothing was
    digest: what is written behind its id to say which content was seen
    """

    accepted: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    by_project: frozenset[str] = frozenset()
    is_trusted: Callable[[HookEntry], bool] = lambda entry: False
    is_refused: Callable[[HookEntry], bool] = lambda entry: False
    describe_change: Callable[[HookEntry], str] = lambda entry: ""
    digest: Callable[[HookEntry], str] = lambda entry: ""

    def disables(self, entry: HookEntry) -> bool:
        """By its id, with or without the number that an id which two entries share has got."""
        ids = self.disabled | (self.by_project if entry.of_project else frozenset())
        return not ids.isdisjoint({entry.id, "-".join(entry.id.split("-")[:2])})
